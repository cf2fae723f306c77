//! What of an attachment a provider can take, and the text that stands for the others.

use super::out::Out;
use crate::item::is_blank;
use colloquy_types::message::{Media, MediaData, MediaKind};

/// Writes the inside of a string that says what could not be sent.
pub(super) fn marker(out: &mut Out, media: &Media) {
    out.raw(match media.kind {
        MediaKind::Image => "[image not sent",
        MediaKind::Audio => "[audio not sent",
        MediaKind::File => "[file not sent",
    });
    let named = [&media.name, &media.mime]
        .into_iter()
        .find(|name| !is_blank(name));
    if let Some(name) = named {
        out.raw(": ");
        out.escaped(name);
    }
    out.raw("]");
}

/// Base64 that a provider can decode.
pub(super) fn inline(media: &Media) -> Option<&str> {
    match &media.data {
        MediaData::Inline(base64) if is_base64(base64) => Some(base64),
        _ => None,
    }
}

/// An address a provider can fetch; a channel's file id is none.
pub(super) fn web_url(media: &Media) -> Option<&str> {
    match &media.data {
        MediaData::Reference(url) if is_web_url(url) => Some(url),
        _ => None,
    }
}

/// An address that needs no trust in the network between.
pub(super) fn safe_url(media: &Media) -> Option<&str> {
    web_url(media).filter(|url| url.starts_with("https://"))
}

/// The types of image every provider takes, in their official spelling.
pub(super) fn web_image(media: &Media) -> Option<&'static str> {
    match media.mime.as_str() {
        _ if media.kind != MediaKind::Image => None,
        "image/jpeg" | "image/jpg" => Some("image/jpeg"),
        "image/png" => Some("image/png"),
        "image/gif" => Some("image/gif"),
        "image/webp" => Some("image/webp"),
        _ => None,
    }
}

/// The two types of audio every provider that hears takes.
pub(super) fn common_audio(media: &Media) -> Option<&'static str> {
    match media.mime.as_str() {
        _ if media.kind != MediaKind::Audio => None,
        "audio/wav" | "audio/x-wav" | "audio/wave" => Some("wav"),
        "audio/mpeg" | "audio/mp3" => Some("mp3"),
        _ => None,
    }
}

pub(super) fn is_pdf(media: &Media) -> bool {
    media.kind == MediaKind::File && media.mime == "application/pdf"
}

/// Standard base64 with its padding, and at least a byte of it.
pub(super) fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    !digits.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - digits.len() <= 2
        && digits.bytes().all(legal)
}

fn is_web_url(reference: &str) -> bool {
    let host = ["https://", "http://"]
        .iter()
        .find_map(|scheme| reference.strip_prefix(scheme));
    host.is_some_and(|host| !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || c.is_control()))
}

/// The inside of a string: the attachment's address, or its data as one.
pub(super) fn data_url(out: &mut Out, media: &Media, mime: &str) {
    if let Some(url) = web_url(media) {
        out.escaped(url);
    } else if let Some(base64) = inline(media) {
        for json in ["data:", mime, ";base64,", base64] {
            out.raw(json);
        }
    }
}

/// A file's name, or one that says what it is.
pub(super) fn file_name(media: &Media) -> &str {
    if is_blank(&media.name) {
        "document.pdf"
    } else {
        &media.name
    }
}
