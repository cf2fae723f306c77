//! Bytes that no one would send: the reader of messages, all projections and their rules never panic.
//!
//! `COLLOQUY_FUZZ_CASES` sets the number of cases of each test, for long runs.

use crate::generated::any_conversation;
use crate::support::{items, quarter_chars};
use colloquy_context::Format;
use colloquy_context::project::project;
use colloquy_context::repair::repair;
use colloquy_context::validate::validate;
use colloquy_types::message::{Message, Part};
use proptest::prelude::*;

fn config(cases: u32) -> ProptestConfig {
    let knob = std::env::var("COLLOQUY_FUZZ_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: knob.unwrap_or(cases),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Projects what may be unrepaired: only a repaired view must be valid.
fn project_all(messages: &[Message]) {
    let view = items(messages, &quarter_chars);
    for format in Format::ALL {
        if let Ok(projected) = project(format, &view) {
            let _ = validate(format, &projected.bytes);
        }
    }
    let (view, _) = repair(view, &quarter_chars);
    for format in Format::ALL {
        if let Ok(projected) = project(format, &view) {
            let text = String::from_utf8_lossy(&projected.bytes);
            assert_eq!(validate(format, &projected.bytes), [], "{format}: {text}");
            for at in 0..projected.sources.len() {
                assert!(
                    projected
                        .sources
                        .get(at)
                        .unwrap()
                        .iter()
                        .all(|&item| item < view.len())
                );
            }
        }
    }
}

/// Reads bytes as a message and as a part, and carries on with what could be read.
fn read(bytes: &[u8]) {
    if let Ok(part) = serde_json::from_slice::<Part>(bytes) {
        let again: Part = serde_json::from_slice(&serde_json::to_vec(&part).unwrap()).unwrap();
        assert_eq!(again, part);
        project_all(&[Message::new(colloquy_types::message::Role::Assistant, vec![part])]);
    }
    if let Ok(message) = serde_json::from_slice::<Message>(bytes) {
        let again: Message = serde_json::from_slice(&serde_json::to_vec(&message).unwrap()).unwrap();
        assert_eq!(again, message);
        project_all(&[message]);
    }
    if let Ok(messages) = serde_json::from_slice::<Vec<Message>>(bytes) {
        project_all(&messages);
    }
}

/// A change of a text's bytes: one set, some cut out, some doubled.
#[derive(Debug, Clone)]
enum Change {
    Set(prop::sample::Index, u8),
    Cut(prop::sample::Index, usize),
    Double(prop::sample::Index, usize),
    Swap(prop::sample::Index, prop::sample::Index),
}

fn any_change() -> impl Strategy<Value = Change> {
    let at = any::<prop::sample::Index>;
    let byte = prop_oneof![
        prop::sample::select(b"\"\\{}[],:0-eu \n\x00\x1f\xff".to_vec()),
        any::<u8>()
    ];
    prop_oneof![
        4 => (at(), byte).prop_map(|(at, byte)| Change::Set(at, byte)),
        1 => (at(), 1_usize..40).prop_map(|(at, len)| Change::Cut(at, len)),
        1 => (at(), 1_usize..200).prop_map(|(at, len)| Change::Double(at, len)),
        1 => (at(), at()).prop_map(|(one, other)| Change::Swap(one, other)),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    if bytes.is_empty() {
        return;
    }
    match change {
        Change::Set(at, byte) => {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        Change::Cut(at, len) => {
            let at = at.index(bytes.len());
            bytes.drain(at..(at + len).min(bytes.len()));
        }
        Change::Double(at, len) => {
            let at = at.index(bytes.len());
            let piece = bytes[at..(at + len).min(bytes.len())].to_vec();
            bytes.splice(at..at, piece);
        }
        Change::Swap(one, other) => {
            let (one, other) = (one.index(bytes.len()), other.index(bytes.len()));
            bytes.swap(one, other);
        }
    }
}

fn any_changes() -> impl Strategy<Value = Vec<Change>> {
    prop::collection::vec(any_change(), 0..6)
}

/// Strings of parts with what readers trip over: escapes, surrogates, JSON within JSON, depth.
fn odd_string() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[\\PC\\x00-\\x1f\"\\\\]{0,40}",
        prop::collection::vec(any::<char>(), 0..30).prop_map(String::from_iter),
        prop::sample::select(vec![
            "{\"a\":\"\\ud800\"}",
            "{\"a\":1,\"a\":2}",
            "1e999",
            "-0",
            "[]",
            "{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[]}",
            "\u{feff}{}",
            "https://",
            "https://x",
            "data:",
            "AAAA",
            "AAA=",
            "====",
            "NaN",
            "{} ",
            "null",
            "|",
            "a|",
            "|b",
            "a|b|c",
        ])
        .prop_map(str::to_owned),
        (1_usize..300).prop_map(|depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth))),
        (1_usize..300).prop_map(|depth| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth))),
    ]
}

