//! Properties over conversations that no one would write on purpose.

use crate::support::{call, calls, entries, items, quarter_chars, result};

use colloquy_context::prune::{PruneInput, prune};
use colloquy_context::repair::repair;
use colloquy_context::{
    BuildError, BuildInput, BuildOptions, Format, Item, PruneOptions, Tokenizer, Watermarks, build,
};
use colloquy_types::Seq;
use colloquy_types::message::{
    Completion, Media, MediaData, MediaKind, Message, Part, RawBlock, Role, Thinking, ToolResult,
};
use colloquy_types::policy::HistoryMode;
use proptest::prelude::*;
use serde_json::Value;

pub fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z ]{0,12}",
        1 => Just(String::new()),
        1 => Just(" \n\t".to_owned()),
        1 => Just("nul \0 inside".to_owned()),
        1 => "[語文字日本]{1,20}",
        1 => "[a語é🙂 \"\\\\]",
        1 => "[🙂👩‍👩‍👧🇩🇪]{1,6}",
        1 => "[שלוםمرحبا\u{202e}\u{200f}]{1,12}",
        1 => any::<String>(),
        1 => (4_001_usize..6_000).prop_map(|chars| "長".repeat(chars)),
    ]
}

fn any_id() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => prop::sample::select(vec!["c1", "c2", "c3"]).prop_map(str::to_owned),
        1 => Just(String::new()),
        1 => Just("id with / odd : characters".to_owned()),
        1 => Just("x".repeat(80)),
        1 => prop::sample::select(vec!["call_1|fc_1", "call_1|fc_2", "abcdefgh1"]).prop_map(str::to_owned),
    ]
}

fn any_call() -> impl Strategy<Value = Part> {
    let arguments = prop::sample::select(vec!["{}", "{\"a\": [1, \"\\u0000\"]}", "[]", "3", "", "{oops"]);
    let name = prop::sample::select(vec!["f", "read.file", "", "名前"]);
    (any_id(), name, arguments).prop_map(|(id, name, arguments)| call(&id, name, arguments))
}

fn any_media() -> impl Strategy<Value = Part> {
    let kind = prop::sample::select(vec![MediaKind::Image, MediaKind::Audio, MediaKind::File]);
    let mime = prop::sample::select(vec![
        "image/png",
        "image/tiff",
        "audio/wav",
        "application/pdf",
        "\"",
        "",
    ]);
    let data = prop_oneof![
        Just(MediaData::Inline("AAAA".to_owned())),
        Just(MediaData::Inline("not base64 \"".to_owned())),
        Just(MediaData::Inline(String::new())),
        Just(MediaData::Reference("https://example.com/x\"y".to_owned())),
        Just(MediaData::Reference("https:// two".to_owned())),
        Just(MediaData::Reference("file-7".to_owned())),
    ];
    (kind, mime, data).prop_map(|(kind, mime, data)| {
        Part::Media(Media {
            kind,
            mime: mime.into(),
            name: String::new(),
            data,
        })
    })
}

fn any_thinking() -> impl Strategy<Value = Part> {
    let reasoning = r#"{"type":"reasoning","id":"rs_1","summary":[]}"#;
    let signature = prop::sample::select(vec![None, Some(""), Some("sig"), Some("AAAA"), Some(reasoning)]);
    let provider = prop::sample::select(vec![
        None,
        Some("anthropic"),
        Some("openai"),
        Some("gemini"),
        Some("mistral"),
    ]);
    (any_text(), signature, provider, any::<bool>()).prop_map(|(text, signature, provider, redacted)| {
        Part::Thinking(Thinking {
            text,
            signature: signature.map(str::to_owned),
            provider: provider.map(str::to_owned),
            redacted,
        })
    })
}

fn any_result() -> impl Strategy<Value = Part> {
    let parts = prop::collection::vec(
        prop_oneof![4 => any_text().prop_map(Part::text), 1 => any_media()],
        0..3,
    );
    (any_id(), parts, any::<bool>()).prop_map(|(call_id, parts, is_error)| {
        Part::ToolResult(ToolResult {
            call_id,
            name: String::new(),
            parts,
            is_error,
        })
    })
}

