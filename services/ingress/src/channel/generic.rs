//! A generic webhook for systems of one's own: a small JSON body signed with HMAC-SHA-256.
//!
//! `x-colloquy-signature: sha256=<hex of HMAC-SHA-256(secret, body)>`. Body:
//! `{"id": "…", "chat": "…", "kind": "direct" | "group" | "channel", "thread"?: "…", "topic"?: "…",
//! "sender": {"id": "…", "name"?: "…"}, "text": "…"}`. `id` is unique within the chat; posting it again is a redelivery.

use super::{ChatKind, Inbound, Received, dedupe};
use colloquy_types::message::{Author, Part, Provenance};
use colloquy_types::{Error, Reason, Result};
use hmac::{Hmac, Mac};
use serde::Deserialize;
use sha2::Sha256;

pub const SIGNATURE_HEADER: &str = "x-colloquy-signature";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    id: String,
    chat: String,
    kind: ChatKind,
    #[serde(default)]
    thread: Option<String>,
    #[serde(default)]
    topic: Option<String>,
    sender: Sender,
    text: String,
    /// Set for text that is not the sender's own.
    #[serde(default)]
    untrusted: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sender {
    id: String,
    #[serde(default)]
    name: String,
}

/// # Errors
/// `BAD_CREDENTIAL` when the signature is missing, malformed or another key's.
pub fn verify(header: Option<&[u8]>, body: &[u8], secret: &str) -> Result<()> {
    let wrong = || {
        Error::new(
            Reason::BadCredential,
            format!("{SIGNATURE_HEADER} does not sign this body"),
        )
    };
    let text = header
        .and_then(|value| std::str::from_utf8(value).ok())
        .ok_or_else(wrong)?;
    let given = text
        .strip_prefix("sha256=")
        .and_then(|digits| hex::decode(digits).ok())
        .ok_or_else(wrong)?;
    if secret.is_empty() {
        return Err(wrong());
    }
    signer(secret, body).verify_slice(&given).map_err(|_| wrong())
}

/// The header's value for a body.
pub fn sign(body: &[u8], secret: &str) -> String {
    format!(
        "sha256={}",
        hex::encode(signer(secret, body).finalize().into_bytes())
    )
}

fn signer(secret: &str, body: &[u8]) -> Hmac<Sha256> {
    let mut signer =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    signer.update(body);
    signer
}

/// # Errors
/// `INVALID_FIELD` naming the field.
pub fn normalise(body: &[u8]) -> Result<Received> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let body: Body = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        Error::invalid(
            if path == "." { "body".into() } else { path },
            error.into_inner().to_string(),
        )
    })?;
    for (field, value) in [
        ("id", &body.id),
        ("chat", &body.chat),
        ("sender.id", &body.sender.id),
    ] {
        if value.trim().is_empty() {
            return Err(Error::invalid(field, "is blank"));
        }
    }
    if body.text.is_empty() {
        return Err(Error::invalid("text", "is empty"));
    }
    Ok(Received::Message(Box::new(Inbound {
        chat_kind: body.kind,
        dedupe: dedupe(&body.chat, &body.id),
        chat: body.chat,
        topic: body.topic,
        thread: body.thread,
        sender: Author {
            id: body.sender.id,
            name: body.sender.name,
        },
        parts: vec![Part::text(body.text)],
        provenance: if body.untrusted {
            Provenance::Untrusted
        } else {
            Provenance::Owner
        },
        message_id: body.id,
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = br#"{"id":"1","chat":"c","kind":"direct","sender":{"id":"p"},"text":"hi"}"#;

    #[test]
    fn a_signed_body_is_taken_and_a_changed_one_is_not() {
        let signature = sign(BODY, "key");
        assert!(verify(Some(signature.as_bytes()), BODY, "key").is_ok());
        assert!(verify(Some(signature.as_bytes()), b"{}", "key").is_err());
        assert!(verify(Some(signature.as_bytes()), BODY, "other").is_err());
        assert!(verify(Some(sign(BODY, "").as_bytes()), BODY, "").is_err());
        assert!(verify(None, BODY, "key").is_err());
        assert!(matches!(normalise(BODY), Ok(Received::Message(_))));
    }

    #[test]
    fn errors_name_the_field() {
        let blank = br#"{"id":"1","chat":" ","kind":"direct","sender":{"id":"p"},"text":"hi"}"#;
        assert_eq!(normalise(blank).unwrap_err().field.as_deref(), Some("chat"));
        let wrong = br#"{"id":"1","chat":"c","kind":"direct","sender":{"id":7},"text":"hi"}"#;
        assert_eq!(normalise(wrong).unwrap_err().field.as_deref(), Some("sender.id"));
        assert!(normalise(b"\xff").is_err());
    }
}
