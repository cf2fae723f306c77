//! Tool loops and attachments in the shapes of Responses, Gemini, Mistral and strict Chat Completions.

use crate::support::{call, calls, items, result, tool};
use colloquy_context::Format;
use colloquy_context::project::project;
use colloquy_context::repair::repair;
use colloquy_context::validate::validate;
use colloquy_types::message::{Media, MediaData, MediaKind, Message, Part, Role, Thinking, ToolResult};
use serde_json::{Value, json};

#[track_caller]
fn sent(format: Format, messages: &[Message]) -> Value {
    let (view, _) = repair(items(messages, &|_| 1), &|_| 1);
    let projected = project(format, &view).unwrap();
    assert_eq!(
        validate(format, &projected.bytes),
        [],
        "{}",
        String::from_utf8_lossy(&projected.bytes)
    );
    let value: Value = serde_json::from_slice(&projected.bytes).unwrap();
    assert_eq!(value.as_array().unwrap().len(), projected.sources.len());
    value
}

fn looped() -> Vec<Message> {
    let both = Message::new(Role::Tool, vec![result("call_1|fc_1", "r"), result("c2", "")]);
    vec![
        Message::user("q"),
        calls(vec![
            Part::text("looking"),
            call("call_1|fc_1", "read.file", r#"{"a": 1}"#),
            call("c2", "f", "[1]"),
        ]),
        both,
        Message::user("and?"),
    ]
}

fn thinking(provider: &str, signature: &str) -> Part {
    Part::Thinking(Thinking {
        text: "hm".into(),
        signature: Some(signature.into()),
        provider: Some(provider.into()),
        redacted: false,
    })
}

fn media(kind: MediaKind, mime: &str, data: MediaData) -> Part {
    Part::Media(Media {
        kind,
        mime: mime.into(),
        name: String::new(),
        data,
    })
}

/// One of each: a picture, a recording and a document, inline and by reference, and what no one takes.
fn attachments() -> Vec<Part> {
    let inline = || MediaData::Inline("AAAA".into());
    let url = || MediaData::Reference("https://x.y/z".into());
    vec![
        media(MediaKind::Image, "image/jpg", inline()),
        media(MediaKind::Image, "image/png", url()),
        media(MediaKind::Audio, "audio/wav", inline()),
        media(MediaKind::File, "application/pdf", inline()),
        media(MediaKind::File, "application/pdf", url()),
        media(
            MediaKind::Image,
            "image/png",
            MediaData::Inline("not base64".into()),
        ),
        media(
            MediaKind::Image,
            "",
            MediaData::Reference("telegram-file-7".into()),
        ),
    ]
}

#[test]
fn a_loop_in_responses_shape() {
    assert_eq!(
        sent(Format::OpenaiResponses, &looped()),
        json!([
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": "looking"},
            {"type": "function_call", "call_id": "call_1", "name": "read_file", "arguments": "{\"a\": 1}"},
            {"type": "function_call", "call_id": "c2", "name": "f", "arguments": "[1]"},
            {"type": "function_call_output", "call_id": "call_1", "output": "r"},
            {"type": "function_call_output", "call_id": "c2", "output": "[no output]"},
            {"role": "user", "content": "and?"},
        ])
    );
}

#[test]
fn reasoning_goes_with_what_follows_it_and_names_the_call() {
    let item = r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"}"#;
    let answer = calls(vec![
        thinking("openai", item),
        call("call_1|fc_1", "f", "{}"),
        thinking("openai", item),
    ]);
    let mut messages = vec![Message::user("q"), answer.clone(), tool("call_1|fc_1", "r")];
    let view = sent(Format::OpenaiResponses, &messages);
    assert_eq!(view[1], serde_json::from_str::<Value>(item).unwrap());
    assert_eq!(
        (&view[2]["id"], &view[2]["call_id"]),
        (&json!("fc_1"), &json!("call_1"))
    );
    assert_eq!(
        view.as_array().unwrap().len(),
        4,
        "reasoning at the end is left out"
    );

    messages.extend([answer, tool("call_1|fc_1", "r")]);
    let view = sent(Format::OpenaiResponses, &messages);
    assert_eq!(view[4]["type"], "function_call", "an item is sent once");
    assert_eq!(view[4].get("id"), None);

    for broken in [
        "rs_1",
        "{}",
        r#"{"type":"reasoning","id":"x","summary":[]}"#,
        r#"[{"type":"reasoning"}]"#,
    ] {
        let view = sent(
            Format::OpenaiResponses,
            &[
                Message::user("q"),
                calls(vec![thinking("openai", broken), Part::text("a")]),
            ],
        );
        assert_eq!(view[1], json!({"role": "assistant", "content": "a"}));
    }
}

#[test]
fn a_loop_in_gemini_shape() {
    let unsigned = "skip_thought_signature_validator";
    assert_eq!(
        sent(Format::Gemini, &looped()),
        json!([
            {"role": "user", "parts": [{"text": "q"}]},
            {"role": "model", "parts": [
                {"text": "looking"},
                {"functionCall": {"id": "call_636c7e925368204c63fd1b34", "name": "read_file", "args": {"a": 1}}, "thoughtSignature": unsigned},
                {"functionCall": {"id": "c2", "name": "f", "args": {"value": [1]}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "call_636c7e925368204c63fd1b34", "name": "read_file", "response": {"output": "r"}}},
                {"functionResponse": {"id": "c2", "name": "f", "response": {"output": "[no output]"}}},
                {"text": "and?"},
            ]},
        ])
    );
}

#[test]
fn geminis_signature_stands_on_the_part_behind_the_thinking() {
    let answer = calls(vec![
        thinking("gemini", "AAAA"),
        Part::text(" "),
        call("c1", "f", "{}"),
    ]);
    let view = sent(Format::Gemini, &[Message::user("q"), answer, tool("c1", "r")]);
    assert_eq!(view[1]["parts"].as_array().unwrap().len(), 1);
    assert_eq!(view[1]["parts"][0]["thoughtSignature"], "AAAA");
    for (provider, signature) in [("anthropic", "AAAA"), ("gemini", "not base64"), ("gemini", " ")] {
        let view = sent(
            Format::Gemini,
            &[
                Message::user("q"),
                calls(vec![thinking(provider, signature), Part::text("a")]),
            ],
        );
        assert_eq!(view[1]["parts"], json!([{"text": "a"}]));
    }
    let mut failed = ToolResult {
        call_id: "c1".into(),
        name: String::new(),
        parts: vec![Part::text("no")],
        is_error: true,
    };
    failed.name = "another".into();
    let view = sent(
        Format::Gemini,
        &[
            Message::user("q"),
            calls(vec![call("c1", "f", "{}")]),
            Message::new(Role::Tool, vec![Part::ToolResult(failed)]),
        ],
    );
    let response = &view[2]["parts"][0]["functionResponse"];
    assert_eq!(
        (&response["name"], &response["response"]),
        (&json!("f"), &json!({"error": "no"}))
    );
}

#[test]
fn mistral_gets_an_answer_between_a_result_and_the_user() {
    let view = sent(Format::Mistral, &looped());
    let id = |at: usize| view[1]["tool_calls"][at]["id"].clone();
    assert_eq!(view[1]["content"], "looking");
    assert_eq!(
        json!([view[2], view[3], view[4], view[5]]),
        json!([
            {"role": "tool", "tool_call_id": id(0), "name": "read_file", "content": "r"},
            {"role": "tool", "tool_call_id": id(1), "name": "f", "content": "[no output]"},
            {"role": "assistant", "content": "[no answer]"},
            {"role": "user", "content": [{"type": "text", "text": "and?"}]},
        ])
    );
}

#[test]
fn mistral_merges_starts_with_the_user_and_continues_a_last_answer() {
    let system = |text: &str| Message::new(Role::System, vec![Part::text(text)]);
    let messages = [
        system("s"),
        Message::user("a"),
        Message::assistant("b"),
        Message::assistant("c \"d\""),
    ];
    assert_eq!(
        sent(Format::Mistral, &messages),
        json!([
            {"role": "user", "content": [{"type": "text", "text": "<system>\ns\n</system>"}, {"type": "text", "text": "a"}]},
            {"role": "assistant", "content": "b\nc \"d\"", "prefix": true},
        ])
    );
    let view = sent(
        Format::Mistral,
        &[
            Message::assistant("a"),
            calls(vec![call("c1", "f", "{}")]),
            tool("c1", "r"),
        ],
    );
    assert_eq!(view[0]["content"][0]["text"], "[earlier messages omitted]");
    assert_eq!(
        (
            &view[1]["content"],
            view[1]["tool_calls"].as_array().unwrap().len()
        ),
        (&json!("a"), 1)
    );
    let view = sent(
        Format::Mistral,
        &[
            Message::user("q"),
            calls(vec![call("c1", "f", "{}")]),
            tool("c1", "r"),
        ],
    );
    assert_eq!(view[1]["content"], "");
}

#[test]
fn strict_endpoints_get_one_system_message_and_alternating_roles() {
    let system = |text: &str| Message::new(Role::System, vec![Part::text(text)]);
    let messages = [
        system("s"),
        Message::user("a"),
        system("t"),
        Message::assistant("b"),
        Message::assistant("c"),
    ];
    assert_eq!(
        sent(Format::OpenaiChatStrict, &messages),
        json!([
            {"role": "system", "content": "s"},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "<system>\nt\n</system>"}]},
            {"role": "assistant", "content": "b\nc"},
        ])
    );
}

