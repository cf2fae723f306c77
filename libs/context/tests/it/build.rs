use crate::support::{call, calls, entries, entry, tool};
use colloquy_context::receipt::Action;
use colloquy_context::tokens::MESSAGE_OVERHEAD;
use colloquy_context::{BuildError, BuildInput, BuildOptions, Decision, Format, Moves, Watermarks, build};
use colloquy_types::entry::Compaction;
use colloquy_types::message::Message;
use colloquy_types::policy::Profile;
use colloquy_types::{Entry, EntryBody, Error, JobId, Reason, Seq};
use serde_json::{Value, json};

fn parsed(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

/// A turn with a long result, and three answers behind it.
fn heavy() -> Vec<Entry> {
    let mut messages = vec![Message::user("q"), calls(vec![call("c1", "f", "{}")])];
    messages.push(tool("c1", &"word ".repeat(1_600)));
    messages.extend(["a", "b", "c"].map(Message::assistant));
    entries(messages)
}

#[test]
fn history_recall_pending_and_staged_come_in_order() {
    let history = entries([Message::user("hi"), Message::assistant("hello")]);
    let pending = [Message::user("weather?")];
    let staged = [calls(vec![call("c1", "sky", "{}")]), tool("c1", "blue")];
    let input = BuildInput {
        pending: &pending,
        staged: &staged,
        recalled: "likes sun </recalled_memories>",
        ..BuildInput::new(&history, 10_000, Format::OpenaiChat)
    };
    let built = build(&input).unwrap();
    let view = parsed(&built.bytes);
    let roles: Vec<&str> = view
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user", "user", "assistant", "tool"]);
    let recalled = view[2]["content"].as_str().unwrap();
    assert_eq!(
        recalled.matches("</recalled_memories>").count(),
        1,
        "a memory cannot close its block"
    );
    assert_eq!(view[3], json!({"role": "user", "content": "weather?"}));
    assert_eq!(built.messages.len(), 6);
    assert_eq!((built.receipt.pending, built.receipt.staged), (1, 2));
    assert_eq!(built.receipt.recalled, "likes sun </recalled_memories>");
}

#[test]
fn the_receipt_accounts_for_every_entry() {
    let mut all = heavy();
    let compaction = Compaction {
        summary: "before".into(),
        first_kept: Seq(2),
        tokens_before: 0,
        tokens_after: 0,
        model: String::new(),
        job: JobId::new(),
        degraded: false,
    };
    all.push(entry(7, EntryBody::Compaction(compaction)));
    all.push(entry(8, EntryBody::Message(tool("c9", "orphan"))));
    let input = BuildInput {
        compaction: Some(&all[6]),
        ..BuildInput::new(&all, 5_000, Format::Anthropic)
    };
    let built = build(&input).unwrap();
    let segments: Vec<(i64, i64, Action)> = built
        .receipt
        .segments
        .iter()
        .map(|s| (s.from.0, s.through.0, s.action))
        .collect();
    assert_eq!(
        segments,
        [
            (1, 1, Action::Summarized),
            (2, 2, Action::Kept),
            (3, 3, Action::Trimmed),
            (4, 6, Action::Kept),
            (7, 7, Action::Skipped),
            (8, 8, Action::LeftOut),
        ]
    );
    assert_eq!((built.trimmed, built.cleared, built.repaired), (1, 0, 1));
    assert_eq!(built.receipt.repairs[0].to_string(), "c9 orphan");
    assert!(built.receipt.matches(&built.bytes));
    let stored = serde_json::to_string(&built.receipt).unwrap();
    assert_eq!(
        serde_json::from_str::<colloquy_context::Receipt>(&stored).unwrap(),
        built.receipt
    );
}

#[test]
fn a_replay_with_the_receipts_marks_gives_the_same_bytes() {
    let all = heavy();
    let first = build(&BuildInput::new(&all, 5_000, Format::OpenaiChat)).unwrap();
    assert_eq!(first.watermarks.soft, Seq(3));
    let again = BuildInput {
        watermarks: first.receipt.watermarks,
        moves: Moves::Replay,
        ..BuildInput::new(&all, 5_000, Format::OpenaiChat)
    };
    assert!(first.receipt.matches(&build(&again).unwrap().bytes));
}

#[test]
fn a_preview_shows_the_same_view_and_stores_no_mark() {
    let all = heavy();
    let running = build(&BuildInput::new(&all, 5_000, Format::OpenaiChat)).unwrap();
    let preview = BuildInput {
        moves: Moves::Preview,
        ..BuildInput::new(&all, 5_000, Format::OpenaiChat)
    };
    let preview = build(&preview).unwrap();
    assert_eq!(preview.bytes, running.bytes);
    assert_eq!(preview.watermarks, Watermarks::default());
}

#[test]
fn the_decision_follows_the_numbers() {
    let mut history = entries([Message::user("q"), Message::assistant("a")]);
    let pending = [Message::user("p")];
    let decide = |history: &[Entry], overhead: u32| {
        let input = BuildInput {
            pending: &pending,
            overhead,
            ..BuildInput::new(history, 10_000, Format::OpenaiChat)
        };
        build(&input).unwrap().decision
    };
    assert_eq!(decide(&history, 0), Decision::Fits);
    history[0].tokens = 7_600;
    assert_eq!(decide(&history, 0), Decision::CompactSoon);
    assert_eq!(decide(&history, 500), Decision::CompactNow);
    assert_eq!(decide(&history, 8_000), Decision::OverBudget);
    let long: Vec<Entry> = entries((0..51).map(|_| Message::user("q")));
    assert_eq!(decide(&long[..50], 0), Decision::Fits);
    assert_eq!(decide(&long, 0), Decision::CompactSoon);
}

#[test]
fn the_breakdown_adds_up_and_is_calibrated() {
    let history = entries([Message::user("hello world"), calls(vec![call("c1", "f", "{}")])]);
    let pending = [Message::user("hello world")];
    let input = BuildInput {
        pending: &pending,
        overhead: 7,
        ..BuildInput::new(&history, 10_000, Format::OpenaiChat)
    };
    let tokens = build(&input).unwrap().tokens;
    assert_eq!(tokens.pending, MESSAGE_OVERHEAD + 2);
    assert!(
        tokens.entries > history[0].tokens + history[1].tokens,
        "the made up result counts too"
    );
    assert_eq!(tokens.total(), 7 + tokens.entries + tokens.pending);
    let heavier = BuildInput {
        calibration_percent: 100_000,
        ..input
    };
    assert_ne!(build(&heavier).unwrap().decision, Decision::Fits);
}

#[test]
fn nothing_to_send_is_the_callers_mistake() {
    for all in [
        Vec::new(),
        entries([tool("c1", "orphan")]),
        entries([Message::user(" \n")]),
    ] {
        let error = build(&BuildInput::new(&all, 1_000, Format::OpenaiChat)).unwrap_err();
        assert_eq!(error, BuildError::NothingToSend);
        assert_eq!(Error::from(error).reason, Reason::InvalidField);
    }
}

#[test]
fn a_policy_with_calls_only_shows_no_results_of_earlier_turns() {
    let all = heavy();
    let options = BuildOptions::from(&Profile::GoclawLite.policy());
    let built = build(&BuildInput {
        options,
        ..BuildInput::new(&all, 5_000, Format::OpenaiChat)
    })
    .unwrap();
    let view = parsed(&built.bytes);
    assert_eq!(view[1]["content"], "[called: f {}]\na");
    assert_eq!(built.messages.len(), 4);
    assert_eq!(built.receipt.segments[1].reason, "calls_only");
    assert_eq!(
        BuildOptions::from(&Profile::Openclaw.policy()),
        BuildOptions::openclaw()
    );
}
