//! What stands around the messages: the request's own tokens, the system prompt and the tool schemas.

use super::Tokenizer;
use crate::project::Format;
use serde_json::Value;

/// What every request costs: OpenAI primes the answer with 3 tokens
/// (<https://cookbook.openai.com/examples/how_to_count_tokens_with_tiktoken>), and recorded calls of Anthropic's models
/// show 3 too. Gemini's show none.
const REQUEST: u32 = 3;

/// The prompt that Anthropic adds where there are tools. Its pages name 313 to 530 by model and tool choice
/// (<https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview>); recorded calls of the models since
/// Claude 4.5 show 415 to 540 with `auto`, and about 130 more where a tool is forced.
const ANTHROPIC_TOOL_PROMPT: u32 = 500;

/// Tokens of what a request carries besides its messages: the system texts, the tools as the JSON array that the provider
/// gets (or text that is no JSON, counted as it is), and what the format adds. Empty for none. An answer's schema counts as a
/// system text, but for Gemini, which takes nothing for it.
///
/// Providers add more unseen: GPT-5 models with tools about 80 tokens, Anthropic about 30 with thinking and 100 to 150 with
/// an answer's schema or a forced tool. An anchor has it all in it.
#[must_use]
pub fn count_overhead(system: &[&str], tools_json: &str, format: Format, tokenizer: Tokenizer) -> u32 {
    let per_text = match format {
        Format::OpenaiChat
        | Format::OpenaiChatStrict
        | Format::OpenaiResponses
        | Format::Neutral
        | Format::Mistral => super::MESSAGE_OVERHEAD,
        Format::Anthropic | Format::Gemini => 0,
    };
    let request = if format == Format::Gemini { 0 } else { REQUEST };
    let texts = system
        .iter()
        .filter(|text| !text.is_empty())
        .map(|text| tokenizer.count_text(text).saturating_add(per_text));
    texts
        .fold(request, u32::saturating_add)
        .saturating_add(count_tools(tools_json, format, tokenizer))
}

/// Tokens of tool schemas.
fn count_tools(tools_json: &str, format: Format, tokenizer: Tokenizer) -> u32 {
    if tools_json.trim().is_empty() {
        return 0;
    }
    let parsed = serde_json::from_str::<Value>(tools_json);
    let Some(tools) = parsed.ok().and_then(list) else {
        return tokenizer.count_text(tools_json);
    };
    if tools.is_empty() {
        return 0;
    }
    match format {
        // Written out as they are; the vocabulary counts the compact form, whatever the caller's white space.
        Format::Anthropic => tools
            .iter()
            .map(|tool| tokenizer.count_text(&tool.to_string()))
            .fold(ANTHROPIC_TOOL_PROMPT, u32::saturating_add),
        // Nothing is published; recorded calls since Gemini 2.5 show about nine tenths of the JSON.
        Format::Gemini => tools
            .iter()
            .map(|tool| tokenizer.count_text(&tool.to_string()) / 10 * 9)
            .fold(0, u32::saturating_add),
        _ => tools
            .iter()
            .map(|tool| signature(tool, tokenizer))
            .fold(LIST_END, u32::saturating_add),
    }
}

/// The declarations in a list of tools; Gemini nests them.
fn list(value: Value) -> Option<Vec<Value>> {
    let Value::Array(tools) = value else {
        return None;
    };
    let nested = |tool: Value| match tool {
        Value::Object(mut fields) => match fields.remove("functionDeclarations") {
            Some(Value::Array(declared)) => declared,
            _ => vec![Value::Object(fields)],
        },
        other => vec![other],
    };
    Some(tools.into_iter().flat_map(nested).collect())
}

// OpenAI writes tools as type declarations. How that counts, by its cookbook (see above): so many tokens for each function,
// for its first parameter and for every parameter, for each value of an enum but the first, and once at the end.
const FUNCTION: u32 = 7;
const FIRST_PARAMETER: u32 = 3;
const PARAMETER: u32 = 3;
const ENUM_VALUE: u32 = 3;
const LIST_END: u32 = 12;

