//! Claude's published vocabulary: exact for Claude 2 and the best public measure of later models, whose own is not
//! public. Anthropic's rule: normalise to NFKC, split by a pattern, merge each piece
//! (<https://github.com/anthropics/anthropic-tokenizer-typescript>). The data and its licence: `vocab/README.md`.

use super::merge::{Merger, Vocabulary};
use regex_automata::{Anchored, Input, meta::Regex};
use std::borrow::Cow;
use std::sync::LazyLock;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

static DATA: &[u8] = include_bytes!("../../vocab/claude.tokens");

/// Built once per process, in a few milliseconds.
static CLAUDE: LazyLock<Claude> = LazyLock::new(|| Claude {
    vocabulary: Vocabulary::new(Tokens(DATA)),
    pattern: Regex::new_many(&PATTERNS).expect("the patterns are constant and a test compiles them"),
});

/// The published pattern. Its look-ahead `\s+(?!\S)`, which the engine does not know, is the last of the first pattern at
/// the end of the text, and elsewhere the second, of whose match the last character is given back.
const PATTERNS: [&str; 3] = [
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+$",
    r"\s+\s",
    r"\s",
];
const GIVES_BACK: usize = 1;

struct Claude {
    vocabulary: Vocabulary,
    pattern: Regex,
}

/// Tokens of a text. What reads like a special token (`<EOT>`) is text.
pub(super) fn count(text: &str) -> usize {
    let text = normal(text);
    let mut merger = Merger::new(&CLAUDE.vocabulary);
    pieces(&text).map(|piece| merger.count(piece.as_bytes())).sum()
}

fn normal(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfkc_quick(text.chars()) == IsNormalized::Yes {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.nfkc().collect())
    }
}

fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let found = CLAUDE.pattern.find(Input::new(rest).anchored(Anchored::Yes))?;
        let mut piece = &rest[..found.end()];
        if found.pattern().as_usize() == GIVES_BACK {
            let last = piece.chars().next_back().map_or(0, char::len_utf8);
            piece = &piece[..piece.len() - last];
        }
        rest = &rest[piece.len()..];
        Some(piece)
    })
}

/// Reads the data file.
struct Tokens(&'static [u8]);

impl Iterator for Tokens {
    type Item = &'static [u8];

    fn next(&mut self) -> Option<&'static [u8]> {
        let (length, rest) = match *self.0 {
            [] => return None,
            [255, low, high, ..] => (usize::from(u16::from_le_bytes([low, high])), &self.0[3..]),
            [length, ..] => (usize::from(length), &self.0[1..]),
        };
        let (token, rest) = rest.split_at(length);
        self.0 = rest;
        Some(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vocabulary_is_whole() {
        assert_eq!(CLAUDE.vocabulary.len(), 64_995);
        let bytes = Tokens(DATA).filter(|token| token.len() == 1).count();
        assert_eq!(bytes, 256, "every byte is a token, so every text has a count");
    }

    #[test]
    fn whitespace_leaves_its_last_character_to_the_word() {
        let all = |text| pieces(text).collect::<Vec<_>>();
        assert_eq!(all("a  b"), ["a", " ", " b"]);
        assert_eq!(all("a \n b"), ["a", " \n", " b"]);
        assert_eq!(all("a\nb  "), ["a", "\n", "b", "  "]);
        assert_eq!(all("it's 12½!?"), ["it", "'s", " 12½", "!?"]);
    }
}
