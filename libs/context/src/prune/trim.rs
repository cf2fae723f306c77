//! The two ways to shorten one tool result.

use super::PruneOptions;
use colloquy_types::message::{Part, ToolResult};

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

/// Cuts the middle out of a long result; none when it is not longer than the limit. Attachments become
/// [`MEDIA_MARKER`].
#[must_use]
pub fn trim(result: &ToolResult, options: &PruneOptions) -> Option<ToolResult> {
    if result_chars(result) <= options.soft_limit_chars {
        return None;
    }
    let parts: Vec<Part> = result.parts.iter().map(without_media).collect();
    let parts = match cut_middle(&join(&parts), options) {
        Some(text) => vec![Part::text(text)],
        None => parts,
    };
    (parts != result.parts).then(|| ToolResult {
        parts,
        ..head_of(result)
    })
}

/// Replaces a result by the placeholder; none when that would not make it shorter.
#[must_use]
pub fn clear(result: &ToolResult) -> Option<ToolResult> {
    let longer = result_chars(result) > CLEARED.len();
    longer.then(|| ToolResult {
        parts: vec![Part::text(CLEARED)],
        ..head_of(result)
    })
}

pub(super) fn is_cleared(result: &ToolResult) -> bool {
    matches!(result.parts.as_slice(), [Part::Text { text }] if text == CLEARED)
}

pub(super) fn is_trimmed(result: &ToolResult) -> bool {
    let marked =
        |part: &Part| matches!(part, Part::Text { text } if text == MEDIA_MARKER || text.contains(CUT));
    result.parts.iter().any(marked)
}

const CUT: &str = " characters cut …]\n";

fn cut_middle(text: &str, options: &PruneOptions) -> Option<String> {
    let total = text.chars().count();
    let kept = options.head_chars + options.tail_chars;
    if total <= options.soft_limit_chars || total <= kept {
        return None;
    }
    let at = |chars: usize| {
        text.char_indices()
            .nth(chars)
            .map_or(text.len(), |(byte, _)| byte)
    };
    let (head, tail) = (
        &text[..at(options.head_chars)],
        &text[at(total - options.tail_chars)..],
    );
    Some(format!("{head}\n[… {} characters cut …]\n{tail}", total - kept))
}

fn join(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| {
        if let Part::Text { text } = part {
            Some(text.as_str())
        } else {
            None
        }
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn without_media(part: &Part) -> Part {
    match part {
        Part::Media(_) => Part::text(MEDIA_MARKER),
        other => other.clone(),
    }
}

/// The result without its parts.
fn head_of(result: &ToolResult) -> ToolResult {
    ToolResult {
        call_id: result.call_id.clone(),
        name: result.name.clone(),
        parts: Vec::new(),
        is_error: result.is_error,
    }
}
