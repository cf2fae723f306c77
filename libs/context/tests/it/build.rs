use crate::support::{call, calls, entries, entry, tool};
use colloquy_context::prune::Held;
use colloquy_context::receipt::Action;
use colloquy_context::tokens::MESSAGE_OVERHEAD;
use colloquy_context::{
    BuildError, BuildInput, BuildOptions, Decision, Format, LastCall, Moves, Watermarks, build,
};
use colloquy_types::entry::Compaction;
use colloquy_types::message::{Message, Visibility};
use colloquy_types::policy::Profile;
use colloquy_types::{Entry, EntryBody, Error, JobId, Reason, Seq, UnixMillis};
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

#[test]
fn what_only_people_may_see_is_not_sent_while_the_turn_runs_either() {
    let history = entries([Message::user("q"), Message::assistant("a")]);
    let hidden = |text: &str| Message {
        visibility: Visibility::People,
        ..Message::user(text)
    };
    let pending = [hidden("for people"), Message::user("p")];
    let staged = [hidden("a notice"), Message::assistant("s")];
    let input = BuildInput {
        pending: &pending,
        staged: &staged,
        ..BuildInput::new(&history, 10_000, Format::OpenaiChat)
    };
    let built = build(&input).unwrap();
    let view = parsed(&built.bytes);
    let texts: Vec<&str> = view
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["q", "a", "p", "s"]);
    assert_eq!(
        (built.receipt.pending, built.receipt.staged),
        (2, 2),
        "they were seen"
    );
}

#[test]
fn a_preface_stands_before_the_turns_messages_and_in_the_receipt() {
    let pending = [Message::user("p")];
    let input = BuildInput {
        preface: "- one was dropped",
        pending: &pending,
        recalled: "a memory",
        ..BuildInput::new(&[], 10_000, Format::OpenaiChat)
    };
    let built = build(&input).unwrap();
    let view = parsed(&built.bytes);
    assert_eq!(view[1]["content"], "- one was dropped");
    assert_eq!(view[2]["content"], "p");
    assert_eq!(built.receipt.preface, "- one was dropped");
    assert_eq!(built.receipt.prefix.history_messages, 0);
}

#[test]
fn stored_counts_of_the_turn_are_taken_as_they_are() {
    let pending = [Message::user("p"), Message::user("hello world")];
    let staged = [Message::assistant("s")];
    let input = BuildInput {
        pending: &pending,
        pending_tokens: &[100],
        staged: &staged,
        staged_tokens: &[30],
        ..BuildInput::new(&[], 10_000, Format::OpenaiChat)
    };
    let tokens = build(&input).unwrap().tokens;
    assert_eq!((tokens.pending, tokens.staged), (100 + MESSAGE_OVERHEAD + 2, 30));
}

#[test]
fn the_time_since_the_last_call_says_whether_the_prompt_cache_is_cold() {
    let all = heavy();
    let trimmed = |at: Option<i64>, cold: bool| {
        let input = BuildInput {
            options: BuildOptions::openclaw(),
            cache_cold: cold,
            last_call: Some(LastCall {
                at: at.map(UnixMillis),
                now: UnixMillis(1_000_000),
            }),
            ..BuildInput::new(&all, 5_000, Format::OpenaiChat)
        };
        let built = build(&input).unwrap();
        assert_eq!(
            built.receipt.held,
            (built.trimmed == 0).then_some(Held::WarmCache)
        );
        assert_eq!(built.receipt.cache_cold, built.trimmed > 0);
        built.trimmed
    };
    assert_eq!(trimmed(Some(700_001), false), 0, "within five minutes");
    assert_eq!(trimmed(Some(700_000), false), 1);
    assert_eq!(trimmed(Some(999_999), true), 1, "the caller knows better");
    assert_eq!(trimmed(None, false), 1, "nothing was ever cached");
}

#[test]
fn pruning_ratios_are_of_real_tokens() {
    let all = heavy();
    let trimmed = |calibration_percent: u32| {
        let input = BuildInput {
            calibration_percent,
            ..BuildInput::new(&all, 6_000, Format::OpenaiChat)
        };
        build(&input).unwrap().trimmed
    };
    assert_eq!((trimmed(100), trimmed(130)), (0, 1));
}

#[test]
fn a_receipt_does_not_depend_on_how_much_was_loaded() {
    let mut all = entries((0..40).map(|at| Message::user(format!("message {at}"))));
    let compaction = Compaction {
        summary: "before".into(),
        first_kept: Seq(31),
        tokens_before: 500,
        tokens_after: 100,
        model: String::new(),
        job: JobId::new(),
        degraded: false,
    };
    all.push(entry(41, EntryBody::Compaction(compaction)));
    let built = |entries: &[Entry]| {
        let input = BuildInput {
            compaction: all.last(),
            ..BuildInput::new(entries, 5_000, Format::OpenaiChat)
        };
        build(&input).unwrap().receipt
    };
    let receipt = built(&all);
    assert_eq!(receipt, built(&all[30..]));
    assert_eq!(
        (receipt.segments[0].through, receipt.segments[0].tokens),
        (Seq(30), 400)
    );
}
