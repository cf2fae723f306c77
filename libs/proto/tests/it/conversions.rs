//! Samples of every shape survive the wire.

use colloquy_proto::convert::{duration, duration_ms, millis, timestamp};
use colloquy_proto::v1;
use colloquy_types::entry::{Compaction, EntryBody};
use colloquy_types::message::{
    Author, Completion, Media, MediaData, MediaKind, Message, Part, Provenance, RawBlock, Role, Route,
    Source, Thinking, ToolCall, ToolResult, Visibility,
};
use colloquy_types::queue::{Lane, MessageKind, Outcome, Placement, QueueMode, TurnState};
use colloquy_types::{
    AccountId, CallerRole, ChannelName, Entry, EntryId, JobId, Reason, Seq, TurnId, UnixMillis,
};

fn full_message() -> Message {
    let media = |data| {
        Part::Media(Media {
            kind: MediaKind::Image,
            mime: "image/png".into(),
            name: "a".into(),
            data,
        })
    };
    let mut message = Message::new(
        Role::Assistant,
        vec![
            Part::text("nul \0 and 語"),
            Part::text(""),
            media(MediaData::Inline("AAEC".into())),
            media(MediaData::Reference("file:7".into())),
            Part::ToolCall(ToolCall {
                id: "c1".into(),
                name: "f".into(),
                arguments: "{\"a\":\0".into(),
            }),
            Part::ToolResult(ToolResult {
                call_id: "c1".into(),
                name: "f".into(),
                parts: vec![Part::text("ok \0"), media(MediaData::Inline(String::new()))],
                is_error: true,
            }),
            Part::Thinking(Thinking {
                text: "hm".into(),
                signature: Some("sig".into()),
                provider: Some("anthropic".into()),
                redacted: true,
            }),
        ],
    );
    message.author = Author {
        id: "a".into(),
        name: "A".into(),
    };
    message.provenance = Provenance::Untrusted;
    message.visibility = Visibility::Model;
    message.completion = Completion::Aborted;
    message.at = UnixMillis(-1_001);
    message.raw = Some(RawBlock {
        provider: "openai".into(),
        json: "{}".into(),
    });
    message.source = Some(Source {
        channel: ChannelName::parse("telegram").expect("a channel name"),
        account: AccountId::parse("acc").expect("an account id"),
        message_id: "7".into(),
    });
    message
}

fn bodies() -> Vec<EntryBody> {
    vec![
        EntryBody::Message(full_message()),
        EntryBody::CustomMessage {
            kind: "k".into(),
            message: full_message(),
        },
        EntryBody::Custom {
            kind: "k".into(),
            json: "{\"a\":\"\\u0000\"}".into(),
        },
        EntryBody::Compaction(Compaction {
            summary: "s \0".into(),
            first_kept: Seq(4),
            tokens_before: 9,
            tokens_after: 3,
            model: "m".into(),
            job: JobId::new(),
            degraded: true,
        }),
        EntryBody::BranchSummary { summary: "s".into() },
        EntryBody::Reset { reason: "api".into() },
        EntryBody::Interrupted {
            reason: "stop".into(),
            attempt: 2,
            staged: vec![full_message()],
        },
        EntryBody::Label { label: "l".into() },
        EntryBody::ModelChange {
            provider: "p".into(),
            model: "m".into(),
        },
    ]
}

#[test]
fn every_kind_of_entry_survives_the_wire() {
    for (seq, body) in (1..).zip(bodies()) {
        let entry = Entry {
            id: EntryId::new(),
            seq: Seq(seq),
            body,
            turn: (seq % 2 == 0).then(TurnId::new),
            tokens: 7,
            tokenizer: "o200k".into(),
            at: UnixMillis(1_700_000_000_123),
        };
        assert_eq!(Entry::try_from(v1::Entry::from(entry.clone())).unwrap(), entry);
    }
}

