//! What a summary must repeat exactly: ids, URLs, paths and long numbers.

use std::collections::HashSet;

/// Shortest run of digits that counts as a number worth keeping.
const NUMBER_DIGITS: usize = 6;

/// Identifiers of a text in order of appearance, each once.
#[must_use]
pub fn identifiers(text: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    // A URL keeps its query; elsewhere `=` stands between a name and its value.
    let inner = |word| {
        if is_url(word) {
            vec![word]
        } else {
            str::split(word, '=').collect()
        }
    };
    let words = text
        .split(is_separator)
        .flat_map(inner)
        .map(trim_word)
        .filter(|word| !word.is_empty());
    words
        .filter(|word| is_identifier(word) && seen.insert(*word))
        .map(str::to_owned)
        .collect()
}

/// What stands around identifiers in prose, JSON and code.
fn is_separator(character: char) -> bool {
    character.is_whitespace()
        || character.is_control()
        || matches!(
            character,
            '"' | '\'' | '`' | '<' | '>' | '(' | ')' | '[' | ']' | '{' | '}' | ',' | ';' | '|' | '\\'
        )
        || !character.is_ascii()
}

fn trim_word(word: &str) -> &str {
    word.trim_start_matches([':', '.', '!', '?', '*', '#', '@'])
        .trim_end_matches([':', '.', '!', '?', '*'])
}

fn is_identifier(word: &str) -> bool {
    is_url(word) || is_path(word) || is_number(word) || is_id(word)
}

fn is_url(word: &str) -> bool {
    word.split_once("://").is_some_and(|(scheme, rest)| {
        !rest.is_empty()
            && !scheme.is_empty()
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+')
    })
}

/// An absolute or relative path, or one with a file's extension: `and/or` is none.
fn is_path(word: &str) -> bool {
    let anchored = ["/", "./", "../", "~/"]
        .iter()
        .any(|anchor| word.starts_with(anchor));
    let name = word.rsplit('/').next().unwrap_or_default();
    let is_file = name.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty()
            && (1..=5).contains(&extension.len())
            && extension.bytes().all(|b| b.is_ascii_alphanumeric())
    });
    let slashes = word.matches('/').count();
    let has_letters = word.bytes().any(|b| b.is_ascii_alphabetic());
    has_letters && ((anchored && (slashes > 1 || is_file)) || (slashes > 0 && is_file))
}

fn is_number(word: &str) -> bool {
    word.len() >= NUMBER_DIGITS && word.bytes().all(|b| b.is_ascii_digit())
}

/// A code like `HAT136` or `ABC-1234`, or a longer word with letters and at least two digits.
fn is_id(word: &str) -> bool {
    if !word
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    {
        return false;
    }
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let letters = word.bytes().filter(u8::is_ascii_alphabetic).count();
    let is_code = !word.bytes().any(|b| b.is_ascii_lowercase()) && word.len() >= 5;
    letters > 0 && digits >= 2 && (is_code || word.len() >= 8)
}
