//! Telegram bot updates, <https://core.telegram.org/bots/api#update>.

use super::{ChatKind, Inbound, Received, dedupe};
use colloquy_types::message::{Author, Media, MediaData, MediaKind, Part, Provenance};
use colloquy_types::{Error, Reason, Result};
use serde_json::Value;
use subtle::ConstantTimeEq;

/// Telegram repeats the secret given to `setWebhook` in this header.
pub const SECRET_HEADER: &str = "x-telegram-bot-api-secret-token";

/// # Errors
/// `BAD_CREDENTIAL` when the header is missing or another secret.
pub fn verify(header: Option<&[u8]>, secret: &str) -> Result<()> {
    let genuine =
        header.is_some_and(|given| !secret.is_empty() && bool::from(given.ct_eq(secret.as_bytes())));
    if genuine {
        return Ok(());
    }
    Err(Error::new(
        Reason::BadCredential,
        format!("the {SECRET_HEADER} header does not carry the account's secret"),
    ))
}

/// # Errors
/// `INVALID_FIELD` when the body is not an update: not JSON, or no `update_id`. An update with a message that lacks its
/// chat or id is [`Received::Unusable`].
pub fn normalise(body: &[u8]) -> Result<Received> {
    let update: Value =
        serde_json::from_slice(body).map_err(|error| Error::invalid("body", format!("not JSON: {error}")))?;
    if !update["update_id"].is_i64() {
        return Err(Error::invalid("update_id", "an update has a numeric `update_id`"));
    }
    let found = [
        "message",
        "edited_message",
        "channel_post",
        "edited_channel_post",
        "business_message",
    ]
    .into_iter()
    .find_map(|kind| update.get(kind).map(|message| (kind, message)));
    match found {
        Some((kind, message)) => Ok(normalise_message(kind, message).unwrap_or_else(Received::Unusable)),
        None => Ok(Received::Ignored("not a message")),
    }
}

fn normalise_message(kind: &str, message: &Value) -> Result<Received> {
    let chat = &message["chat"];
    let chat_id =
        id_of(&chat["id"]).ok_or_else(|| Error::invalid(format!("{kind}.chat.id"), "is missing"))?;
    let message_id = id_of(&message["message_id"])
        .ok_or_else(|| Error::invalid(format!("{kind}.message_id"), "is missing"))?;
    let parts = parts_of(message);
    if parts.is_empty() {
        return Ok(Received::Ignored("nothing to answer"));
    }
    let chat_kind = match chat["type"].as_str() {
        Some("private") => ChatKind::Direct,
        Some("channel") => ChatKind::Channel,
        _ => ChatKind::Group,
    };
    let thread = id_of(&message["message_thread_id"]);
    let topic = thread
        .clone()
        .filter(|_| chat_kind == ChatKind::Group && message["is_topic_message"] == true);
    let edited = id_of(&message["edit_date"])
        .map(|date| format!(":edit:{date}"))
        .unwrap_or_default();
    Ok(Received::Message(Box::new(Inbound {
        chat_kind,
        topic,
        thread: thread.filter(|_| chat_kind == ChatKind::Direct),
        sender: sender_of(message),
        parts,
        provenance: provenance_of(message),
        // Message ids count per chat: message 7 of one chat is not message 7 of another.
        dedupe: dedupe(&chat_id, &format!("{message_id}{edited}")),
        chat: chat_id,
        message_id,
    })))
}

fn id_of(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        _ => None,
    }
}

fn sender_of(message: &Value) -> Author {
    let from = if message["from"].is_object() {
        &message["from"]
    } else {
        &message["sender_chat"]
    };
    let from = if from.is_object() { from } else { &message["chat"] };
    let names = ["first_name", "last_name", "title"].map(|field| from[field].as_str().unwrap_or_default());
    Author {
        id: id_of(&from["id"]).unwrap_or_default(),
        name: names
            .into_iter()
            .filter(|name| !name.is_empty())
            .collect::<Vec<_>>()
            .join(" "),
    }
}

/// What somebody else wrote is not the sender's word.
fn provenance_of(message: &Value) -> Provenance {
    let forwarded = [
        "forward_origin",
        "forward_from",
        "forward_from_chat",
        "forward_sender_name",
        "forward_date",
    ];
    if forwarded.into_iter().any(|field| message.get(field).is_some()) {
        Provenance::Untrusted
    } else {
        Provenance::Owner
    }
}