#[test]
fn routes_survive_the_wire_with_and_without_a_thread() {
    for thread in [None, Some("99".to_owned())] {
        let route = Route {
            channel: ChannelName::parse("telegram").unwrap(),
            account: AccountId::parse("acc").unwrap(),
            chat: " :-100/%".into(),
            thread,
        };
        assert_eq!(Route::try_from(v1::Route::from(route.clone())).unwrap(), route);
    }
}

#[test]
fn words_of_the_queue_survive_the_wire() {
    for outcome in Outcome::ALL {
        assert_eq!(v1::Outcome::from(outcome).known(), Some(outcome));
        assert_eq!(
            v1::Outcome::from(outcome).as_str_name(),
            format!("OUTCOME_{}", outcome.as_str())
        );
    }
    use {Lane as L, Placement as P, QueueMode as Q, TurnState as T};
    for mode in [
        Q::Queue,
        Q::Followup,
        Q::Collect,
        Q::Steer,
        Q::Interrupt,
        Q::Reject,
    ] {
        assert_eq!(v1::QueueMode::from(mode).known(), Some(mode));
    }
    for lane in [L::User, L::Subagent, L::Cron, L::Heartbeat, L::Background] {
        assert_eq!(Lane::from(v1::Lane::from(lane)), lane);
    }
    for kind in [MessageKind::User, MessageKind::SystemEvent] {
        assert_eq!(MessageKind::from(v1::MessageKind::from(kind)), kind);
    }
    for placement in [P::Queued, P::Merged, P::Steered, P::Interrupted, P::Command] {
        assert_eq!(v1::Placement::from(placement).known(), Some(placement));
    }
    for state in [
        T::Waiting,
        T::Running,
        T::Stopping,
        T::Committed,
        T::Cancelled,
        T::Failed,
    ] {
        assert_eq!(v1::TurnState::from(state).known(), Some(state));
    }
}

#[test]
fn roles_survive_the_wire() {
    use CallerRole::{Admin, Agent, Channel, Operator, Service, User, Viewer};
    for role in [Admin, Agent, Channel, User, Viewer, Service, Operator] {
        assert_eq!(CallerRole::try_from(v1::Role::from(role)).unwrap(), role);
    }
    assert_eq!(
        CallerRole::try_from(v1::Role::Unspecified).unwrap_err().reason,
        Reason::InvalidField
    );
}

#[test]
fn what_is_not_set_has_its_default() {
    assert_eq!(v1::Outcome::Unspecified.known(), None);
    assert_eq!(v1::QueueMode::Unspecified.known(), None);
    assert_eq!(v1::Placement::Duplicate.known(), None);
    assert_eq!(Lane::from(v1::Lane::Unspecified), Lane::User);
    let cases = [
        (v1::MessageRole::User, Provenance::Owner),
        (v1::MessageRole::Assistant, Provenance::Agent),
        (v1::MessageRole::Tool, Provenance::Untrusted),
        (v1::MessageRole::System, Provenance::System),
    ];
    for (role, provenance) in cases {
        let message = Message::try_from(v1::Message {
            role: role.into(),
            ..Default::default()
        })
        .unwrap();
        assert_eq!(
            (message.provenance, message.visibility),
            (provenance, Visibility::Both)
        );
        assert_eq!(
            (message.completion, message.at),
            (Completion::Complete, UnixMillis(0))
        );
    }
}

#[test]
fn times_keep_their_milliseconds() {
    for at in [0, 1, 999, 1_000, -1, -999, -1_000, -1_001, 1_700_000_000_123] {
        let wire = timestamp(UnixMillis(at));
        assert!((0..1_000_000_000).contains(&wire.nanos), "{wire:?}");
        assert_eq!(millis(&wire), UnixMillis(at));
        assert_eq!(duration_ms(&duration(at)), at);
    }
    assert_eq!(
        millis(&prost_types::Timestamp {
            seconds: i64::MAX,
            nanos: i32::MAX
        }),
        UnixMillis(i64::MAX)
    );
}
