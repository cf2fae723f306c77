use crate::support::{call, calls, items, result, tool};
use colloquy_context::Format;
use colloquy_context::project::project;
use colloquy_context::repair::repair;
use colloquy_context::validate::validate;
use colloquy_types::message::{
    Media, MediaData, MediaKind, Message, Part, RawBlock, Role, Thinking, ToolResult,
};
use serde_json::{Value, json};

fn rendered(format: Format, messages: &[Message]) -> (String, Value) {
    let (view, _) = repair(items(messages, &|_| 1), &|_| 1);
    let projected = project(format, &view).unwrap();
    assert_eq!(validate(format, &projected.bytes), []);
    let text = String::from_utf8(projected.bytes).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value.as_array().unwrap().len(), projected.sources.len());
    (text, value)
}

fn openai(messages: &[Message]) -> Value {
    rendered(Format::OpenaiChat, messages).1
}

fn anthropic(messages: &[Message]) -> Value {
    rendered(Format::Anthropic, messages).1
}

fn thinking(signature: Option<&str>, provider: &str) -> Part {
    Part::Thinking(Thinking {
        text: "hm".into(),
        signature: signature.map(str::to_owned),
        provider: Some(provider.into()),
        redacted: false,
    })
}

fn image(mime: &str, data: MediaData) -> Part {
    Part::Media(Media {
        kind: MediaKind::Image,
        mime: mime.into(),
        name: String::new(),
        data,
    })
}

