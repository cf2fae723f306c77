//! Every rule of every format is broken once, by a request that breaks no other.

use colloquy_context::Format;
use colloquy_context::validate::{rules, validate};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub type Case = (&'static str, Value);

/// Checks the cases of a format: each names its rule and no other, and no rule is without a case.
#[track_caller]
pub fn check(format: Format, fine: &Value, cases: &[Case]) {
    let broken = |value: &Value| -> BTreeSet<&'static str> {
        let found = validate(format, value.to_string().as_bytes()).into_iter();
        found.map(|violation| violation.rule).collect()
    };
    assert_eq!(broken(fine), BTreeSet::new(), "{fine}");
    for (rule, value) in cases {
        assert_eq!(broken(value), BTreeSet::from([*rule]), "{value}");
    }
    let shown: BTreeSet<&str> = cases.iter().map(|(rule, _)| *rule).collect();
    let all: BTreeSet<&str> = rules(format).into_iter().collect();
    assert_eq!(all.difference(&shown).collect::<Vec<_>>(), Vec::<&&str>::new());
}

pub fn with_form(mut cases: Vec<Case>) -> Vec<Case> {
    cases.push(("a request is a list of messages", json!({})));
    cases.push(("a request has a message", json!([])));
    cases
}

#[test]
fn bytes_that_are_no_json_are_no_request() {
    for bytes in [
        &b""[..],
        b"[",
        b"[{}]x",
        b"[\"\xff\"]",
        b"[1]",
        b"[[[[[[[[",
        b"[[]]",
        b"[null]",
        b"[[\"user\"]]",
    ] {
        for format in Format::ALL {
            assert_eq!(validate(format, bytes)[0].rule, "a request is a list of messages");
        }
    }
}

pub fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

pub fn assistant(content: Value) -> Value {
    json!({"role": "assistant", "content": content})
}

pub fn block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// What is a list where an object should be breaks the rule about the object, whatever its order.
#[test]
fn a_list_is_no_object() {
    let first = |format, value: Value| validate(format, value.to_string().as_bytes())[0].rule;
    let chat = |part: Value| first(Format::OpenaiChat, json!([user(json!([part]))]));
    assert_eq!(
        chat(json!(["text", "q"])),
        "a part of a content is known and of its role"
    );
    let image = |url: Value| json!({"type": "image_url", "image_url": url});
    for url in [
        json!(["https://x.y"]),
        json!("https://x.y"),
        json!(null),
        json!(5),
    ] {
        assert_eq!(chat(image(url)), "a part of a content is whole");
    }
    let block = json!(["text", "q"]);
    assert_eq!(
        first(Format::Anthropic, json!([user(json!([block]))])),
        "a block is known and of its role"
    );
    let part = json!([{"role": "user", "parts": [{"inlineData": ["image/png", "AAAA"]}]}]);
    assert_eq!(
        first(Format::Gemini, part),
        "media has a type and base64 or an address"
    );
}

#[test]
fn neutral_rules() {
    let message = |role: &str, parts: Value| json!({"role": role, "parts": parts});
    let text = |text: &str| json!({"type": "text", "text": text});
    let q = || message("user", json!([text("q")]));
    let call = |id: &str| json!({"type": "tool_call", "id": id, "name": "f", "arguments": "{}"});
    let result = |id: &str| json!({"type": "tool_result", "call_id": id, "parts": []});
    let fine = json!([
        q(),
        message("assistant", json!([call("c"), call("c")])),
        message("tool", json!([result("c")])),
        message("tool", json!([result("c")])),
        message("assistant", json!([{"type": "thinking", "text": ""}, text("a")])),
    ]);
    let cases = vec![
        (
            "a role is user, assistant, tool or system",
            json!([message("robot", json!([text("q")]))]),
        ),
        (
            "a part is known",
            json!([message("user", json!([{"type": "video"}]))]),
        ),
        (
            "a message says something",
            json!([message("user", json!([text(" ")]))]),
        ),
        ("a message says something", json!([message("user", json!([]))])),
        (
            "a call has an id, a name and JSON as arguments",
            json!([
                message(
                    "assistant",
                    json!([{"type": "tool_call", "id": "c", "name": "f", "arguments": "{"}])
                ),
                message("tool", json!([result("c")]))
            ]),
        ),
        (
            "calls are the assistant's, results the tools'",
            json!([
                message("user", json!([call("c")])),
                message("tool", json!([result("c")]))
            ]),
        ),
        (
            "results are those of the calls before them, each once",
            json!([message("assistant", json!([call("c")]))]),
        ),
        (
            "results are those of the calls before them, each once",
            json!([message("tool", json!([result("c")]))]),
        ),
        (
            "results are those of the calls before them, each once",
            json!([
                message("assistant", json!([call("c")])),
                message("tool", json!([result("c"), result("c")]))
            ]),
        ),
    ];
    check(Format::Neutral, &fine, &with_form(cases));
}