fn any_user() -> impl Strategy<Value = Message> {
    let part = prop_oneof![6 => any_text().prop_map(Part::text), 1 => any_media(), 1 => any_result()];
    prop::collection::vec(part, 0..3).prop_map(|parts| Message::new(Role::User, parts))
}

/// Blocks as providers give them, and some that may not stand.
fn any_raw() -> impl Strategy<Value = Option<RawBlock>> {
    let json = prop::sample::select(vec![
        r#"[{"type":"text","text":"raw"}]"#,
        r#"[{"type":"thinking","thinking":"","signature":"s"},{"type":"tool_use","id":"c1","name":"f","input":{}}]"#,
        r#"[{"type":"reasoning","id":"rs_1","summary":[]},{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}"}]"#,
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
        r#"{"role":"assistant","content":"raw"}"#,
        r#"[{"functionCall":{"name":"f","args":{}}}]"#,
        r#"{"text":"raw","thoughtSignature":"AAAA"}"#,
        r#"[{"type":"text","text":" "}]"#,
        "{oops",
        "3",
    ]);
    let provider = prop::sample::select(vec!["anthropic", "openai", "gemini", "mistral"]);
    let raw = (provider, json).prop_map(|(provider, json)| RawBlock {
        provider: provider.to_owned(),
        json: json.to_owned(),
    });
    prop::option::weighted(0.3, raw)
}

fn any_assistant() -> impl Strategy<Value = Message> {
    let part = prop_oneof![
        3 => any_text().prop_map(Part::text),
        4 => any_call(),
        1 => any_thinking(),
        1 => any_result(),
    ];
    let completion = prop_oneof![5 => Just(Completion::Complete), 1 => Just(Completion::Aborted), 1 => Just(Completion::Error)];
    (prop::collection::vec(part, 0..5), completion, any_raw()).prop_map(|(parts, completion, raw)| Message {
        completion,
        raw,
        ..calls(parts)
    })
}

fn any_message() -> impl Strategy<Value = Message> {
    let tool = prop::collection::vec(
        prop_oneof![9 => any_result(), 1 => any_text().prop_map(Part::text)],
        0..3,
    );
    prop_oneof![
        3 => any_user(),
        4 => any_assistant(),
        4 => tool.prop_map(|parts| Message::new(Role::Tool, parts)),
        1 => any_text().prop_map(|text| Message::new(Role::System, vec![Part::text(text)])),
    ]
}

/// A whole exchange, so that real pairs are common too.
fn any_exchange() -> impl Strategy<Value = Vec<Message>> {
    let pair = (any_user(), any_text()).prop_map(|(user, text)| {
        let both = Message::new(Role::Tool, vec![result("c2", &text), result("c1", "ok")]);
        vec![
            user,
            calls(vec![call("c1", "f", "{}"), call("c2", "f", "{}")]),
            both,
            Message::assistant("done"),
        ]
    });
    prop_oneof![2 => any_message().prop_map(|message| vec![message]), 1 => pair]
}

pub fn any_conversation(most: usize) -> impl Strategy<Value = Vec<Message>> {
    prop::collection::vec(any_exchange(), 0..most).prop_map(|exchanges| exchanges.concat())
}

/// Every string in a request.
fn strings(value: &Value, into: &mut String) {
    match value {
        Value::String(text) => {
            into.push_str(text);
            into.push('\n');
        }
        Value::Array(values) => values.iter().for_each(|value| strings(value, into)),
        Value::Object(fields) => fields.values().for_each(|value| strings(value, into)),
        _ => {}
    }
}

fn written_by_people(messages: &[Message]) -> impl Iterator<Item = &str> {
    let people = messages.iter().filter(|message| message.role == Role::User);
    people
        .flat_map(|message| &message.parts)
        .filter_map(|part| match part {
            Part::Text { text } if !text.trim().is_empty() => Some(text.trim_end()),
            _ => None,
        })
}

