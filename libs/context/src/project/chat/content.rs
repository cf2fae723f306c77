//! Content in the forms of Chat Completions and Mistral.

use super::Dialect;
use crate::project::out::Out;
use crate::project::{media, text};
use colloquy_types::message::{Media, MediaKind, Part};

/// One string where there is only text, the form every compatible endpoint takes; else a list of parts.
pub(super) fn string_or_list(out: &mut Out, parts: &[Part], dialect: Dialect) {
    let takes = |part: &Part| matches!(part, Part::Media(media) if takes(media, dialect));
    if parts.iter().any(takes) {
        out.raw("[");
        parts.iter().for_each(|part| list_part(out, part, dialect));
        out.raw("]");
    } else {
        out.raw(r#"""#);
        text::lines(out, parts);
        out.raw(r#"""#);
    }
}

/// One part of a list; nothing for what is not shown.
pub(super) fn list_part(out: &mut Out, part: &Part, dialect: Dialect) {
    match part {
        Part::Text { text } if text::is_shown(part) => {
            out.comma();
            out.raw(r#"{"type":"text","text":"#);
            out.string(text);
            out.raw("}");
        }
        Part::Media(media) if takes(media, dialect) => {
            out.comma();
            media_part(out, media, dialect);
        }
        Part::Media(media) => {
            out.comma();
            out.raw(r#"{"type":"text","text":""#);
            media::marker(out, media);
            out.raw(r#""}"#);
        }
        _ => {}
    }
}

/// Whether the endpoint takes this attachment.
fn takes(media: &Media, dialect: Dialect) -> bool {
    let is_inline = media::inline(media).is_some();
    let is_mistral = dialect == Dialect::Mistral;
    match media.kind {
        MediaKind::Image => {
            media::web_url(media).is_some() || (is_inline && media::web_image(media).is_some())
        }
        MediaKind::Audio => is_inline && media::common_audio(media).is_some(),
        MediaKind::File if is_mistral => media::is_pdf(media) && media::safe_url(media).is_some(),
        MediaKind::File => media::is_pdf(media) && is_inline,
    }
}

/// An attachment that the endpoint takes.
fn media_part(out: &mut Out, media: &Media, dialect: Dialect) {
    match media.kind {
        MediaKind::Image => {
            out.raw(r#"{"type":"image_url","image_url":{"url":""#);
            media::data_url(out, media, media::web_image(media).unwrap_or_default());
            out.raw(r#""}}"#);
        }
        MediaKind::Audio => audio(out, media, dialect),
        MediaKind::File => file(out, media),
    }
}

fn audio(out: &mut Out, media: &Media, dialect: Dialect) {
    out.raw(r#"{"type":"input_audio","input_audio":"#);
    let base64 = media::inline(media).unwrap_or_default();
    if dialect == Dialect::Mistral {
        out.string(base64);
        out.raw("}");
        return;
    }
    out.raw(r#"{"data":"#);
    out.string(base64);
    out.raw(r#","format":""#);
    out.raw(media::common_audio(media).unwrap_or_default());
    out.raw(r#""}}"#);
}

fn file(out: &mut Out, media: &Media) {
    if let Some(url) = media::safe_url(media) {
        out.raw(r#"{"type":"document_url","document_url":"#);
        out.string(url);
        out.raw("}");
        return;
    }
    out.raw(r#"{"type":"file","file":{"filename":"#);
    out.string(media::file_name(media));
    out.raw(r#","file_data":""#);
    media::data_url(out, media, "application/pdf");
    out.raw(r#""}}"#);
}