/// Parts whose every string is odd.
fn odd_part() -> impl Strategy<Value = serde_json::Value> {
    let kind = prop::sample::select(vec!["text", "media", "tool_call", "tool_result", "thinking"]);
    let provider = prop::sample::select(vec!["anthropic", "openai", "openai_chat", "gemini", "mistral"]);
    let id = prop_oneof![2 => Just("c1".to_owned()), 1 => odd_string()];
    let media = prop::sample::select(vec!["image", "audio", "file"]);
    let mime = prop_oneof![
        prop::sample::select(vec!["image/png", "audio/wav", "application/pdf"]).prop_map(str::to_owned),
        odd_string()
    ];
    let data = prop::sample::select(vec!["inline", "reference"]);
    (kind, provider, id, media, mime, data, odd_string(), odd_string()).prop_map(
        |(kind, provider, id, media, mime, data, one, other)| {
            serde_json::json!({
                "type": kind, "text": one, "provider": provider, "signature": other, "id": id, "name": one, "arguments": other,
                "call_id": id, "parts": [{"type": "text", "text": other}, {"type": "media", "kind": media, "mime": mime, "data": {data: one}}],
                "kind": media, "mime": mime, "data": {data: other}, "redacted": other.len() % 2 == 0,
            })
        },
    )
}

fn odd_message() -> impl Strategy<Value = serde_json::Value> {
    let role = prop::sample::select(vec!["user", "assistant", "assistant", "tool", "system"]);
    let raw = (
        prop::sample::select(vec!["anthropic", "openai", "gemini"]),
        prop_oneof![odd_string(), odd_block()],
    );
    let parts = prop::collection::vec(odd_part(), 0..5);
    (role, parts, prop::option::weighted(0.3, raw)).prop_map(|(role, parts, raw)| {
        let raw = raw.map(|(provider, json)| serde_json::json!({"provider": provider, "json": json}));
        serde_json::json!({"role": role, "parts": parts, "raw": raw})
    })
}

/// A provider's own block with one odd string in it.
fn odd_block() -> impl Strategy<Value = String> {
    let shape = prop::sample::select(vec![
        r#"[{"type":"text","text":?}]"#,
        r#"[{"type":"tool_use","id":"c1","name":"f","input":{"a":?}}]"#,
        r#"[{"type":"thinking","thinking":?,"signature":?},{"type":"text","text":"a"}]"#,
        r#"[{"type":"function_call","id":?,"call_id":"c1","name":"f","arguments":?}]"#,
        r#"{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":?}]}"#,
        r#"{"text":?,"thoughtSignature":?}"#,
        r#"[{"functionCall":{"name":?,"args":{"a":?}}}]"#,
        r#"{"role":"assistant","content":?}"#,
    ]);
    let value = (odd_string(), any::<bool>()).prop_map(|(text, is_raw)| {
        if is_raw {
            text
        } else {
            serde_json::json!(text).to_string()
        }
    });
    (shape, value).prop_map(|(shape, value)| shape.replace('?', &value))
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read(&bytes);
        for format in Format::ALL {
            let _ = validate(format, &bytes);
        }
    }

    #[test]
    fn changed_messages_are_read_and_projected_without_panic(history in any_conversation(6), changes in any_changes()) {
        let mut bytes = serde_json::to_vec(&history).unwrap();
        changes.iter().for_each(|change| apply(&mut bytes, change));
        read(&bytes);
        for message in &history {
            let mut bytes = serde_json::to_vec(message).unwrap();
            changes.iter().for_each(|change| apply(&mut bytes, change));
            read(&bytes);
        }
    }

    #[test]
    fn odd_messages_are_read_and_projected_without_panic(messages in prop::collection::vec(odd_message(), 0..8), changes in any_changes()) {
        let mut bytes = serde_json::to_vec(&messages).unwrap();
        read(&bytes);
        changes.iter().for_each(|change| apply(&mut bytes, change));
        read(&bytes);
    }

    #[test]
    fn changed_requests_are_judged_without_panic(history in any_conversation(6), changes in any_changes()) {
        let (view, _) = repair(items(&history, &quarter_chars), &quarter_chars);
        for format in Format::ALL {
            let Ok(projected) = project(format, &view) else { continue };
            let mut bytes = projected.bytes;
            changes.iter().for_each(|change| apply(&mut bytes, change));
            for format in Format::ALL {
                let _ = validate(format, &bytes);
            }
        }
    }
}
