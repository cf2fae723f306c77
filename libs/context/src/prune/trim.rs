//! The two ways to shorten one tool result.

use super::PruneOptions;
use colloquy_types::message::{Part, ToolResult};
use std::borrow::Cow;

/// What a cleared result reads.
pub const CLEARED: &str = "[Old tool result content cleared]";
/// What stands for an image or another attachment of a trimmed result.
pub const MEDIA_MARKER: &str = "[attachment of an old tool result removed]";
/// What an image or another attachment counts for, in characters.
pub const MEDIA_CHARS: usize = 8_000;

/// Characters (Unicode scalar values) of a result's text, attachments counted as [`MEDIA_CHARS`].
#[must_use]
pub fn result_chars(result: &ToolResult) -> usize {
    result.parts.iter().map(part_chars).sum()
}

fn part_chars(part: &Part) -> usize {
    match part {
        Part::Text { text } => text.chars().count(),
        Part::Media(_) => MEDIA_CHARS,
        _ => 0,
    }
}

/// Whether a result has more characters than `limit`. Its bytes decide most of them: a character has one to four.
#[must_use]
pub fn is_longer(result: &ToolResult, limit: usize) -> bool {
    let bytes = |part: &Part| match part {
        Part::Text { text } => text.len(),
        _ => 0,
    };
    let media = |part: &&Part| matches!(part, Part::Media(_));
    let text: usize = result.parts.iter().map(bytes).sum();
    let attached = result.parts.iter().filter(media).count() * MEDIA_CHARS;
    if text + attached <= limit {
        return false;
    }
    text / 4 + attached > limit || result_chars(result) > limit
}

/// Cuts the middle out of a long result; none when it is not longer than the limit. Attachments become
/// [`MEDIA_MARKER`].
#[must_use]
pub fn trim(result: &ToolResult, options: &PruneOptions) -> Option<ToolResult> {
    if !is_longer(result, options.soft_limit_chars) {
        return None;
    }
    if let Some(text) = cut_middle(&joined(&result.parts), options) {
        return Some(with_parts(result, vec![Part::text(text)]));
    }
    let has_media = result.parts.iter().any(|part| matches!(part, Part::Media(_)));
    has_media.then(|| with_parts(result, result.parts.iter().map(without_media).collect()))
}

/// Replaces a result by the placeholder; none when that would not make it shorter.
#[must_use]
pub fn clear(result: &ToolResult) -> Option<ToolResult> {
    is_longer(result, CLEARED.len()).then(|| with_parts(result, vec![Part::text(CLEARED)]))
}

fn cut_middle(text: &str, options: &PruneOptions) -> Option<String> {
    let kept = options.head_chars + options.tail_chars;
    let least = options.soft_limit_chars.max(kept);
    // A text of enough bytes is long whatever it is written in; only the others are counted.
    if text.len() / 4 <= least && text.chars().count() <= least {
        return None;
    }
    let head = text
        .char_indices()
        .nth(options.head_chars)
        .map_or(text.len(), |(byte, _)| byte);
    let tail = match options.tail_chars.checked_sub(1) {
        Some(last) => text.char_indices().rev().nth(last).map_or(0, |(byte, _)| byte),
        None => text.len(),
    };
    let cut = text[head..tail].chars().count();
    let (head, note, tail) = (
        &text[..head],
        format!("\n[… {cut} characters cut …]\n"),
        &text[tail..],
    );
    Some([head, &note, tail].concat())
}

/// All text of a result, attachments by their marker.
fn joined(parts: &[Part]) -> Cow<'_, str> {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        Part::Media(_) => Some(MEDIA_MARKER),
        _ => None,
    });
    match parts {
        [Part::Text { text }] => Cow::Borrowed(text),
        _ => Cow::Owned(texts.collect::<Vec<_>>().join("\n")),
    }
}

fn without_media(part: &Part) -> Part {
    match part {
        Part::Media(_) => Part::text(MEDIA_MARKER),
        other => other.clone(),
    }
}

fn with_parts(result: &ToolResult, parts: Vec<Part>) -> ToolResult {
    ToolResult {
        call_id: result.call_id.clone(),
        name: result.name.clone(),
        parts,
        is_error: result.is_error,
    }
}
