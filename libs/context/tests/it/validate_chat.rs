//! The rules of Chat Completions and of Mistral, each broken once.

use crate::validate_rules::{Case, assistant, block, check, user, with_form};
use colloquy_context::Format;
use serde_json::{Value, json};

fn chat_call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}})
}

fn chat_calls(calls: Value) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

fn chat_tool(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "r"})
}

/// Cases that hold for Chat Completions and for Mistral, with ids that are legal in both.
fn chat_cases() -> Vec<Case> {
    let q = || user(json!("q"));
    let end = || user(json!("and?"));
    let with = |pointer: &str, value: Value| {
        let mut call = chat_call("abcdefgh1");
        *call.pointer_mut(pointer).unwrap() = value;
        json!([q(), chat_calls(json!([call])), chat_tool("abcdefgh1")])
    };
    let mut same = chat_call("abcdefgh1");
    same["function"]["name"] = json!("g");
    let one = || chat_calls(json!([chat_call("abcdefgh1")]));
    vec![
        (
            "a role is system, user, assistant or tool",
            json!([q(), {"role": "robot", "content": "x"}]),
        ),
        ("a message says something", json!([user(json!(" "))])),
        ("a message says something", json!([user(json!([]))])),
        (
            "a message says something",
            json!([q(), assistant(json!(null)), end()]),
        ),
        ("a message says something", json!([user(json!(5))])),
        (
            "a part of a content is known and of its role",
            json!([user(json!([{"type": "video"}]))]),
        ),
        ("a part of a content is whole", json!([user(json!([block("")]))])),
        (
            "a part of a content is whole",
            json!([user(
                json!([{"type": "image_url", "image_url": {"url": "file-7"}}])
            )]),
        ),
        (
            "a part of a content is whole",
            json!([user(json!([{"type": "input_audio", "input_audio": {}}]))]),
        ),
        (
            "only an assistant calls tools, and a list of calls is not empty",
            json!([q(), {"role": "assistant", "content": "x", "tool_calls": []}, end()]),
        ),
        (
            "a call is of a function with a legal name",
            with("/function/name", json!("a.b")),
        ),
        (
            "a call is of a function with a legal name",
            with("/type", json!("custom")),
        ),
        (
            "a call has JSON in a string as arguments",
            with("/function/arguments", json!("{oops")),
        ),
        (
            "a call has JSON in a string as arguments",
            with("/function/arguments", json!({})),
        ),
        (
            "the ids of all calls are different",
            json!([q(), one(), chat_tool("abcdefgh1"), one(), chat_tool("abcdefgh1")]),
        ),
        (
            "a result follows the message of its call",
            json!([q(), one(), chat_tool("abcdefgh1"), chat_tool("abcdefgh2")]),
        ),
        (
            "every call has one result before the next message",
            json!([q(), one()]),
        ),
        (
            "every call has one result before the next message",
            json!([q(), one(), chat_tool("abcdefgh1"), chat_tool("abcdefgh1")]),
        ),
    ]
}

fn openai_chat_cases() -> Vec<Case> {
    let long = "c".repeat(41);
    let mut cases = chat_cases();
    cases.extend([
        (
            "a call has a legal id",
            json!([
                user(json!("q")),
                chat_calls(json!([chat_call(&long)])),
                chat_tool(&long)
            ]),
        ),
        (
            "a call has a legal id",
            json!([
                user(json!("q")),
                chat_calls(json!([chat_call("a|b")])),
                chat_tool("a|b")
            ]),
        ),
        (
            "a result follows the message of its call",
            json!([chat_tool("c")]),
        ),
        (
            "a part of a content is whole",
            json!([user(json!([{"type": "file", "file": {"file_data": "AAAA"}}]))]),
        ),
    ]);
    with_form(cases)
}

#[test]
fn openai_chat_rules() {
    let fine = json!([
        {"role": "system", "content": "s"},
        user(json!([block("q"), {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}])),
        user(json!("another")),
        {"role": "assistant", "content": "x", "tool_calls": [chat_call("c1"), chat_call("c2")]},
        chat_tool("c2"),
        chat_tool("c1"),
        {"role": "system", "content": "s"},
    ]);
    check(Format::OpenaiChat, &fine, &openai_chat_cases());
}

#[test]
fn strict_chat_rules() {
    let fine = json!([{"role": "system", "content": "s"}, user(json!("q")), assistant(json!("a"))]);
    let mut cases = openai_chat_cases();
    cases.push((
        "users and assistants alternate",
        json!([user(json!("q")), user(json!("q"))]),
    ));
    cases.push((
        "a system message is the first",
        json!([user(json!("q")), {"role": "system", "content": "s"}]),
    ));
    check(Format::OpenaiChatStrict, &fine, &cases);
}

#[test]
fn mistral_rules() {
    let q = || user(json!("q"));
    let id = "abcdefgh1";
    let one = |id: &str| json!([q(), chat_calls(json!([chat_call(id)])), chat_tool(id)]);
    let fine = json!([
        user(json!([block("q"), {"type": "input_audio", "input_audio": "AAAA"}, {"type": "document_url", "document_url": "https://x.y"}])),
        {"role": "assistant", "content": "", "tool_calls": [chat_call(id)]},
        {"role": "tool", "tool_call_id": id, "name": "f", "content": "r"},
        {"role": "assistant", "content": "a", "prefix": true},
    ]);
    let mut named = one(id);
    named[2]["name"] = json!("a.b");
    let mut cases = chat_cases();
    cases.extend([
        (
            "the first message is the user's",
            json!([assistant(json!("a")), q()]),
        ),
        (
            "the first message is the user's",
            json!([{"role": "system", "content": "s"}, q()]),
        ),
        ("an id is nine letters or digits", one("call_1234")),
        ("an id is nine letters or digits", one("abcdefgh")),
        ("a result has a legal name", named),
        ("users and assistants alternate", json!([q(), q()])),
        (
            "results are followed by an answer",
            json!([one(id)[0], one(id)[1], one(id)[2], q()]),
        ),
        (
            "a system message follows no answer",
            json!([q(), assistant(json!("a")), {"role": "system", "content": "s"}]),
        ),
        (
            "the last message waits for an answer",
            json!([q(), assistant(json!("a"))]),
        ),
        (
            "only the last message is to be continued",
            json!([q(), {"role": "assistant", "content": "a", "prefix": true}, q()]),
        ),
        (
            "a part of a content is whole",
            json!([user(json!([{"type": "document_url", "document_url": "file-7"}]))]),
        ),
    ]);
    check(Format::Mistral, &fine, &with_form(cases));
}
