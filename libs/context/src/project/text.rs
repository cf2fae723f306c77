//! All text of a message as one string.

use super::out::Out;
use super::{NO_OUTPUT, media};
use crate::item::is_blank;
use colloquy_types::message::Part;

/// Whether a part is shown as text, attachments by their marker.
pub(super) fn is_shown(part: &Part) -> bool {
    match part {
        Part::Text { text } => !is_blank(text),
        Part::Media(_) => true,
        _ => false,
    }
}

/// Whether the parts say anything.
pub(super) fn has_text(parts: &[Part]) -> bool {
    parts.iter().any(is_shown)
}

/// The inside of a string: all text by lines, attachments by their marker.
pub(super) fn lines(out: &mut Out, parts: &[Part]) {
    for (at, part) in parts.iter().filter(|part| is_shown(part)).enumerate() {
        if at > 0 {
            out.raw(r"\n");
        }
        match part {
            Part::Text { text } => out.escaped(text),
            Part::Media(media) => media::marker(out, media),
            _ => {}
        }
    }
}

/// The inside of a result's string; providers refuse an empty one.
pub(super) fn output(out: &mut Out, parts: &[Part]) {
    if has_text(parts) {
        lines(out, parts);
    } else {
        out.raw(NO_OUTPUT);
    }
}

/// The inside of a string: a system message where the provider knows none inside a conversation.
pub(super) fn system(out: &mut Out, parts: &[Part]) {
    out.raw(r"<system>\n");
    lines(out, parts);
    out.raw(r"\n</system>");
}
