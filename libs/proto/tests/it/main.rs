//! The contract holds to its own rules.

use colloquy_proto::{FILE_DESCRIPTOR_SET, METHODS, v1};
use colloquy_types::entry::{Compaction, EntryBody};
use colloquy_types::message::{
    Author, Media, MediaData, MediaKind, Message, Part, RawBlock, Role, Source, Thinking, ToolCall, ToolResult,
};
use colloquy_types::{AccountId, ChannelName, JobId, Reason, Seq, UnixMillis};
use prost_reflect::DescriptorPool;

fn pool() -> DescriptorPool {
    DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap()
}

#[test]
fn every_method_names_its_roles() {
    let without: Vec<&str> = METHODS.iter().filter(|method| method.roles.is_empty()).map(|method| method.path).collect();
    assert!(without.is_empty(), "without roles: {without:?}");
    let declared: usize =
        pool().services().filter(|s| s.full_name().starts_with("colloquy.v1.")).map(|s| s.methods().count()).sum();
    assert_eq!(METHODS.len(), declared);
}

#[test]
fn everything_is_documented() {
    let mut bare = Vec::new();
    for file in pool().files().filter(|file| file.package_name() == "colloquy.v1") {
        let proto = file.file_descriptor_proto();
        let documented: std::collections::HashSet<Vec<i32>> = proto
            .source_code_info
            .iter()
            .flat_map(|info| &info.location)
            .filter(|location| location.leading_comments.as_deref().is_some_and(|text| !text.trim().is_empty()))
            .map(|location| location.path.clone())
            .collect();
        // Top-level messages (4), enums (5) and services (6), and what they hold directly (2).
        let mut check = |path: Vec<i32>, name: &str| {
            if !documented.contains(&path) {
                bare.push(format!("{}: {name}", file.name()));
            }
        };
        let index = |i: usize| i32::try_from(i).unwrap();
        for (i, message) in proto.message_type.iter().enumerate() {
            check(vec![4, index(i)], message.name());
            for (j, field) in message.field.iter().enumerate() {
                check(vec![4, index(i), 2, index(j)], &format!("{}.{}", message.name(), field.name()));
            }
        }
        for (i, enumeration) in proto.enum_type.iter().enumerate() {
            check(vec![5, index(i)], enumeration.name());
            for (j, value) in enumeration.value.iter().enumerate() {
                check(vec![5, index(i), 2, index(j)], value.name());
            }
        }
        for (i, service) in proto.service.iter().enumerate() {
            check(vec![6, index(i)], service.name());
            for (j, method) in service.method.iter().enumerate() {
                check(vec![6, index(i), 2, index(j)], method.name());
            }
        }
    }
    assert!(bare.is_empty(), "without a comment: {bare:#?}");
}

fn full_message() -> Message {
    let mut message = Message::new(
        Role::Assistant,
        vec![
            Part::text("nul \0 and 語"),
            Part::Media(Media {
                kind: MediaKind::Image,
                mime: "image/png".into(),
                name: "a.png".into(),
                data: MediaData::Inline("AAEC".into()),
            }),
            Part::ToolCall(ToolCall { id: "c1".into(), name: "f".into(), arguments: "{\"a\":1}".into() }),
            Part::ToolResult(ToolResult {
                call_id: "c1".into(),
                name: "f".into(),
                parts: vec![Part::text("ok")],
                is_error: true,
            }),
            Part::Thinking(Thinking {
                text: "hm".into(),
                signature: Some("sig".into()),
                provider: Some("anthropic".into()),
                redacted: false,
            }),
        ],
    );
    message.author = Author { id: "a".into(), name: "A".into() };
    message.at = UnixMillis(-1_001);
    message.raw = Some(RawBlock { provider: "openai".into(), json: "{}".into() });
    message.source = Some(Source {
        channel: ChannelName::parse("telegram").unwrap(),
        account: AccountId::parse("acc").unwrap(),
        message_id: "7".into(),
    });
    message
}

#[test]
fn messages_and_bodies_survive_the_wire() {
    let message = full_message();
    assert_eq!(Message::try_from(v1::Message::from(message.clone())).unwrap(), message);
    let bodies = [
        EntryBody::Message(message.clone()),
        EntryBody::CustomMessage { kind: "k".into(), message: message.clone() },
        EntryBody::Custom { kind: "k".into(), json: "{}".into() },
        EntryBody::Compaction(Compaction {
            summary: "s".into(),
            first_kept: Seq(4),
            tokens_before: 9,
            tokens_after: 3,
            model: "m".into(),
            job: JobId::new(),
            degraded: true,
        }),
        EntryBody::BranchSummary { summary: "s".into() },
        EntryBody::Reset { reason: "api".into() },
        EntryBody::Interrupted { reason: "stop".into(), attempt: 2, staged: vec![message] },
        EntryBody::Label { label: "l".into() },
        EntryBody::ModelChange { provider: "p".into(), model: "m".into() },
    ];
    for body in bodies {
        assert_eq!(EntryBody::try_from(v1::EntryBody::from(body.clone())).unwrap(), body);
    }
}

#[test]
fn what_is_missing_is_named() {
    let message = v1::Message { role: 1, parts: vec![v1::Part { part: None }], ..Default::default() };
    let error = Message::try_from(message).unwrap_err();
    assert_eq!((error.reason, error.field.as_deref()), (Reason::InvalidField, Some("parts[0].part")));
    assert_eq!(Message::try_from(v1::Message::default()).unwrap_err().field.as_deref(), Some("role"));
}
