//! Every rule of every format is broken once, by a request that breaks no other.

use colloquy_context::Format;
use colloquy_context::validate::{rules, validate};
use serde_json::{Value, json};
use std::collections::BTreeSet;

type Case = (&'static str, Value);

/// Checks the cases of a format: each names its rule and no other, and no rule is without a case.
#[track_caller]
fn check(format: Format, fine: &Value, cases: &[Case]) {
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

fn with_form(mut cases: Vec<Case>) -> Vec<Case> {
    cases.push(("a request is a list of messages", json!({})));
    cases.push(("a request has a message", json!([])));
    cases
}

#[test]
fn bytes_that_are_no_json_are_no_request() {
    for bytes in [&b""[..], b"[", b"[{}]x", b"[\"\xff\"]", b"[1]", b"[[[[[[[["] {
        for format in Format::ALL {
            assert_eq!(validate(format, bytes)[0].rule, "a request is a list of messages");
        }
    }
}

fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

fn assistant(content: Value) -> Value {
    json!({"role": "assistant", "content": content})
}

fn block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

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
