//! What is malformed is refused, and the error names the place.

use colloquy_proto::convert::{id, list, optional_id};
use colloquy_proto::v1;
use colloquy_types::message::Message;
use colloquy_types::{EntryBody, Error, Reason, SessionId};

#[test]
fn a_malformed_id_answers_like_an_unknown_one() {
    let session = SessionId::new();
    assert_eq!(
        id::<SessionId>("session_id", &session.to_string()).unwrap(),
        session
    );
    for text in ["x", "ses_", "trn_0190000000007000800000000000000a", "ses_\0"] {
        assert_eq!(
            id::<SessionId>("session_id", text).unwrap_err().reason,
            Reason::NotFound,
            "{text}"
        );
        assert_eq!(
            optional_id::<SessionId>(text).unwrap_err().reason,
            Reason::NotFound,
            "{text}"
        );
    }
    let error = id::<SessionId>("session_id", "").unwrap_err();
    assert_eq!(
        (error.reason, error.field.as_deref()),
        (Reason::InvalidField, Some("session_id"))
    );
    assert_eq!(optional_id::<SessionId>("").unwrap(), None);
}

fn user(parts: Vec<v1::Part>) -> v1::Message {
    v1::Message {
        role: v1::MessageRole::User.into(),
        parts,
        ..Default::default()
    }
}

fn result_of(part: v1::part::Part) -> v1::Part {
    let inner = v1::ToolResult {
        parts: vec![v1::Part { part: Some(part) }],
        ..Default::default()
    };
    v1::Part {
        part: Some(v1::part::Part::ToolResult(inner)),
    }
}

fn field_of<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    let error = result.expect_err("it is malformed");
    assert_eq!(error.reason, Reason::InvalidField);
    error.field.expect("a refused field is named")
}

#[test]
fn what_is_wrong_in_a_message_is_named() {
    use v1::part::Part as Wire;
    let field = |message| field_of(Message::try_from(message));
    assert_eq!(field(v1::Message::default()), "role");
    assert_eq!(
        field(v1::Message {
            role: 99,
            ..Default::default()
        }),
        "role"
    );
    assert_eq!(field(user(vec![v1::Part { part: None }])), "parts[0].part");
    let media = Wire::Media(v1::Media {
        kind: 1,
        ..Default::default()
    });
    let text = v1::Part {
        part: Some(Wire::Text("a".into())),
    };
    assert_eq!(
        field(user(vec![
            text,
            v1::Part {
                part: Some(media.clone())
            }
        ])),
        "parts[1].media.data"
    );
    assert_eq!(
        field(user(vec![result_of(media)])),
        "parts[0].tool_result.parts[0].media.data"
    );
    let source = Some(v1::Source {
        channel: "Telegram".into(),
        ..Default::default()
    });
    assert_eq!(
        field(v1::Message {
            source,
            ..user(vec![])
        }),
        "source.channel"
    );
}

#[test]
fn a_tool_result_holds_text_and_media_only() {
    use v1::part::Part as Wire;
    for inner in [
        Wire::ToolCall(v1::ToolCall::default()),
        Wire::Thinking(v1::Thinking::default()),
    ] {
        assert_eq!(
            field_of(Message::try_from(user(vec![result_of(inner)]))),
            "parts[0].tool_result.parts[0]"
        );
    }
    let nested = result_of(Wire::Text("a".into())).part.unwrap();
    assert_eq!(
        field_of(Message::try_from(user(vec![result_of(nested)]))),
        "parts[0].tool_result.parts[0]"
    );
}

#[test]
fn what_is_wrong_in_an_entry_is_named() {
    use v1::entry_body::Body;
    let field = |body| field_of(EntryBody::try_from(v1::EntryBody { body }));
    let message = v1::Message::default;
    assert_eq!(field(None), "body");
    assert_eq!(field(Some(Body::Message(message()))), "message.role");
    assert_eq!(
        field(Some(Body::CustomMessage(v1::CustomMessage::default()))),
        "custom_message.message"
    );
    let custom = v1::CustomMessage {
        kind: "k".into(),
        message: Some(message()),
    };
    assert_eq!(
        field(Some(Body::CustomMessage(custom))),
        "custom_message.message.role"
    );
    let staged = v1::Interrupted {
        staged: vec![user(vec![]), message()],
        ..Default::default()
    };
    assert_eq!(
        field(Some(Body::Interrupted(staged))),
        "interrupted.staged[1].role"
    );
    assert_eq!(
        field(Some(Body::Compaction(v1::Compaction::default()))),
        "compaction.job_id"
    );
    let bodies = vec![v1::EntryBody { body: None }];
    assert_eq!(
        field_of(list::<_, EntryBody>("entries", bodies)),
        "entries[0].body"
    );
}

#[test]
fn an_unknown_job_of_an_entry_keeps_its_kind_of_resource() {
    let compaction = v1::Compaction {
        job_id: "job_x".into(),
        ..Default::default()
    };
    let body = v1::EntryBody {
        body: Some(v1::entry_body::Body::Compaction(compaction)),
    };
    let error = EntryBody::try_from(body).unwrap_err();
    assert_eq!(
        (error.reason, error.field.as_deref()),
        (Reason::NotFound, Some("job"))
    );
}
