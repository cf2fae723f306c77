//! One conversation that several providers have a part in.

use crate::support::{call, calls, items, tool};
use colloquy_context::Format;
use colloquy_context::project::project;
use colloquy_context::repair::repair;
use colloquy_context::validate::validate;
use colloquy_types::message::{Message, Part, RawBlock, Thinking};

const REASONING: &str = r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"b3BlbmFp"}"#;

/// A provider with the id its calls have, and the signature of its thinking.
const PROVIDERS: [(&str, &str, &str); 5] = [
    ("anthropic", "toolu_01ABC", "YW50aHJvcGlj"),
    ("openai", "call_1|fc_1", REASONING),
    ("openai_chat", "call_9KzXy", "Y2hhdA=="),
    ("gemini", "", "Z2VtaW5p"),
    ("mistral", "abcdefgh1", "bWlzdHJhbA=="),
];

fn thinking(provider: &str, signature: &str) -> Part {
    Part::Thinking(Thinking {
        text: format!("{provider} thinks"),
        signature: Some(signature.to_owned()),
        provider: Some(provider.to_owned()),
        redacted: false,
    })
}

/// Each provider in turn answers with a loop of one call; `round` makes the ids of a second round the same.
fn conversation(rounds: usize) -> Vec<Message> {
    let mut messages = Vec::new();
    for round in 0..rounds {
        for (provider, id, signature) in PROVIDERS {
            // Gemini gives no ids; the product's worker makes one up.
            let id = if id.is_empty() {
                format!("made-up/{round}")
            } else {
                id.to_owned()
            };
            messages.push(Message::user(format!("question for {provider}")));
            messages.push(calls(vec![
                thinking(provider, signature),
                Part::text("looking"),
                call(&id, "read.file", "[1]"),
            ]));
            messages.push(tool(&id, "result"));
            messages.push(calls(vec![
                thinking(provider, signature),
                Part::text(format!("{provider} answers")),
            ]));
        }
    }
    messages
}

fn sent(format: Format, messages: &[Message]) -> String {
    let (view, _) = repair(items(messages, &|_| 1), &|_| 1);
    let bytes = project(format, &view).unwrap().bytes;
    assert_eq!(validate(format, &bytes), [], "{format}");
    String::from_utf8(bytes).unwrap()
}

#[test]
fn every_prefix_of_a_conversation_of_five_providers_is_valid_for_each() {
    let all = conversation(3);
    for format in Format::ALL {
        for end in 1..=all.len() {
            sent(format, &all[..end]);
        }
    }
}

#[test]
fn a_signature_goes_back_to_its_provider_alone() {
    for (last, (_, _, signature)) in PROVIDERS.iter().enumerate() {
        // The provider's own turn is the running one.
        let messages = &conversation(1)[..last * 4 + 4];
        let inner = signature
            .rsplit_once(r#":""#)
            .map_or(*signature, |(_, data)| data.trim_end_matches(r#""}"#));
        for format in Format::ALL {
            let is_own = matches!(
                (format, last),
                (Format::Anthropic, 0) | (Format::OpenaiResponses, 1) | (Format::Gemini, 3)
            );
            let is_kept = format == Format::Neutral || is_own;
            assert_eq!(
                sent(format, messages).contains(inner),
                is_kept,
                "{signature} to {format}"
            );
        }
    }
}

#[test]
fn going_to_another_provider_and_back_leaves_what_was_sent() {
    let all = conversation(2);
    for format in Format::ALL
        .into_iter()
        .filter(|format| *format != Format::Anthropic)
    {
        for turn in 1..all.len() / 4 {
            // The question is the last that was sent.
            let before = sent(format, &all[..turn * 4 + 1]);
            let open = before.trim_end_matches([']', '}', '"']);
            assert!(sent(format, &all).starts_with(open), "{format}: turn {turn}");
        }
    }
}

#[test]
fn raw_blocks_go_to_the_provider_they_came_from_alone() {
    let raw = |provider: &str, json: &str| {
        let mut answer = calls(vec![Part::text("a")]);
        answer.raw = Some(RawBlock {
            provider: provider.into(),
            json: json.into(),
        });
        [Message::user("q"), answer, Message::user("and?")]
    };
    let blocks = [
        (
            "anthropic",
            Format::Anthropic,
            r#"[ {"type":"text","text":"a" , "extra":"anthropic!"} ]"#,
        ),
        (
            "openai",
            Format::OpenaiResponses,
            r#"{ "type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[]}] }"#,
        ),
        (
            "openai_chat",
            Format::OpenaiChat,
            r#"{ "role":"assistant","content":"a","reasoning_content":"kept" }"#,
        ),
        (
            "gemini",
            Format::Gemini,
            r#"[{"text":"a" },{"text":"","thoughtSignature":"AAAA"}]"#,
        ),
    ];
    for (provider, own, json) in blocks {
        let inner = json.trim_start_matches('[').trim_end_matches(']').trim();
        for format in Format::ALL
            .into_iter()
            .filter(|format| *format != Format::Neutral)
        {
            let is_there = sent(format, &raw(provider, json)).contains(inner);
            assert_eq!(is_there, format == own, "{provider} to {format}");
        }
    }
}

#[test]
fn raw_blocks_that_cannot_stand_are_rendered_anew() {
    let raw = |provider: &str, json: &str| {
        let mut answer = calls(vec![Part::text("fine"), call("c1", "f", "{}")]);
        answer.raw = Some(RawBlock {
            provider: provider.into(),
            json: json.into(),
        });
        [Message::user("q"), answer, tool("c1", "r")]
    };
    let deep = format!(
        r#"[{{"type":"tool_use","id":"c1","name":"f","input":{{"a":{}1{}}}}}]"#,
        "[".repeat(110),
        "]".repeat(110)
    );
    let cases = [
        (
            "anthropic",
            Format::Anthropic,
            r#"[{"type":"tool_use","id":"other","name":"f","input":{}}]"#,
        ),
        (
            "anthropic",
            Format::Anthropic,
            r#"[{"type":"tool_use","id":"c1","name":"f","input":"\ud800"}]"#,
        ),
        (
            "anthropic",
            Format::Anthropic,
            r#"[{"type":"tool_use","id":"c1","name":"f","input":{}},]"#,
        ),
        ("anthropic", Format::Anthropic, "[]"),
        ("anthropic", Format::Anthropic, deep.as_str()),
        (
            "openai",
            Format::OpenaiResponses,
            r#"[{"type":"function_call","call_id":"c1","name":"f","arguments":"{"}]"#,
        ),
        (
            "openai",
            Format::OpenaiResponses,
            r#"[{"type":"reasoning","id":"rs_1","summary":[]}]"#,
        ),
        ("openai", Format::OpenaiChat, r#"{"role":"user","content":"a"}"#),
        ("openai", Format::OpenaiChat, r#"["role"]"#),
        (
            "gemini",
            Format::Gemini,
            r#"{"functionCall":{"name":"g","args":{}}}"#,
        ),
        (
            "gemini",
            Format::Gemini,
            r#"{"functionCall":{"name":"f","args":[]}}"#,
        ),
    ];
    for (provider, format, json) in cases {
        assert!(sent(format, &raw(provider, json)).contains("fine"), "{json}");
    }
}
