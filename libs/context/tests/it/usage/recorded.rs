//! Recorded provider calls, read into the product's messages.

use crate::support::shared;
use colloquy_context::Format;
use colloquy_types::message::{Message, Part, Role, Thinking, ToolCall, ToolResult};
use flate2::read::GzDecoder;
use serde_json::Value;
use std::io::Read;

/// One call and the prompt size that its provider reported.
pub struct Call {
    pub provider: &'static str,
    pub format: Format,
    pub model: String,
    pub system: Vec<String>,
    /// A JSON array; empty for no tools.
    pub tools: String,
    pub messages: Vec<Message>,
    pub reported: u32,
    pub recording: String,
}

/// The lines of a compressed file of JSON lines; none where it is not there.
pub fn lines(path: &str) -> Option<Vec<Value>> {
    let bytes = std::fs::read(shared(path)?).unwrap();
    let mut text = String::new();
    GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    Some(
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
    )
}

/// Calls that succeeded, sent text alone, and had no tools that the provider itself brings: those add prompts
/// that nobody sees.
pub fn calls() -> Option<Vec<Call>> {
    let all = lines("data/provider-usage/pydantic-ai-usage.jsonl.gz")?;
    Some(all.iter().filter_map(call).collect())
}

fn call(line: &Value) -> Option<Call> {
    let request = &line["request"];
    let usage = &line["usage"];
    let number = |key: &str| usage[key].as_u64().unwrap_or(0);
    let (provider, format, reported) = match line["provider"].as_str()? {
        "anthropic" => {
            let cached = number("cache_creation_input_tokens") + number("cache_read_input_tokens");
            ("anthropic", Format::Anthropic, number("input_tokens") + cached)
        }
        "openai-chat" => ("openai-chat", Format::OpenaiChat, number("prompt_tokens")),
        "openai-responses" => (
            "openai-responses",
            Format::OpenaiResponses,
            number("input_tokens"),
        ),
        "gemini" => ("gemini", Format::Gemini, number("promptTokenCount")),
        _ => return None,
    };
    let tools = tools(request)?;
    if reported == 0 || unreadable(request) {
        return None;
    }
    let uri = line["uri"].as_str().unwrap_or_default();
    let of_uri = uri.rsplit('/').next().and_then(|end| end.split(':').next());
    Some(Call {
        provider,
        format,
        model: request["model"].as_str().or(of_uri)?.to_owned(),
        system: system(request),
        tools,
        messages: messages(request),
        reported: u32::try_from(reported).unwrap(),
        recording: line["cassette"].as_str().unwrap_or_default().to_owned(),
    })
}

/// The tools that the caller described; none for a request with others.
fn tools(request: &Value) -> Option<String> {
    let Some(tools) = request["tools"].as_array().filter(|tools| !tools.is_empty()) else {
        return Some(String::new());
    };
    let is_own = |tool: &Value| {
        let has_schema = tool["input_schema"].is_object() || tool["parameters"].is_object();
        has_schema || tool["function"].is_object() || tool["functionDeclarations"].is_array()
    };
    tools.iter().all(is_own).then(|| request["tools"].to_string())
}

/// Media, files, and what only the provider can expand.
fn unreadable(request: &Value) -> bool {
    let text = request.to_string();
    let marks = [
        "inlineData",
        "fileData",
        "\"image",
        "\"document",
        "input_file",
        "\"file\"",
        "tool_reference",
        "compaction",
        "server_tool",
        "input_image",
        "web_search_options",
        "code_execution",
        "audio",
        "thoughtSignature",
        "encrypted_content",
        "redacted_thinking",
        "previous_response_id",
        "\"IMAGE\"",
        "tool_addition",
    ];
    marks.iter().any(|mark| text.contains(mark))
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n"),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn system(request: &Value) -> Vec<String> {
    let mut all = vec![text_of(&request["system"]), text_of(&request["instructions"])];
    all.push(text_of(&request["systemInstruction"]["parts"]));
    // The schema that an answer must have is part of the prompt as well; Gemini does not count it.
    let schemas = [
        "/response_format/json_schema",
        "/text/format",
        "/output_config/format",
    ];
    all.extend(
        schemas
            .iter()
            .filter_map(|path| request.pointer(path))
            .map(Value::to_string),
    );
    all.retain(|text| !text.is_empty());
    all
}

fn messages(request: &Value) -> Vec<Message> {
    if let Value::String(text) = &request["input"] {
        return vec![Message::user(text.clone())];
    }
    let lists = ["messages", "input", "contents"];
    let list = lists.iter().find_map(|key| request[*key].as_array());
    list.into_iter().flatten().map(message).collect()
}

fn message(value: &Value) -> Message {
    let role = match value["role"].as_str() {
        Some("system" | "developer") => Role::System,
        Some("assistant" | "model") => Role::Assistant,
        Some("tool") => Role::Tool,
        Some(_) => Role::User,
        None if value["type"] == "function_call_output" => Role::Tool,
        None => Role::Assistant,
    };
    let mut parts = Vec::new();
    match (&value["content"], value["parts"].as_array()) {
        (_, Some(list)) => parts.extend(list.iter().map(part)),
        (content, None) if role == Role::Tool && value["tool_call_id"].is_string() => {
            parts.push(result(&value["tool_call_id"], text_of(content)));
        }
        (Value::Array(list), None) => parts.extend(list.iter().map(part)),
        (Value::String(text), None) => parts.push(Part::text(text.clone())),
        (_, None) if value["type"].is_string() => parts.push(part(value)),
        _ => {}
    }
    let calls = value["tool_calls"].as_array().into_iter().flatten();
    parts.extend(calls.map(|call| {
        tool_call(
            &call["id"],
            &call["function"]["name"],
            &call["function"]["arguments"],
        )
    }));
    Message::new(role, parts)
}

fn part(value: &Value) -> Part {
    match value["type"].as_str() {
        Some("tool_use") => tool_call(&value["id"], &value["name"], &value["input"]),
        Some("function_call") => tool_call(&value["call_id"], &value["name"], &value["arguments"]),
        Some("tool_result") => result(&value["tool_use_id"], text_of(&value["content"])),
        Some("function_call_output") => result(&value["call_id"], text_of(&value["output"])),
        Some("thinking") => Part::Thinking(Thinking {
            text: text_of(&value["thinking"]),
            signature: None,
            provider: None,
            redacted: false,
        }),
        _ if value["functionCall"].is_object() => tool_call(
            &value["functionCall"]["id"],
            &value["functionCall"]["name"],
            &value["functionCall"]["args"],
        ),
        _ if value["functionResponse"].is_object() => result(
            &value["functionResponse"]["id"],
            value["functionResponse"]["response"].to_string(),
        ),
        _ => Part::text(
            value["text"]
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned),
        ),
    }
}

fn tool_call(id: &Value, name: &Value, arguments: &Value) -> Part {
    let arguments = arguments
        .as_str()
        .map_or_else(|| arguments.to_string(), str::to_owned);
    Part::ToolCall(ToolCall {
        id: text_of(id),
        name: text_of(name),
        arguments,
    })
}

fn result(id: &Value, text: String) -> Part {
    Part::ToolResult(ToolResult {
        call_id: text_of(id),
        name: String::new(),
        parts: vec![Part::text(text)],
        is_error: false,
    })
}
