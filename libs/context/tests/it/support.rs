//! Entries, items and the shared files.

use colloquy_context::{Item, Origin, Tokenizer, count_body};
use colloquy_types::message::{Message, Part, Role, ToolCall, ToolResult};
use colloquy_types::{Entry, EntryBody, EntryId, Seq, UnixMillis};
use std::borrow::Cow;
use std::path::PathBuf;

/// The folder of shared cases and data; none where it is not there.
pub fn shared(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("COLLOQUY_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let found = root.join(path);
    if found.exists() {
        return Some(found);
    }
    println!("skipped: {} does not exist", found.display());
    None
}

pub fn entry(seq: i64, body: EntryBody) -> Entry {
    let tokens = count_body(&body, Tokenizer::O200k);
    Entry {
        id: EntryId::new(),
        seq: Seq(seq),
        body,
        turn: None,
        tokens,
        tokenizer: Tokenizer::O200k.name().to_owned(),
        at: UnixMillis(seq),
    }
}

/// Entries with seq 1, 2, 3 …
pub fn entries(messages: impl IntoIterator<Item = Message>) -> Vec<Entry> {
    let bodies = messages.into_iter().map(EntryBody::Message);
    (1..).zip(bodies).map(|(seq, body)| entry(seq, body)).collect()
}

/// Items with seq 1, 2, 3 …, counted by the given function.
pub fn items<'a>(messages: &'a [Message], count: &dyn Fn(&Message) -> u32) -> Vec<Item<'a>> {
    let item = |(seq, message): (i64, &'a Message)| {
        let origin = Origin::Entry {
            seq: Seq(seq),
            id: EntryId::new(),
        };
        Item::new(origin, Cow::Borrowed(message), count(message))
    };
    (1..).zip(messages).map(item).collect()
}

pub fn call(id: &str, name: &str, arguments: &str) -> Part {
    Part::ToolCall(ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    })
}

pub fn result(id: &str, text: &str) -> Part {
    Part::ToolResult(ToolResult {
        call_id: id.to_owned(),
        name: String::new(),
        parts: vec![Part::text(text)],
        is_error: false,
    })
}

pub fn calls(parts: Vec<Part>) -> Message {
    Message::new(Role::Assistant, parts)
}

pub fn tool(id: &str, text: &str) -> Message {
    Message::new(Role::Tool, vec![result(id, text)])
}

/// Characters of all text, results included: the measure of the shared prune cases.
pub fn chars(message: &Message) -> usize {
    let of = |part: &Part| match part {
        Part::Text { text } => text.chars().count(),
        Part::ToolResult(result) => result
            .parts
            .iter()
            .map(|part| {
                if let Part::Text { text } = part {
                    text.chars().count()
                } else {
                    0
                }
            })
            .sum(),
        _ => 0,
    };
    message.parts.iter().map(of).sum()
}

pub fn quarter_chars(message: &Message) -> u32 {
    u32::try_from(chars(message).div_ceil(4)).unwrap()
}