fn signature(tool: &Value, tokenizer: Tokenizer) -> u32 {
    let function = tool.get("function").unwrap_or(tool);
    let line =
        |name: &str, rest: &str| tokenizer.count_text(&format!("{name}:{}", rest.trim_end_matches('.')));
    let head = line(text(function, "name"), text(function, "description"));
    let schema = [
        "parameters",
        "input_schema",
        "parametersJsonSchema",
        "parameters_json_schema",
    ]
    .iter()
    .find_map(|key| function.get(key));
    FUNCTION
        .saturating_add(head)
        .saturating_add(schema.map_or(0, |schema| parameters(schema, tokenizer)))
}

fn parameters(schema: &Value, tokenizer: Tokenizer) -> u32 {
    let definitions = schema.get("$defs").and_then(Value::as_object);
    let defined = definitions
        .into_iter()
        .flatten()
        .map(|(_, schema)| parameters(schema, tokenizer));
    let mut sum = defined.fold(0, u32::saturating_add);
    let properties = schema.get("properties").and_then(Value::as_object);
    let Some(properties) = properties.filter(|properties| !properties.is_empty()) else {
        return sum;
    };
    sum = sum.saturating_add(FIRST_PARAMETER);
    for (name, property) in properties {
        sum = sum.saturating_add(parameter(name, property, tokenizer));
    }
    sum
}

fn parameter(name: &str, property: &Value, tokenizer: Tokenizer) -> u32 {
    let description = text(property, "description").trim_end_matches('.');
    let line = format!("{name}:{}:{description}", text(property, "type"));
    let values = property.get("enum").and_then(Value::as_array);
    let values = values.into_iter().flatten().enumerate().map(|(at, value)| {
        let written = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let separator = if at == 0 { 0 } else { ENUM_VALUE };
        tokenizer.count_text(&written).saturating_add(separator)
    });
    let within = parameters(property, tokenizer).saturating_add(
        property
            .get("items")
            .map_or(0, |items| parameters(items, tokenizer)),
    );
    values
        .fold(PARAMETER, u32::saturating_add)
        .saturating_add(tokenizer.count_text(&line))
        .saturating_add(within)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOL: &str = r#"[{"type":"function","function":{"name":"get_current_weather","description":
        "Get the current weather in a given location","parameters":{"type":"object","properties":{"location":{
        "type":"string","description":"The city and state, e.g. San Francisco, CA"},"unit":{"type":"string",
        "description":"The unit of temperature to return","enum":["celsius","fahrenheit"]}},"required":["location"]}}}]"#;

    #[test]
    fn the_cookbooks_example_counts_as_there() {
        // The example's messages: a system text and a question, 101 tokens in all by the count and by the API.
        let messages = [
            "You are a helpful assistant that can answer to questions about the weather.",
            "What's the weather like in San Francisco?",
        ];
        let counted: u32 = messages
            .iter()
            .map(|text| 4 + Tokenizer::O200k.count_text(text))
            .sum();
        let overhead = count_overhead(&[], TOOL, Format::OpenaiChat, Tokenizer::O200k);
        assert_eq!(counted + overhead, 101);
    }

    #[test]
    fn white_space_and_nesting_do_not_matter() {
        let count = |tools: &str, format| count_overhead(&[], tools, format, Tokenizer::O200k);
        let wide = r#"[ { "name" : "f", "input_schema" : { } } ]"#;
        assert_eq!(
            count(wide, Format::Anthropic),
            count(r#"[{"name":"f","input_schema":{}}]"#, Format::Anthropic)
        );
        assert_eq!(
            count(
                r#"[{"functionDeclarations":[{"name":"f"},{"name":"g"}]}]"#,
                Format::Gemini
            ),
            count(r#"[{"name":"f"},{"name":"g"}]"#, Format::Gemini)
        );
        for none in ["", " ", "[]"] {
            assert_eq!(count(none, Format::Anthropic), REQUEST);
        }
        assert_eq!(count("not json", Format::OpenaiChat), REQUEST + 2);
    }
}
