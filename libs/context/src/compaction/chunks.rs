//! How a range is read to the summary model, in pieces that fit its window.

use crate::prune::{PruneOptions, trim};
use crate::tokens::Tokenizer;
use colloquy_types::message::{Message, Part, Role};
use std::ops::Range;

/// What one call of the summary model reads, beside the summary so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Messages of the range, by index.
    pub messages: Range<usize>,
    /// Bytes of the rendered text where the chunk is a piece of a single message that is too long.
    pub piece: Option<Range<usize>>,
    pub tokens: u32,
}

/// A message as the summary model reads it: the speaker, text, calls, and results shortened.
#[must_use]
pub fn render(message: &Message) -> String {
    let speaker = match message.role {
        Role::User if !message.author.name.is_empty() => message.author.name.as_str(),
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
        Role::System => "system",
    };
    let lines: Vec<String> = message.parts.iter().filter_map(render_part).collect();
    format!("{speaker}: {}", lines.join("\n"))
}

fn render_part(part: &Part) -> Option<String> {
    match part {
        Part::Text { text } => Some(text.clone()),
        Part::Media(media) => Some(format!("[attachment {} {}]", media.name, media.mime)),
        Part::ToolCall(call) => Some(format!("[calls {} {}]", call.name, call.arguments)),
        Part::ToolResult(result) => {
            let short = trim(result, &PruneOptions::goclaw());
            let parts = &short.as_ref().unwrap_or(result).parts;
            let text: Vec<String> = parts.iter().filter_map(render_part).collect();
            Some(format!(
                "[{} {}] {}",
                if result.is_error { "error of" } else { "result of" },
                result.name,
                text.join("\n")
            ))
        }
        // The model's own reasoning is not part of what was said and done.
        Part::Thinking(_) => None,
    }
}

/// Divides rendered messages into chunks of at most half the summary model's window; the other half is for the
/// summary so far, the instructions and the answer. A longer message is divided itself, at character borders.
#[must_use]
pub fn chunks(rendered: &[String], summary_window: u32, tokenizer: Tokenizer) -> Vec<Chunk> {
    let most = (summary_window / 2).max(1);
    let mut chunks: Vec<Chunk> = Vec::new();
    for (at, text) in rendered.iter().enumerate() {
        let tokens = tokenizer.count_text(text);
        if tokens > most {
            chunks.extend(pieces(text, most, tokenizer).map(|(piece, tokens)| Chunk {
                messages: at..at + 1,
                piece: Some(piece),
                tokens,
            }));
            continue;
        }
        match chunks.last_mut() {
            Some(last) if last.piece.is_none() && last.tokens.saturating_add(tokens) <= most => {
                last.messages.end = at + 1;
                last.tokens += tokens;
            }
            _ => chunks.push(Chunk {
                messages: at..at + 1,
                piece: None,
                tokens,
            }),
        }
    }
    chunks
}

/// Pieces of a text of at most `most` tokens each, but at least one character.
fn pieces(text: &str, most: u32, tokenizer: Tokenizer) -> impl Iterator<Item = (Range<usize>, u32)> + '_ {
    let mut start = 0;
    std::iter::from_fn(move || {
        if start >= text.len() {
            return None;
        }
        // A token has at least one byte, so this much certainly fits; most texts take four times as much.
        let (mut length, mut tokens) = fitting(&text[start..], (most as usize).saturating_mul(4), tokenizer);
        while tokens > most && length > 1 {
            let shorter = (length * most as usize / tokens as usize).clamp(1, length - 1);
            (length, tokens) = match fitting(&text[start..], shorter, tokenizer) {
                (same, _) if same >= length => break,
                fits => fits,
            };
        }
        let piece = start..start + length;
        start = piece.end;
        Some((piece, tokens))
    })
}

/// The first `bytes` of a text, rounded down to a character border but not to nothing, and their tokens.
fn fitting(text: &str, bytes: usize, tokenizer: Tokenizer) -> (usize, u32) {
    let mut end = bytes.min(text.len());
    while end > 0 && !text.is_char_boundary(end) {
        end -= 1;
    }
    if end == 0 {
        end = text.chars().next().map_or(0, char::len_utf8);
    }
    (end, tokenizer.count_text(&text[..end]))
}