/// The types of a list's parts; a marker for what could not be sent says so.
fn kinds(list: &Value, key: &str) -> Vec<String> {
    let kind = |part: &Value| {
        let is_marker = part
            .get("text")
            .is_some_and(|text| text.as_str().unwrap().contains("not sent"));
        let kind = part[key].as_str().map(str::to_owned);
        if is_marker {
            "marker".to_owned()
        } else {
            kind.unwrap_or_else(|| part.as_object().unwrap().keys().next().unwrap().clone())
        }
    };
    list.as_array().unwrap().iter().map(kind).collect()
}

#[test]
fn attachments_are_sent_as_each_provider_takes_them_and_named_where_it_does_not() {
    let user = [Message::new(Role::User, attachments())];
    let marked = ["marker", "marker"];
    let content = |format| kinds(&sent(format, &user)[0]["content"], "type");
    assert_eq!(
        content(Format::Anthropic),
        [&["image", "image", "marker", "document", "document"][..], &marked].concat()
    );
    let chat = ["image_url", "image_url", "input_audio", "file", "marker"];
    assert_eq!(content(Format::OpenaiChat), [&chat[..], &marked].concat());
    assert_eq!(content(Format::OpenaiChatStrict), [&chat[..], &marked].concat());
    let responses = ["input_image", "input_image", "marker", "input_file", "input_file"];
    assert_eq!(
        content(Format::OpenaiResponses),
        [&responses[..], &marked].concat()
    );
    let mistral = ["image_url", "image_url", "input_audio", "marker", "document_url"];
    assert_eq!(content(Format::Mistral), [&mistral[..], &marked].concat());
    let gemini = ["inlineData", "fileData", "inlineData", "inlineData", "fileData"];
    assert_eq!(
        kinds(&sent(Format::Gemini, &user)[0]["parts"], "type"),
        [&gemini[..], &marked].concat()
    );
}