/// Which results the rules protect: up to the first user message, and from the third-last assistant on.
fn is_protected(view: &[Item<'_>], at: usize) -> bool {
    let first_user = view.iter().position(|item| item.message.role == Role::User);
    let assistants: Vec<usize> = (0..view.len())
        .filter(|&at| view[at].message.role == Role::Assistant)
        .collect();
    let third_last = assistants.len().checked_sub(3).map(|from| assistants[from]);
    first_user.is_none_or(|first| at <= first) || third_last.is_none_or(|third| at >= third)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn builds_are_valid_repeatable_and_lose_nothing_a_person_wrote(
        history in any_conversation(14),
        pending in prop::collection::vec(any_user(), 0..3),
        staged in any_conversation(4),
        window in prop::sample::select(vec![600_u32, 4_000, 20_000, 200_000]),
        openclaw in any::<bool>(),
        soft in 0_i64..10,
    ) {
        let stored = entries(history.clone());
        for format in Format::ALL {
            let input = BuildInput {
                pending: &pending,
                staged: &staged,
                recalled: "a memory",
                tokenizer: Tokenizer::Estimate,
                options: if openclaw { BuildOptions::openclaw() } else { BuildOptions::goclaw() },
                watermarks: Watermarks { soft: Seq(soft), hard: Seq(soft / 2) },
                ..BuildInput::new(&stored, window, format)
            };
            let built = match build(&input) {
                Ok(built) => built,
                Err(error) => {
                    prop_assert_eq!(error, BuildError::NothingToSend);
                    continue;
                }
            };
            prop_assert!(built.watermarks.soft >= input.watermarks.soft);
            prop_assert!(built.watermarks.hard >= input.watermarks.hard);
            let mut sent = String::new();
            strings(&serde_json::from_slice(&built.bytes).unwrap(), &mut sent);
            for text in [&history, &pending, &staged].into_iter().flat_map(|messages| written_by_people(messages)) {
                prop_assert!(sent.contains(text), "{text:?} is lost");
            }
            prop_assert_eq!(build(&input).unwrap(), built);
        }
    }

    #[test]
    fn limits_and_calls_only_keep_requests_valid(
        history in any_conversation(14),
        turns in 0_u32..4,
        mode in prop::sample::select(vec![HistoryMode::Full, HistoryMode::CallsOnly]),
    ) {
        let stored = entries(history);
        for format in Format::ALL {
            let options = BuildOptions { limit_turns: turns, history_mode: mode, ..BuildOptions::goclaw() };
            let built = build(&BuildInput { options, ..BuildInput::new(&stored, 4_000, format) });
            prop_assert!(matches!(built, Ok(_) | Err(BuildError::NothingToSend)), "{built:?}");
        }
    }

    #[test]
    fn repairing_twice_changes_nothing(history in any_conversation(16)) {
        let (once, _) = repair(items(&history, &quarter_chars), &quarter_chars);
        let (twice, actions) = repair(once.clone(), &quarter_chars);
        prop_assert_eq!(&twice, &once);
        prop_assert!(actions.is_empty(), "{:?}", actions);
    }

    #[test]
    fn a_view_in_order_is_not_touched(history in any_conversation(16)) {
        let (once, _) = repair(items(&history, &quarter_chars), &quarter_chars);
        let clean: Vec<Message> = once.iter().map(|item| item.message.clone().into_owned()).collect();
        let view = items(&clean, &quarter_chars);
        prop_assert_eq!(repair(view.clone(), &quarter_chars).0, view);
    }

    #[test]
    fn pruning_touches_results_alone_and_none_that_is_protected(
        history in any_conversation(16),
        window in 100_u32..20_000,
    ) {
        let mut view = items(&history, &quarter_chars);
        let protected: Vec<bool> = (0..view.len()).map(|at| is_protected(&view, at)).collect();
        let input = PruneInput { window, watermarks: Watermarks::default(), cache_cold: true, may_move: true };
        let pruned = prune(&mut view, &PruneOptions::goclaw(), &input, &quarter_chars);
        for (at, item) in view.iter().enumerate() {
            let original = &history[at];
            prop_assert!(!protected[at] || item.message.as_ref() == original);
            prop_assert_eq!(item.message.text(), original.text());
            prop_assert_eq!(item.message.parts.len(), original.parts.len());
            prop_assert!(item.seq().is_some());
        }
        let mut again = items(&history, &quarter_chars);
        let later = PruneInput { watermarks: pruned.watermarks, may_move: false, ..input };
        prune(&mut again, &PruneOptions::goclaw(), &later, &quarter_chars);
        for (one, other) in view.iter().zip(&again) {
            prop_assert_eq!(&one.message, &other.message);
        }
    }
}
