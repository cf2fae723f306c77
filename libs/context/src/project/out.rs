//! The bytes of a request, written by hand: what must not change is copied, nothing is built as a value first.

use super::Projected;
use super::sources::Sources;
use crate::item::Item;
use colloquy_types::message::{MediaData, Part};

/// A JSON array of messages that is being written.
pub(super) struct Out {
    bytes: Vec<u8>,
    sources: Sources,
}

impl Out {
    pub(super) fn new(items: &[Item<'_>]) -> Self {
        let size: usize = items.iter().map(|item| size(&item.message.parts)).sum();
        let mut bytes = Vec::with_capacity(size + size / 16 + 2);
        bytes.push(b'[');
        Self {
            bytes,
            sources: Sources::with_capacity(items.len()),
        }
    }

    pub(super) fn finish(mut self) -> Projected {
        self.bytes.push(b']');
        Projected {
            bytes: self.bytes,
            sources: self.sources,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Starts the next message of the array.
    pub(super) fn message(&mut self) {
        self.comma();
        self.sources.start();
    }

    /// What was written last holds one message more, of this item.
    pub(super) fn another(&mut self, item: usize) {
        self.sources.start();
        self.sources.add(item);
    }

    /// The newest message has something of this item.
    pub(super) fn source(&mut self, item: usize) {
        self.sources.add(item);
    }

    /// Separates from the value before, where there is one.
    pub(super) fn comma(&mut self) {
        if !matches!(self.bytes.last(), Some(b'[' | b'{')) {
            self.bytes.push(b',');
        }
    }

    pub(super) fn raw(&mut self, json: &str) {
        self.bytes.extend_from_slice(json.as_bytes());
    }

    /// A tool's arguments where an object is demanded: other JSON is wrapped, for some models write a bare value.
    pub(super) fn object(&mut self, arguments: &str) {
        let arguments = arguments.trim();
        if arguments.starts_with('{') {
            self.raw(arguments);
        } else {
            self.raw(r#"{"value":"#);
            self.raw(arguments);
            self.raw("}");
        }
    }

    /// Any value with a JSON form, for shapes that are the product's own.
    pub(super) fn value(&mut self, value: &impl serde::Serialize) {
        serde_json::to_writer(&mut self.bytes, value).expect("the product's own types have a JSON form");
    }

    pub(super) fn string(&mut self, text: &str) {
        self.bytes.push(b'"');
        self.escaped(text);
        self.bytes.push(b'"');
    }

    /// The inside of a JSON string.
    pub(super) fn escaped(&mut self, text: &str) {
        let mut rest = text.as_bytes();
        while let Some(at) = first_escape(rest) {
            self.bytes.extend_from_slice(&rest[..at]);
            self.escape(rest[at]);
            rest = &rest[at + 1..];
        }
        self.bytes.extend_from_slice(rest);
    }

    fn escape(&mut self, byte: u8) {
        let short = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0c => b'f',
            _ => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
                self.bytes.extend_from_slice(b"\\u00");
                self.bytes.extend_from_slice(&digits);
                return;
            }
        };
        self.bytes.extend_from_slice(&[b'\\', short]);
    }
}

/// What the parts take in a request, about: too little costs a copy, too much some memory.
fn size(parts: &[Part]) -> usize {
    let of = |part: &Part| match part {
        Part::Text { text } => text.len(),
        Part::Media(media) => match &media.data {
            MediaData::Inline(data) | MediaData::Reference(data) => data.len() + 64,
        },
        Part::ToolCall(call) => call.arguments.len() + call.name.len() + 64,
        Part::ToolResult(result) => size(&result.parts) + 64,
        Part::Thinking(thinking) => thinking.signature.as_ref().map_or(0, String::len),
    };
    64 + parts.iter().map(|part| of(part) + 32).sum::<usize>()
}

const ONES: u64 = 0x0101_0101_0101_0101;

/// The first byte that a JSON string must escape, found eight at a time.
fn first_escape(bytes: &[u8]) -> Option<usize> {
    let mut chunks = bytes.chunks_exact(8);
    let mut at = 0;
    for chunk in chunks.by_ref() {
        let word = u64::from_le_bytes(chunk.try_into().expect("a chunk of eight is eight bytes"));
        let found = escapes(word);
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    let tail = chunks.remainder().iter();
    tail.clone()
        .position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\')
        .map(|found| at + found)
}

/// The high bit of every byte below a space, quote or backslash; exact for the lowest of them, which is all
/// that is read.
fn escapes(word: u64) -> u64 {
    let is_zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    let quote = is_zero(word ^ (ONES * u64::from(b'"')));
    let backslash = is_zero(word ^ (ONES * u64::from(b'\\')));
    (control | quote | backslash) & (ONES * 0x80)
}

#[cfg(test)]
mod tests {
    use super::Out;

    fn string(text: &str) -> String {
        let mut out = Out::new(&[]);
        out.string(text);
        String::from_utf8(out.bytes).unwrap()[1..].to_owned()
    }

    #[test]
    fn strings_are_written_as_serde_writes_them() {
        let every: String = (0..=0x17f_u32).filter_map(char::from_u32).collect();
        for text in [
            &every,
            "",
            "a",
            "\u{7f}\"",
            "1234567\"",
            "12345678\\",
            "日本語\u{0}𝄞\n",
        ] {
            assert_eq!(string(text), serde_json::to_string(text).unwrap());
            for start in 0..9 {
                let padded = format!("{}{text}", "x".repeat(start));
                assert_eq!(string(&padded), serde_json::to_string(&padded).unwrap());
            }
        }
    }
}
