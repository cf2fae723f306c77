use crate::support::{call, calls, items, tool};
use colloquy_context::compaction::audit::required_identifiers;
use colloquy_context::compaction::{
    AuditSource, CompactionOptions, Keep, Problem, Stats, audit, chunks, identifiers, made_progress,
    plan_cut, render, trigger,
};
use colloquy_context::{Item, Origin, Tokenizer};
use colloquy_types::message::Message;
use colloquy_types::policy::Profile;
use std::borrow::Cow;

fn keep(min: u32) -> CompactionOptions {
    CompactionOptions {
        keep: Keep::Messages { min, share: 0.0 },
        ..CompactionOptions::goclaw()
    }
}

#[test]
fn numbers_of_the_profiles_hold_on_small_windows() {
    let openclaw = CompactionOptions::openclaw();
    assert_eq!(openclaw.trigger_tokens(200_000), Some(180_000));
    assert_eq!(openclaw.trigger_tokens(16_000), Some(8_000));
    assert_eq!(openclaw.keep_tokens(16_000), Some(3_200));
    assert_eq!(openclaw.flush_tokens(200_000), Some(176_000));
    assert_eq!(openclaw.flush_tokens(16_000), Some(7_200));
    assert_eq!(CompactionOptions::goclaw().flush_tokens(16_000), None);
}

#[test]
fn the_options_of_a_policy_are_those_of_its_profile() {
    let of = |profile: Profile| CompactionOptions::from(&profile.policy());
    assert_eq!(of(Profile::Goclaw), CompactionOptions::goclaw());
    assert_eq!(of(Profile::Openclaw), CompactionOptions::openclaw());
    for profile in [Profile::Goclaw, Profile::Openclaw] {
        let policy = profile.policy();
        for window in [8_000, 16_000, 128_000, 1_000_000] {
            assert_eq!(
                of(profile).trigger_tokens(window),
                policy.compaction_threshold(window)
            );
        }
    }
    let mut off = Profile::Goclaw.policy();
    off.compaction.enabled = false;
    let stats = Stats {
        messages: 99,
        tokens: 99,
        window: 100,
        bytes: 0,
    };
    assert_eq!(trigger(&stats, &CompactionOptions::from(&off)), None);
}

#[test]
fn bytes_trigger_where_asked_for() {
    let options = CompactionOptions {
        max_bytes: 1_000,
        ..CompactionOptions::goclaw()
    };
    let stats = Stats {
        bytes: 1_001,
        window: 1_000,
        ..Stats::default()
    };
    assert!(trigger(&stats, &options).is_some());
    assert!(trigger(&stats, &CompactionOptions::goclaw()).is_none());
}

#[test]
fn progress_is_less_than_nine_tenths() {
    assert!(made_progress(100, 89));
    assert!(!made_progress(100, 90));
    assert!(!made_progress(0, 0));
}

#[test]
fn a_displaced_result_keeps_its_call() {
    let messages = [
        Message::user("q"),
        calls(vec![call("c1", "f", "{}")]),
        Message::user("still there?"),
        tool("c1", "late"),
        Message::assistant("done"),
    ];
    let cut = plan_cut(&items(&messages, &|_| 10), 1_000, &keep(2)).unwrap();
    assert_eq!((cut.first_kept, cut.kept_messages, cut.kept_tokens), (1, 4, 40));
    assert_eq!(cut.split_turn, Some(0..1));
}

#[test]
fn a_window_that_would_stay_whole_is_not_cut() {
    let messages = [
        calls(vec![call("c1", "f", "{}")]),
        tool("c1", "r"),
        Message::assistant("done"),
    ];
    assert_eq!(plan_cut(&items(&messages, &|_| 10), 1_000, &keep(2)), None);
    assert_eq!(plan_cut(&items(&messages, &|_| 10), 1_000, &keep(3)), None);
    assert_eq!(plan_cut(&[], 1_000, &keep(0)), None);
}

#[test]
fn an_earlier_summary_is_part_of_the_next() {
    let messages = ["a", "b", "c"].map(Message::user);
    let mut view = items(&messages, &|_| 10);
    view.insert(
        0,
        Item::new(Origin::Summary, Cow::Owned(Message::user("earlier")), 10),
    );
    let cut = plan_cut(&view, 1_000, &keep(1)).unwrap();
    assert_eq!((cut.summarize, cut.first_kept), (0..3, 3));
    assert_eq!(
        plan_cut(&view[..2], 1_000, &keep(1)),
        None,
        "a summary alone is not summarised again"
    );
}

