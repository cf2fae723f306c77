//! Anthropic's rules, each broken once.

use crate::validate_rules::{assistant, block, check, user, with_form};
use colloquy_context::Format;
use serde_json::{Value, json};

#[test]
fn anthropic_rules() {
    let q = || user(json!([block("q")]));
    let used = |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
    let answer = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": [block("r")]});
    let image = |source: Value| json!({"type": "image", "source": source});
    let base64 = |mime: &str, data: &str| json!({"type": "base64", "media_type": mime, "data": data});
    let thinking = json!({"type": "thinking", "thinking": "t", "signature": "s"});
    let looped = |used: Value, answer: Value| json!([q(), assistant(json!([used])), user(json!([answer]))]);
    let with = |change: Value| {
        let mut block = used("c");
        block
            .as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        block
    };
    let fine = json!([
        user(json!([
            block("q"),
            image(base64("image/png", "AAAA")),
            image(json!({"type": "url", "url": "https://x.y/z"}))
        ])),
        assistant(json!([thinking, block("looking"), used("c1"), used("c2")])),
        user(json!([answer("c1"), answer("c2"), block("and?")])),
        assistant(json!([{"type": "redacted_thinking", "data": "d"}, block("a")])),
    ]);
    let cases = vec![
        (
            "a role is user or assistant",
            json!([q(), {"role": "system", "content": [block("s")]}]),
        ),
        (
            "the first message is the user's",
            json!([assistant(json!([block("a")]))]),
        ),
        ("roles alternate", json!([q(), q()])),
        (
            "a message has a list of content blocks",
            json!([user(json!("q"))]),
        ),
        ("a message has a list of content blocks", json!([user(json!([]))])),
        (
            "a block is known and of its role",
            json!([user(json!([{"type": "video"}]))]),
        ),
        (
            "a block is known and of its role",
            json!([user(json!([thinking, block("q")]))]),
        ),
        ("a text is not blank", json!([user(json!([block(" \n")]))])),
        (
            "a text is not blank",
            json!([user(json!([{"type": "text", "text": 5}]))]),
        ),
        (
            "thinking is signed",
            json!([
                q(),
                assistant(json!([{"type": "thinking", "thinking": "t", "signature": " "}, block("a")]))
            ]),
        ),
        (
            "an attachment has a source the API takes",
            json!([user(json!([image(base64("image/tiff", "AAAA"))]))]),
        ),
        (
            "an attachment has a source the API takes",
            json!([user(json!([image(base64("image/png", "not base64"))]))]),
        ),
        (
            "an attachment has a source the API takes",
            json!([user(json!([image(json!({"type": "url", "url": "http://x.y"}))]))]),
        ),
        (
            "an answer does not end in thinking",
            json!([q(), assistant(json!([block("a"), thinking]))]),
        ),
        (
            "the last answer does not end in white space",
            json!([q(), assistant(json!([block("a ")]))]),
        ),
        ("a tool use has a legal id", looped(used("c 1"), answer("c 1"))),
        (
            "a tool use has a legal id",
            looped(used(&"c".repeat(65)), answer(&"c".repeat(65))),
        ),
        (
            "a tool use has a legal name",
            looped(with(json!({"name": "a.b"})), answer("c")),
        ),
        (
            "a tool use has an object as input",
            looped(with(json!({"input": [1]})), answer("c")),
        ),
        (
            "the ids of all tool uses are different",
            json!([
                q(),
                assistant(json!([used("c")])),
                user(json!([answer("c")])),
                assistant(json!([used("c")])),
                user(json!([answer("c")]))
            ]),
        ),
        (
            "a result holds text and attachments",
            looped(
                used("c"),
                json!({"type": "tool_result", "tool_use_id": "c", "content": [block("")]}),
            ),
        ),
        (
            "a result holds text and attachments",
            looped(
                used("c"),
                json!({"type": "tool_result", "tool_use_id": "c", "content": [used("d")]}),
            ),
        ),
        (
            "results stand first in their message",
            json!([
                q(),
                assistant(json!([used("c")])),
                user(json!([block("x"), answer("c")]))
            ]),
        ),
        (
            "a result follows the message of its tool use",
            json!([user(json!([answer("c"), block("q")]))]),
        ),
        (
            "every tool use has one result in the next message",
            json!([q(), assistant(json!([used("c")]))]),
        ),
        (
            "every tool use has one result in the next message",
            json!([
                q(),
                assistant(json!([used("c")])),
                user(json!([answer("c"), answer("c")]))
            ]),
        ),
    ];
    check(Format::Anthropic, &fine, &with_form(cases));
}
