//! Conversions over generated messages, through the encoded bytes.

use colloquy_proto::v1;
use colloquy_types::UnixMillis;
use colloquy_types::message::{
    Author, Completion, Media, MediaData, MediaKind, Message, Part, Provenance, Role, Thinking, ToolCall,
    ToolResult, Visibility,
};
use proptest::prelude::*;
use prost::Message as _;

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(prop_oneof![Just('\0'), Just('\n'), any::<char>()], 0..12)
        .prop_map(|chars| chars.into_iter().collect())
}

/// Absent and empty are one on the wire, so an optional text is never empty.
fn filled() -> impl Strategy<Value = Option<String>> {
    proptest::option::of(text().prop_map(|text| format!("x{text}")))
}

fn media() -> impl Strategy<Value = Part> {
    use base64::Engine as _;
    let inline = proptest::collection::vec(any::<u8>(), 0..40)
        .prop_map(|bytes| MediaData::Inline(base64::engine::general_purpose::STANDARD.encode(bytes)));
    let kind = prop_oneof![
        Just(MediaKind::Image),
        Just(MediaKind::Audio),
        Just(MediaKind::File)
    ];
    (
        kind,
        text(),
        text(),
        prop_oneof![inline, text().prop_map(MediaData::Reference)],
    )
        .prop_map(|(kind, mime, name, data)| {
            Part::Media(Media {
                kind,
                mime,
                name,
                data,
            })
        })
}

fn plain() -> impl Strategy<Value = Part> {
    prop_oneof![text().prop_map(|text| Part::Text { text }), media()]
}

fn part() -> impl Strategy<Value = Part> {
    let call = (text(), text(), text())
        .prop_map(|(id, name, arguments)| Part::ToolCall(ToolCall { id, name, arguments }));
    let result = (
        text(),
        text(),
        proptest::collection::vec(plain(), 0..3),
        any::<bool>(),
    )
        .prop_map(|(call_id, name, parts, is_error)| {
            Part::ToolResult(ToolResult {
                call_id,
                name,
                parts,
                is_error,
            })
        });
    let thinking =
        (text(), filled(), filled(), any::<bool>()).prop_map(|(text, signature, provider, redacted)| {
            Part::Thinking(Thinking {
                text,
                signature,
                provider,
                redacted,
            })
        });
    prop_oneof![plain(), call, result, thinking]
}

fn message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![
        Just(Role::User),
        Just(Role::Assistant),
        Just(Role::Tool),
        Just(Role::System)
    ];
    let provenance = prop_oneof![
        Just(Provenance::Owner),
        Just(Provenance::Agent),
        Just(Provenance::Untrusted),
        Just(Provenance::System)
    ];
    let visibility = prop_oneof![
        Just(Visibility::Model),
        Just(Visibility::People),
        Just(Visibility::Both)
    ];
    let completion = prop_oneof![
        Just(Completion::Complete),
        Just(Completion::Aborted),
        Just(Completion::Error)
    ];
    let parts = proptest::collection::vec(part(), 0..5);
    let author = (text(), text()).prop_map(|(id, name)| Author { id, name });
    let at = -1_000_000_000_000_i64..4_000_000_000_000;
    (role, parts, author, provenance, visibility, completion, at).prop_map(
        |(role, parts, author, provenance, visibility, completion, at)| {
            let mut message = Message::new(role, parts);
            (message.author, message.provenance) = (author, provenance);
            (message.visibility, message.completion) = (visibility, completion);
            message.at = UnixMillis(at);
            message
        },
    )
}

proptest! {
    #[test]
    fn any_message_survives_the_wire(message in message()) {
        let bytes = v1::Message::from(message.clone()).encode_to_vec();
        let decoded = v1::Message::decode(bytes.as_slice()).unwrap();
        prop_assert_eq!(Message::try_from(decoded).unwrap(), message);
    }

    #[test]
    fn any_bytes_are_refused_or_converted(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(wire) = v1::EntryBody::decode(bytes.as_slice()) {
            let _ = colloquy_types::EntryBody::try_from(wire);
        }
    }
}
