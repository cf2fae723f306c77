//! Gemini's rules, each broken once.

use crate::validate_rules::{check, with_form};
use colloquy_context::Format;
use serde_json::{Value, json};

#[test]
fn gemini_rules() {
    let user = |parts: Value| json!({"role": "user", "parts": parts});
    let model = |parts: Value| json!({"role": "model", "parts": parts});
    let text = |text: &str| json!({"text": text});
    let q = || user(json!([text("q")]));
    let call = |id: &str| json!({"functionCall": {"id": id, "name": "f", "args": {}}});
    let response =
        |id: &str| json!({"functionResponse": {"id": id, "name": "f", "response": {"output": "r"}}});
    let looped = |call: Value, response: Value| json!([q(), model(json!([call])), user(json!([response]))]);
    let changed = |pointer: &str, value: Value| {
        let mut part = call("c");
        *part.pointer_mut(pointer).unwrap() = value;
        part
    };
    let fine = json!([
        user(json!([text("q"), {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}])),
        model(
            json!([text("looking"), {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "AAAA"}, call("c2")])
        ),
        user(json!([{"functionResponse": {"name": "f", "response": {}}}, response("c2"), text("and?")])),
        model(json!([text("a"), {"text": "", "thoughtSignature": "AAAA"}])),
    ]);
    let cases = vec![
        (
            "a role is user or model",
            json!([q(), {"role": "assistant", "parts": [text("a")]}]),
        ),
        (
            "the first content is the user's",
            json!([model(json!([text("a")]))]),
        ),
        ("roles alternate", json!([q(), q()])),
        ("a content has parts", json!([user(json!([]))])),
        (
            "a part holds one thing",
            json!([user(
                json!([{"text": "x", "functionResponse": null, "inlineData": {"mimeType": "image/png", "data": "AAAA"}}])
            )]),
        ),
        ("a part holds one thing", json!([user(json!([{}]))])),
        ("a text is not blank", json!([user(json!([text(" ")]))])),
        (
            "media has a type and base64 or an address",
            json!([user(
                json!([{"inlineData": {"mimeType": "image/png", "data": "?"}}])
            )]),
        ),
        (
            "media has a type and base64 or an address",
            json!([user(json!([{"fileData": {"fileUri": "https://x.y"}}]))]),
        ),
        (
            "the model calls, the user responds",
            json!([user(json!([call("c")])), model(json!([response("c")]))]),
        ),
        (
            "a call has a legal name",
            looped(changed("/functionCall/name", json!("a.b")), {
                let mut part = response("c");
                part["functionResponse"]["name"] = json!("a.b");
                part
            }),
        ),
        (
            "a call has an object as arguments",
            looped(changed("/functionCall/args", json!([1])), response("c")),
        ),
        (
            "a call has a legal id where it has one",
            looped(call("a|b"), response("a|b")),
        ),
        (
            "the ids of all calls are different",
            json!([
                q(),
                model(json!([call("c"), call("c")])),
                user(json!([response("c"), response("c")]))
            ]),
        ),
        (
            "a response has an object",
            looped(
                call("c"),
                json!({"functionResponse": {"id": "c", "name": "f", "response": "r"}}),
            ),
        ),
        (
            "responses are as many as the calls before, by order, name and id",
            looped(
                call("c"),
                json!({"functionResponse": {"id": "c", "name": "g", "response": {}}}),
            ),
        ),
        (
            "responses are as many as the calls before, by order, name and id",
            json!([q(), model(json!([call("c")]))]),
        ),
        (
            "responses are as many as the calls before, by order, name and id",
            json!([user(json!([response("c")]))]),
        ),
        (
            "responses are as many as the calls before, by order, name and id",
            looped(call("c"), response("d")),
        ),
        (
            "a signature is base64",
            json!([q(), model(json!([{"text": "a", "thoughtSignature": "not so!"}]))]),
        ),
    ];
    check(Format::Gemini, &fine, &with_form(cases));
}
