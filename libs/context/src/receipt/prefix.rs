//! What a request shares with the one before it, told from the earlier receipt alone.
//!
//! A receipt keeps hashes of its request at a few marks. The next build hashes its own bytes at the same places:
//! where a hash differs, the bytes sent before have changed.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::ops::Range;

/// Marks of a receipt besides the one at the end, at most; between two are at least so many bytes.
const MAX_MARKS: usize = 64;
const LEAST_STEP: usize = 16;
/// A hash keeps the bits that a JSON number has in every language.
const HASH_BITS: u32 = 53;

/// The hash of a request up to some byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64)", into = "(u64, u64)")]
pub struct Mark {
    /// Bytes before the mark.
    pub bytes: u64,
    /// Of those bytes.
    pub hash: u64,
}

impl From<(u64, u64)> for Mark {
    fn from((bytes, hash): (u64, u64)) -> Self {
        Self { bytes, hash }
    }
}

impl From<Mark> for (u64, u64) {
    fn from(mark: Mark) -> Self {
        (mark.bytes, mark.hash)
    }
}

/// What a later build needs to know of a request's bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Prefix {
    /// Provider's messages before the running turn's first one; all of them where no turn runs.
    pub history_messages: u32,
    /// In the order of the bytes. The last one stands where the next request may go on: before the brackets that
    /// close the last message and the list.
    pub marks: Vec<Mark>,
}

/// A request's hashes.
pub(crate) struct Digested {
    /// Hex, of all bytes.
    pub sha256: String,
    pub marks: Vec<Mark>,
    /// Between which bytes the earlier request is first not repeated, if it is not.
    pub changed: Option<Range<u64>>,
}

/// Hashes a request once, at its own marks and at those of the earlier one.
pub(crate) fn digest(bytes: &[u8], earlier: &[Mark]) -> Digested {
    let mut rolling = Rolling {
        bytes,
        at: 0,
        hasher: Sha256::new(),
    };
    let mut earlier = earlier.iter().peekable();
    let mut comparison = Comparison::default();
    let mut marks = Vec::with_capacity(MAX_MARKS + 1);
    let (step, end) = ((bytes.len() / MAX_MARKS).max(LEAST_STEP), open_end(bytes));
    for at in (step..end).step_by(step).chain(Some(end)) {
        let at = at as u64;
        while let Some(mark) = earlier.next_if(|mark| mark.bytes <= at) {
            comparison.add(mark, rolling.hash_until(mark.bytes));
        }
        let hash = rolling.hash_until(at).unwrap_or_default();
        marks.push(Mark { bytes: at, hash });
    }
    for mark in earlier {
        comparison.add(mark, rolling.hash_until(mark.bytes));
    }
    Digested {
        sha256: rolling.finish(),
        marks,
        changed: comparison.changed,
    }
}

/// Without the brackets and the quote that end the last message: a longer request may go on in it.
fn open_end(bytes: &[u8]) -> usize {
    let is_closing = |byte: &u8| matches!(byte, b']' | b'}' | b'"');
    bytes.len() - bytes.iter().rev().take_while(|byte| is_closing(byte)).count()
}

struct Rolling<'b> {
    bytes: &'b [u8],
    at: usize,
    hasher: Sha256,
}

impl Rolling<'_> {
    /// The hash of the first `end` bytes; none when there are fewer. Ends come in order.
    fn hash_until(&mut self, end: u64) -> Option<u64> {
        let end = usize::try_from(end).ok()?;
        let more = self.bytes.get(self.at..end)?;
        self.hasher.update(more);
        self.at = end;
        let digest = self.hasher.clone().finalize();
        let first = digest.first_chunk().copied().unwrap_or_default();
        Some(u64::from_be_bytes(first) >> (u64::BITS - HASH_BITS))
    }

    fn finish(mut self) -> String {
        self.hasher.update(&self.bytes[self.at..]);
        hex::encode(self.hasher.finalize())
    }
}

/// The first mark that differs, told mark by mark.
#[derive(Default)]
struct Comparison {
    kept: u64,
    changed: Option<Range<u64>>,
}

impl Comparison {
    fn add(&mut self, mark: &Mark, hash: Option<u64>) {
        if self.changed.is_none() && hash == Some(mark.hash) {
            self.kept = mark.bytes;
        } else if self.changed.is_none() {
            self.changed = Some(self.kept..mark.bytes);
        }
    }
}

/// The messages of a request that have bytes in a range. Read only where something has changed, for it looks at all
/// bytes before.
pub(crate) fn messages_within(json: &[u8], range: &Range<u64>) -> Range<usize> {
    let place = |at: u64| usize::try_from(at).unwrap_or(json.len()).min(json.len());
    let (from, until) = (place(range.start), place(range.end));
    let starts = starts(&json[..until]);
    let first = starts.partition_point(|start| *start <= from).saturating_sub(1);
    first..starts.len().max(first + 1)
}

/// The places of the elements of a JSON list in its text, which may end early.
fn starts(json: &[u8]) -> Vec<usize> {
    let mut starts = Vec::new();
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(&byte) = json.get(at) {
        match byte {
            b'[' | b'{' => {
                depth += 1;
                if depth == 1 {
                    starts.push(at + 1);
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 1 => starts.push(at + 1),
            b'"' => at = end_of_string(json, at + 1),
            _ => {}
        }
        at += 1;
    }
    starts
}

/// The place of the quote that ends the string.
fn end_of_string(json: &[u8], mut at: usize) -> usize {
    while let Some(found) = json.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if json[at] == b'"' {
            return at;
        }
        at += 2;
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use super::{Mark, digest, messages_within, starts};

    fn marks(json: &str) -> Vec<Mark> {
        digest(json.as_bytes(), &[]).marks
    }

    #[test]
    fn elements_of_a_list_are_found_whatever_their_strings_say() {
        let json = r#"[{"a":[1,2],"b":"x],[\"\\"},"y,\\",[3,{"c":","}]]"#;
        let found = starts(json.as_bytes());
        let firsts: Vec<&str> = found.iter().map(|&at| &json[at..=at]).collect();
        assert_eq!(firsts, ["{", "\"", "["]);
    }

    #[test]
    fn a_request_that_goes_on_changes_nothing() {
        let first = marks(r#"[{"c":"a"},{"c":["b"]}]"#);
        for longer in [
            r#"[{"c":"a"},{"c":["b"]}]"#,
            r#"[{"c":"a"},{"c":["b"]},{"c":"d"}]"#,
            r#"[{"c":"a"},{"c":["b","d"]}]"#,
        ] {
            assert_eq!(digest(longer.as_bytes(), &first).changed, None, "{longer}");
        }
    }

    #[test]
    fn the_messages_that_may_be_the_first_to_differ_are_found() {
        let long = |text: &str| format!(r#"{{"c":"{text}{}"}}"#, ".".repeat(100));
        let list = |texts: &[&str]| {
            format!(
                "[{}]",
                texts.iter().map(|text| long(text)).collect::<Vec<_>>().join(",")
            )
        };
        let first = marks(&list(&["a", "b", "c"]));
        for (other, messages) in [
            (list(&["x", "b", "c", "d"]), 0..1),
            (list(&["a", "x", "c"]), 1..2),
            (list(&["a", "b", "x"]), 2..3),
            (list(&["a"]), 0..1),
            ("[]".to_owned(), 0..1),
        ] {
            let changed = digest(other.as_bytes(), &first).changed.unwrap();
            assert_eq!(messages_within(other.as_bytes(), &changed), messages, "{other}");
        }
    }
}