#[test]
fn attachments_of_others_than_the_user_are_named() {
    let of = |role| Message::new(role, attachments());
    let messages = [
        Message::user("q"),
        of(Role::System),
        of(Role::Assistant),
        Message::user("and?"),
    ];
    for format in Format::ALL
        .into_iter()
        .filter(|format| *format != Format::Neutral)
    {
        let text = sent(format, &messages).to_string();
        assert_eq!(
            text.matches("not sent").count(),
            2 * attachments().len(),
            "{format}"
        );
    }
}

#[test]
fn attachments_of_results_are_sent_or_named_too() {
    let shown = ToolResult {
        call_id: "c1".into(),
        name: String::new(),
        parts: attachments(),
        is_error: false,
    };
    let messages = [
        Message::user("q"),
        calls(vec![call("c1", "f", "{}")]),
        Message::new(Role::Tool, vec![Part::ToolResult(shown)]),
    ];
    let anthropic = sent(Format::Anthropic, &messages);
    assert_eq!(
        kinds(&anthropic[2]["content"][0]["content"], "type")[..3],
        ["image", "image", "marker"]
    );
    let responses = sent(Format::OpenaiResponses, &messages);
    assert_eq!(
        kinds(&responses[2]["output"], "type")[..3],
        ["input_image", "input_image", "marker"]
    );
    for format in [
        Format::OpenaiChat,
        Format::OpenaiChatStrict,
        Format::Mistral,
        Format::Gemini,
    ] {
        let text = sent(format, &messages).to_string();
        assert_eq!(text.matches("not sent").count(), attachments().len(), "{format}");
    }
}

#[test]
fn every_projection_says_what_a_bare_value_of_arguments_was() {
    for arguments in ["[1]", "3", "\"x\"", "null", " {\"a\": 1} ", "true"] {
        let messages = [
            Message::user("q"),
            calls(vec![call("c1", "f", arguments)]),
            tool("c1", "r"),
        ];
        for format in Format::ALL {
            let text = sent(format, &messages).to_string();
            let inner = arguments
                .trim_matches([' ', '{', '}', '"'])
                .split(':')
                .next_back()
                .unwrap()
                .trim();
            assert!(text.contains(inner), "{format}: {text}");
        }
    }
}
