//! What images, sound and files cost in a prompt.

use super::Tokenizer;
use super::images::{Detail, ImageRule};
use super::sniff;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use colloquy_types::message::{Media, MediaData, MediaKind};

/// Sound or a file of unknown length, by reference: a minute of speech, a page or two.
pub const UNKNOWN_MEDIA_TOKENS: u32 = 2_000;

/// Characters of base64 in which an image's header is looked for: 48 KiB of the file.
const HEADER: usize = 64 << 10;
/// Bytes of a second of compressed speech, 32 kbit/s: low, so that a recording is rather taken for too long.
const SPEECH_RATE: u32 = 4_000;
/// Bytes of a page of a PDF that does not show its pages.
const PAGE_BYTES: usize = 50_000;

/// Tokens of a media part: an image by its size, sound by its length, a text file by its text, a PDF by its pages, other
/// files like text of their size. What is only referred to is of unknown size.
pub(super) fn count(media: &Media, images: ImageRule, tokenizer: Tokenizer) -> u32 {
    let inline = match &media.data {
        MediaData::Inline(base64) => Some(base64.as_str()),
        MediaData::Reference(_) => None,
    };
    match (media.kind, inline) {
        (MediaKind::Image, inline) => {
            let size = inline.and_then(|base64| sniff::image_size(&decode(base64, HEADER)));
            images.tokens(size, Detail::High)
        }
        (_, None) => UNKNOWN_MEDIA_TOKENS,
        (MediaKind::Audio, Some(base64)) => {
            let bytes = base64.trim_end_matches('=').len() * 3 / 4;
            let rate = sniff::wave_rate(&decode(base64, 64)).unwrap_or(SPEECH_RATE);
            number(bytes.div_ceil(rate as usize)).saturating_mul(images.second())
        }
        (MediaKind::File, Some(base64)) => file(&media.mime, &decode(base64, usize::MAX), images, tokenizer),
    }
}

fn file(mime: &str, bytes: &[u8], images: ImageRule, tokenizer: Tokenizer) -> u32 {
    if mime == "application/pdf" || bytes.starts_with(b"%PDF") {
        let pages = match sniff::pdf_pages(bytes) {
            0 => bytes.len() / PAGE_BYTES + 1,
            pages => pages,
        };
        return number(pages).saturating_mul(images.page());
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => tokenizer.count_text(text),
        Err(_) => number(bytes.len() / 4).max(UNKNOWN_MEDIA_TOKENS),
    }
}

/// The bytes behind the first so many characters; none for what is not base64.
fn decode(base64: &str, characters: usize) -> Vec<u8> {
    let length = if base64.len() > characters {
        characters / 4 * 4
    } else {
        base64.len()
    };
    let start = base64.as_bytes().get(..length).unwrap_or_default();
    STANDARD.decode(start).unwrap_or_default()
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
