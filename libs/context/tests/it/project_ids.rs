//! Tool ids in the alphabet of each provider.

use crate::support::{call, calls, items, tool};
use colloquy_context::Format;
use colloquy_context::project::project;
use colloquy_context::repair::repair;
use colloquy_context::validate::validate;
use colloquy_types::message::Message;
use serde_json::Value;

/// The ids of calls and of results, in order.
fn sent(format: Format, ids: &[&str]) -> (Vec<String>, Vec<String>) {
    let mut messages = vec![Message::user("q")];
    for id in ids {
        messages.extend([calls(vec![call(id, "f", "{}")]), tool(id, "r")]);
    }
    let (view, _) = repair(items(&messages, &|_| 1), &|_| 1);
    let bytes = project(format, &view).unwrap().bytes;
    assert_eq!(validate(format, &bytes), [], "{format}");
    let (mut called, mut answered) = (Vec::new(), Vec::new());
    collect(
        &serde_json::from_slice(&bytes).unwrap(),
        "",
        &mut called,
        &mut answered,
    );
    (called, answered)
}

/// The ids of calls and of results in a request of any format.
pub fn collect(value: &Value, within: &str, called: &mut Vec<String>, answered: &mut Vec<String>) {
    match value {
        Value::Array(values) => values
            .iter()
            .for_each(|value| collect(value, within, called, answered)),
        Value::Object(fields) => {
            let kind = fields.get("type").and_then(Value::as_str).unwrap_or(within);
            for (key, value) in fields {
                match (key.as_str(), kind, value.as_str()) {
                    ("id", "tool_use" | "tool_call" | "function" | "functionCall", Some(id)) => {
                        called.push(id.to_owned())
                    }
                    ("call_id", "function_call", Some(id)) => called.push(id.to_owned()),
                    ("tool_use_id" | "tool_call_id" | "call_id", _, Some(id)) => answered.push(id.to_owned()),
                    ("id", "functionResponse", Some(id)) => answered.push(id.to_owned()),
                    _ => collect(value, key, called, answered),
                }
            }
        }
        _ => {}
    }
}

const WIRE: [Format; 6] = [
    Format::OpenaiChat,
    Format::OpenaiChatStrict,
    Format::OpenaiResponses,
    Format::Anthropic,
    Format::Gemini,
    Format::Mistral,
];

#[test]
fn a_result_has_the_id_of_its_call_and_all_calls_differ() {
    let long = "x".repeat(80);
    let ids = [
        "abcdefgh1",
        "toolu_01",
        "call|fc_1",
        "call|fc_2",
        "call",
        "a b",
        "a/b",
        "é",
        &long,
        "a b",
        "abcdefgh1",
        "null",
    ];
    for format in WIRE {
        let (called, answered) = sent(format, &ids);
        assert_eq!(called.len(), ids.len());
        assert_eq!(called, answered, "{format}");
        let mut different = called.clone();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), ids.len(), "{format}: {called:?}");
    }
}

#[test]
fn legal_ids_stay_and_the_half_of_a_pair_is_one() {
    assert_eq!(sent(Format::Mistral, &["abcdefgh1"]).0, ["abcdefgh1"]);
    assert_eq!(
        sent(Format::OpenaiChat, &["toolu_01", &"x".repeat(40)]).0,
        ["toolu_01", &"x".repeat(40)]
    );
    assert_ne!(sent(Format::OpenaiChat, &[&"x".repeat(41)]).0, ["x".repeat(41)]);
    assert_eq!(sent(Format::Anthropic, &[&"x".repeat(64)]).0, ["x".repeat(64)]);
    assert_eq!(sent(Format::OpenaiResponses, &["call_1|fc_1"]).0, ["call_1"]);
}

#[test]
fn an_id_is_rewritten_the_same_whatever_follows() {
    let ids = ["a b", "call|fc_1", "call", "é", "a b", "toolu_01"];
    for format in WIRE {
        let (all, _) = sent(format, &ids);
        for end in 1..ids.len() {
            assert_eq!(sent(format, &ids[..end]).0, all[..end], "{format}");
        }
    }
}

#[test]
fn an_id_that_reads_like_a_rewritten_one_does_not_meet_it() {
    for format in WIRE {
        let rewritten = sent(format, &["a b"]).0.remove(0);
        for ids in [["a b", &rewritten], [&rewritten, "a b"]] {
            let (called, answered) = sent(format, &ids);
            assert_ne!(called[0], called[1], "{format}");
            assert_eq!(called, answered);
        }
    }
}

#[test]
fn many_ids_of_nine_characters_do_not_meet() {
    let ids: Vec<String> = (0..3_000).map(|at| format!("toolu_{at}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let (mut called, _) = sent(Format::Mistral, &ids);
    called.sort();
    called.dedup();
    assert_eq!(called.len(), ids.len());
}