fn parts_of(message: &Value) -> Vec<Part> {
    let mut parts = Vec::new();
    for field in ["text", "caption"] {
        if let Some(text) = message[field].as_str().filter(|text| !text.is_empty()) {
            parts.push(Part::text(text));
        }
    }
    // Telegram sends a photo in several sizes, the largest last.
    if let Some(photo) = message["photo"].as_array().and_then(|sizes| sizes.last()) {
        parts.extend(media_of(photo, MediaKind::Image));
    }
    for (field, kind) in [
        ("voice", MediaKind::Audio),
        ("audio", MediaKind::Audio),
        ("document", MediaKind::File),
        ("video", MediaKind::File),
        ("video_note", MediaKind::File),
        ("sticker", MediaKind::Image),
    ] {
        parts.extend(media_of(&message[field], kind));
    }
    parts.extend(place_of(message));
    parts
}

fn media_of(file: &Value, kind: MediaKind) -> Option<Part> {
    let reference = format!("telegram:{}", file["file_id"].as_str()?);
    let text = |field: &str| file[field].as_str().unwrap_or_default().to_owned();
    let (mime, name) = (text("mime_type"), text("file_name"));
    Some(Part::Media(Media {
        kind,
        mime,
        name,
        data: MediaData::Reference(reference),
    }))
}

/// A contact or a place is something a person said, in words.
fn place_of(message: &Value) -> Option<Part> {
    if let Some(number) = message["contact"]["phone_number"].as_str() {
        let name = message["contact"]["first_name"].as_str().unwrap_or_default();
        return Some(Part::text(format!("[contact: {name} {number}]")));
    }
    let (latitude, longitude) = (
        message["location"]["latitude"].as_f64()?,
        message["location"]["longitude"].as_f64()?,
    );
    Some(Part::text(format!("[location: {latitude}, {longitude}]")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn inbound(update: &Value) -> Inbound {
        match normalise(update.to_string().as_bytes()).unwrap() {
            Received::Message(inbound) => *inbound,
            other => panic!("{other:?}"),
        }
    }

    fn private(message_id: i64, chat: i64) -> Value {
        json!({"update_id": 1, "message": {"message_id": message_id, "date": 1, "text": "hi",
            "chat": {"id": chat, "type": "private"}, "from": {"id": chat, "first_name": "Ann", "last_name": "Lee"}}})
    }

    #[test]
    fn equal_message_ids_of_two_chats_are_two_messages() {
        let (one, other) = (inbound(&private(7, 1)), inbound(&private(7, 2)));
        assert_ne!(one.dedupe, other.dedupe);
        assert_eq!(one, inbound(&private(7, 1)));
        assert_eq!(one.sender.name, "Ann Lee");
    }

    #[test]
    fn an_edit_is_another_message() {
        let mut edit = private(7, 1);
        let mut message = edit["message"].take();
        message["edit_date"] = json!(99);
        let edit = json!({"update_id": 2, "edited_message": message});
        assert_ne!(inbound(&edit).dedupe, inbound(&private(7, 1)).dedupe);
    }

    #[test]
    fn a_forum_topic_is_kept_and_a_reply_thread_is_not() {
        let message = |topic: bool| {
            json!({"update_id": 1, "message": {"message_id": 1, "text": "x", "message_thread_id": 99,
                "is_topic_message": topic, "chat": {"id": -100, "type": "supergroup"}, "from": {"id": 5}}})
        };
        assert_eq!(inbound(&message(true)).topic.as_deref(), Some("99"));
        assert_eq!(inbound(&message(false)).topic, None);
    }

    #[test]
    fn forwarded_text_is_untrusted() {
        let mut update = private(1, 1);
        update["message"]["forward_origin"] = json!({"type": "user"});
        assert_eq!(inbound(&update).provenance, Provenance::Untrusted);
    }

    #[test]
    fn what_is_no_message_is_ignored_and_what_is_no_update_is_refused() {
        let poll = json!({"update_id": 1, "poll": {}}).to_string();
        assert!(matches!(normalise(poll.as_bytes()), Ok(Received::Ignored(_))));
        let chatless = normalise(b"{\"update_id\":1,\"message\":{}}");
        let Ok(Received::Unusable(error)) = chatless else {
            panic!("{chatless:?}");
        };
        assert_eq!(error.field.as_deref(), Some("message.chat.id"));
        for body in [&b"{"[..], b"[]", b"{\"message\":{}}", b"\xff\xfe"] {
            assert_eq!(
                normalise(body).unwrap_err().reason,
                Reason::InvalidField,
                "{body:?}"
            );
        }
    }

    #[test]
    fn only_the_accounts_secret_opens() {
        assert!(verify(Some(b"s3cret"), "s3cret").is_ok());
        for (header, secret) in [(None, "s3cret"), (Some(&b"other"[..]), "s3cret"), (Some(b""), "")] {
            assert_eq!(verify(header, secret).unwrap_err().reason, Reason::BadCredential);
        }
    }
}
