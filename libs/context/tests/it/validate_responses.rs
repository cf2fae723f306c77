//! The rules of the Responses API, each broken once.

use crate::validate_rules::{assistant, check, user, with_form};
use colloquy_context::Format;
use serde_json::{Value, json};

#[test]
fn openai_responses_rules() {
    let q = || user(json!("q"));
    let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "r"});
    let reasoning =
        |id: &str| json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": "e"});
    let with = |field: &str, value: Value| {
        let mut call = call("c");
        call[field] = value;
        json!([q(), call, output("c")])
    };
    let put = |value: Value| json!([q(), call("c"), {"type": "function_call_output", "call_id": "c", "output": value}]);
    let fine = json!([
        user(json!([{"type": "input_text", "text": "q"}, {"type": "input_image", "image_url": "https://x.y/z"}])),
        reasoning("rs_1"),
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "[1]"},
        call("c2"),
        output("c1"),
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]},
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
        {"role": "developer", "content": "d"},
        {"type": "web_search_call", "id": "ws_1"},
    ]);
    let cases = vec![
        ("an item is of a known type", json!([{"type": "video"}])),
        ("an item is of a known type", json!([{"content": "x"}])),
        (
            "a role is system, developer, user or assistant",
            json!([{"role": "tool", "content": "x"}]),
        ),
        ("a message says something", json!([user(json!(""))])),
        ("a message says something", json!([user(json!([]))])),
        (
            "a part of a content is known and of its role",
            json!([user(json!([{"type": "output_text", "text": "x"}]))]),
        ),
        (
            "a part of a content is known and of its role",
            json!([assistant(json!([{"type": "input_text", "text": "x"}]))]),
        ),
        (
            "a part of a content is whole",
            json!([user(json!([{"type": "input_text", "text": ""}]))]),
        ),
        (
            "a part of a content is whole",
            json!([user(json!([{"type": "input_file", "file_data": "AAAA"}]))]),
        ),
        (
            "a call has a legal call id",
            json!([q(), call("a|b"), output("a|b")]),
        ),
        (
            "a call has a legal call id",
            json!([q(), call(&"c".repeat(65)), output(&"c".repeat(65))]),
        ),
        ("a call has a legal name", with("name", json!("a.b"))),
        (
            "a call has JSON in a string as arguments",
            with("arguments", json!({})),
        ),
        (
            "an item's id is legal and of its type",
            with("id", json!("call_1")),
        ),
        (
            "an item's id is legal and of its type",
            json!([
                q(),
                reasoning(&format!("rs_{}", "x".repeat(64))),
                call("c"),
                output("c")
            ]),
        ),
        (
            "an item's id is legal and of its type",
            json!([q(), {"type": "reasoning", "summary": []}, call("c"), output("c")]),
        ),
        (
            "the ids of all items are different",
            json!([q(), reasoning("rs_1"), reasoning("rs_1"), assistant(json!("a"))]),
        ),
        (
            "the ids of all calls are different",
            json!([q(), call("c"), call("c"), output("c")]),
        ),
        ("an output says something", put(json!(""))),
        ("an output says something", put(json!([]))),
        ("an output says something", put(json!({"a": 1}))),
        ("an output follows its call", json!([q(), output("c")])),
        ("every call has one output", json!([q(), call("c")])),
        (
            "every call has one output",
            json!([q(), call("c"), output("c"), output("c")]),
        ),
        (
            "reasoning has a summary",
            json!([q(), {"type": "reasoning", "id": "rs_1"}, assistant(json!("a"))]),
        ),
        (
            "reasoning is followed by what it led to",
            json!([q(), reasoning("rs_1")]),
        ),
        (
            "reasoning is followed by what it led to",
            json!([q(), reasoning("rs_1"), q()]),
        ),
    ];
    check(Format::OpenaiResponses, &fine, &with_form(cases));
}