#[test]
fn a_tool_loop_in_openai_shape() {
    let messages = [
        Message::user("q"),
        calls(vec![Part::text("looking"), call("c1", "f", r#"{"a": 1}"#)]),
        tool("c1", "r"),
    ];
    let call = json!({"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}});
    assert_eq!(
        openai(&messages),
        json!([
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": "looking", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "r"},
        ])
    );
}

#[test]
fn a_tool_loop_in_anthropic_shape() {
    let messages = [
        Message::user("q"),
        calls(vec![call("c1", "f", r#"{"a": 1}"#), call("c2", "f", "[1]")]),
        tool("c1", ""),
        Message::user("and?"),
    ];
    let view = anthropic(&messages);
    assert_eq!(
        view[1]["content"][0],
        json!({"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}})
    );
    assert_eq!(view[1]["content"][1]["input"], json!({"value": [1]}));
    let last = view[2]["content"].as_array().unwrap();
    let types: Vec<&str> = last.iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["tool_result", "tool_result", "text"]);
    assert_eq!(last[0]["content"][0]["text"], "[no output]");
    assert_eq!(last[1]["is_error"], true);
}

#[test]
fn ids_are_legal_distinct_and_the_same_in_call_and_result() {
    let long = format!("toolu/{}", "x".repeat(90));
    let pair = |id: &str| [calls(vec![call(id, "f", "{}")]), tool(id, "r")];
    let messages: Vec<Message> = [pair(&long), pair("c1"), pair("c1"), pair(&long)]
        .into_iter()
        .flatten()
        .collect();
    let view = openai(&messages);
    let ids: Vec<&str> = (0..4)
        .map(|at| view[2 * at]["tool_calls"][0]["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids[1], "c1");
    let distinct: std::collections::HashSet<&&str> = ids.iter().collect();
    assert_eq!(distinct.len(), 4);
    for (at, id) in ids.iter().enumerate() {
        assert_eq!(view[2 * at + 1]["tool_call_id"], **id);
    }
    let prefix = openai(&messages[..4]);
    assert_eq!(prefix[0], view[0], "what follows changes no id before it");
}

#[test]
fn a_rewritten_id_gives_way_to_one_that_was_there() {
    let pair = |id: &str| [calls(vec![call(id, "f", "{}")]), tool(id, "r")];
    let first = openai(&pair("bad id"));
    let taken = first[0]["tool_calls"][0]["id"].as_str().unwrap();
    let messages: Vec<Message> = [pair(taken), pair("bad id"), pair(taken)]
        .into_iter()
        .flatten()
        .collect();
    openai(&messages);
    anthropic(&messages);
}

#[test]
fn neighbours_of_one_role_merge_for_anthropic_and_not_for_chat() {
    let messages = [
        Message::user("a"),
        Message::user("b"),
        Message::assistant("c"),
        Message::assistant("d "),
    ];
    assert_eq!(openai(&messages).as_array().unwrap().len(), 4);
    let view = anthropic(&messages);
    assert_eq!(view.as_array().unwrap().len(), 2);
    assert_eq!(
        view[1]["content"][1]["text"], "d",
        "a last answer ends in no white space"
    );
}

#[test]
fn anthropic_starts_with_the_user() {
    let view = anthropic(&[Message::assistant("a"), Message::user("b")]);
    assert_eq!(view[0]["role"], "user");
    assert_eq!(
        view[1],
        json!({"role": "assistant", "content": [{"type": "text", "text": "a"}]})
    );
    let system = Message::new(Role::System, vec![Part::text("be kind")]);
    let view = anthropic(&[system, Message::assistant("a"), Message::user("b")]);
    assert_eq!(view[0]["content"][0]["text"], "<system>\nbe kind\n</system>");
}

#[test]
fn thinking_stays_in_the_running_loop_and_the_last_answer() {
    let answer = |text: &str| calls(vec![thinking(Some("sig"), "anthropic"), Part::text(text)]);
    let has_thinking = |message: &Value| message["content"][0]["type"] == "thinking";
    let view = anthropic(&[
        Message::user("1"),
        answer("a"),
        Message::user("2"),
        answer("b"),
        Message::user("3"),
    ]);
    assert!(!has_thinking(&view[1]));
    assert!(has_thinking(&view[3]));
    let looped = calls(vec![thinking(Some("sig"), "anthropic"), call("c1", "f", "{}")]);
    let view = anthropic(&[
        Message::user("1"),
        answer("a"),
        Message::user("2"),
        looped,
        tool("c1", "r"),
        answer("b"),
    ]);
    assert!(!has_thinking(&view[1]));
    assert!(has_thinking(&view[3]) && has_thinking(&view[5]));
}

#[test]
fn blank_and_foreign_signatures_and_bare_thinking_are_stripped() {
    for part in [
        thinking(None, "anthropic"),
        thinking(Some(" "), "anthropic"),
        thinking(Some("sig"), "openai"),
    ] {
        let view = anthropic(&[Message::user("q"), calls(vec![part, Part::text("a")])]);
        assert_eq!(view[1]["content"], json!([{"type": "text", "text": "a"}]));
    }
    let view = anthropic(&[
        Message::user("q"),
        calls(vec![thinking(Some("sig"), "anthropic")]),
    ]);
    assert_eq!(view.as_array().unwrap().len(), 1);
}

#[test]
fn attachments_take_the_providers_form_or_a_marker() {
    let parts = vec![
        Part::text("see"),
        image("image/png", MediaData::Inline("AAAA".into())),
        image("image/tiff", MediaData::Inline("AAAA".into())),
        image("", MediaData::Reference("https://example.com/a.png".into())),
        image("", MediaData::Reference("telegram-file-7".into())),
    ];
    let user = [Message::new(Role::User, parts.clone())];
    let kinds = |value: &Value| -> Vec<String> {
        value[0]["content"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| part["type"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        kinds(&openai(&user)),
        ["text", "image_url", "text", "image_url", "text"]
    );
    assert_eq!(
        kinds(&anthropic(&user)),
        ["text", "image", "text", "image", "text"]
    );

    let shown = ToolResult {
        call_id: "c1".into(),
        name: String::new(),
        parts,
        is_error: false,
    };
    let looped = [
        calls(vec![call("c1", "f", "{}")]),
        Message::new(Role::Tool, vec![Part::ToolResult(shown)]),
    ];
    assert_eq!(
        openai(&looped)[1]["content"],
        "see\n[image not sent: image/png]\n[image not sent: image/tiff]\n[image not sent]\n[image not sent]"
    );
    anthropic(&looped);
}

#[test]
fn a_providers_own_blocks_are_replayed_byte_for_byte() {
    let block = r#"{ "type":"tool_use","id":"c1", "name":"f","input":{"x":1.0} }"#;
    let mut answer = calls(vec![call("c1", "f", r#"{"x":1.0}"#)]);
    answer.raw = Some(RawBlock {
        provider: "anthropic".into(),
        json: format!("[{block}]"),
    });
    let (text, _) = rendered(
        Format::Anthropic,
        &[Message::user("q"), answer.clone(), tool("c1", "r")],
    );
    assert!(text.contains(block));

    let mut repeated = vec![Message::user("q"), answer.clone(), tool("c1", "r")];
    repeated.extend([answer.clone(), tool("c1", "r")]);
    let (text, _) = rendered(Format::Anthropic, &repeated);
    assert_eq!(
        text.matches(block).count(),
        1,
        "a repeated id is rewritten, so the block is not replayed"
    );

    answer.raw = Some(RawBlock {
        provider: "anthropic".into(),
        json: r#"[{"type":"text","text":"other"}]"#.into(),
    });
    let (text, _) = rendered(Format::Anthropic, &[Message::user("q"), answer, tool("c1", "r")]);
    assert!(
        !text.contains("other"),
        "a block without the message's calls is not replayed"
    );
}

#[test]
fn odd_tool_names_are_spelled_as_providers_want() {
    let messages = [calls(vec![call("c1", "fs.read é", "{}")]), tool("c1", "r")];
    assert_eq!(
        openai(&messages)[0]["tool_calls"][0]["function"]["name"],
        "fs_read__"
    );
    anthropic(&messages);
}

#[test]
fn several_results_of_one_message_become_messages_of_their_own() {
    let both = Message::new(Role::Tool, vec![result("c1", "1"), result("c2", "2")]);
    let messages = [calls(vec![call("c1", "f", "{}"), call("c2", "f", "{}")]), both];
    assert_eq!(openai(&messages).as_array().unwrap().len(), 3);
}