#[test]
fn chunks_cover_everything_in_order_and_fit() {
    let rendered: Vec<String> = [
        "short".to_owned(),
        "one two three ".repeat(300),
        "語".repeat(700),
        "a".to_owned(),
        "b".to_owned(),
    ]
    .into();
    let chunks = chunks(&rendered, 400, Tokenizer::O200k);
    let mut text = String::new();
    for chunk in &chunks {
        assert!(chunk.tokens <= 200, "{chunk:?}");
        match &chunk.piece {
            Some(piece) => text.push_str(&rendered[chunk.messages.start][piece.clone()]),
            None => rendered[chunk.messages.clone()]
                .iter()
                .for_each(|whole| text.push_str(whole)),
        }
    }
    assert_eq!(text, rendered.concat());
    assert_eq!(chunks.last().unwrap().messages, 3..5);
}

#[test]
fn results_are_shortened_for_the_summary_model() {
    let text = render(&tool("c1", &"x".repeat(9_000)));
    assert!(text.starts_with("tool: [result of ] xxx"));
    assert!(text.contains("6000 characters cut"));
}

#[test]
fn identifiers_are_ids_urls_paths_and_long_numbers() {
    let text = "id=7654321 See https://example.com/a?b=1, /var/log/app.log and src/main.rs; order 1234567, flight HAT136 for \
                mia_li_3668 (uuid 550e8400-e29b-41d4-a716-446655440000). And/or 12345 in 2024.";
    let found = identifiers(text);
    for wanted in [
        "https://example.com/a?b=1",
        "/var/log/app.log",
        "src/main.rs",
        "1234567",
        "7654321",
        "HAT136",
        "mia_li_3668",
        "550e8400-e29b-41d4-a716-446655440000",
    ] {
        assert!(
            found.iter().any(|id| id.starts_with(wanted)),
            "{wanted} in {found:?}"
        );
    }
    for word in ["And/or", "12345", "2024", "flight"] {
        assert!(!found.iter().any(|id| id == word), "{word} in {found:?}");
    }
}

fn problems(summary: &str, messages: &[Message], tokens: u32, summary_tokens: u32) -> Vec<Problem> {
    let messages: Vec<&Message> = messages.iter().collect();
    let source = AuditSource {
        messages: &messages,
        tokens,
        summary_tokens,
    };
    audit(summary, &source).map_or_else(|failure| failure.problems, |()| Vec::new())
}

#[test]
fn a_good_summary_passes() {
    let messages = [
        Message::user("please cancel reservation ZFA04Y"),
        Message::assistant("done"),
    ];
    assert_eq!(
        problems(
            "The user asked to cancel reservation ZFA04Y; it is done.",
            &messages,
            100,
            20
        ),
        []
    );
}

#[test]
fn a_bad_summary_names_every_problem() {
    let messages = [Message::user("please cancel reservation ZFA04Y")];
    assert_eq!(problems("  ", &messages, 100, 0), [Problem::Empty]);
    assert_eq!(
        problems("I'm sorry, I can't help with that.", &messages, 100, 401),
        [
            Problem::TooLong {
                tokens: 401,
                limit: 400
            },
            Problem::Refusal,
            Problem::LastRequestMissing("please cancel reservation ZFA04Y".into()),
            Problem::IdentifiersMissing(vec!["ZFA04Y".into()]),
        ]
    );
}

#[test]
fn a_request_in_chinese_is_recognised() {
    let messages = [Message::user("请帮我取消明天的航班预订")];
    assert_eq!(problems("用户要求取消明天的航班。", &messages, 100, 20), []);
    let other = problems("用户在讨论天气。", &messages, 100, 20);
    assert!(matches!(other[..], [Problem::LastRequestMissing(_)]));
}

#[test]
fn only_the_newest_identifiers_are_required() {
    let messages: Vec<Message> = (0..20)
        .map(|at| Message::user(format!("order {}", 100_000 + at)))
        .collect();
    let required = required_identifiers(&messages.iter().collect::<Vec<_>>());
    assert_eq!(required.len(), 10);
    assert_eq!(required.first().map(String::as_str), Some("100010"));
}
