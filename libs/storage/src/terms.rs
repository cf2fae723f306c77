//! Search terms of a text, the same for every backend: lower-cased words, and pairs of neighbouring characters
//! for scripts that are written without spaces.

use std::collections::BTreeSet;

/// Distinct terms in order. NUL and punctuation separate; a lone CJK character is a term of its own.
pub fn terms(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut word = String::new();
    let mut run: Vec<char> = Vec::new();
    for c in text.chars().chain(std::iter::once(' ')) {
        if is_unspaced(c) {
            flush_word(&mut word, &mut found);
            run.push(c);
        } else if c.is_alphanumeric() {
            flush_run(&mut run, &mut found);
            word.extend(c.to_lowercase());
        } else {
            flush_word(&mut word, &mut found);
            flush_run(&mut run, &mut found);
        }
    }
    found
}

/// [`terms`] joined by a space: what a backend's text index is fed with.
pub fn index_text(text: &str) -> String {
    terms(text).into_iter().collect::<Vec<_>>().join(" ")
}

fn flush_word(word: &mut String, found: &mut BTreeSet<String>) {
    if !word.is_empty() {
        // A term is bounded so that an index entry always fits.
        found.insert(word.chars().take(64).collect());
        word.clear();
    }
}

fn flush_run(run: &mut Vec<char>, found: &mut BTreeSet<String>) {
    if let [only] = run.as_slice() {
        found.insert(only.to_string());
    }
    for pair in run.windows(2) {
        found.insert(pair.iter().collect());
    }
    run.clear();
}

/// Han, kana, Hangul, Thai, Lao, Khmer, Myanmar.
fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3040..=0x30FF | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0x20000..=0x2FA1F)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_lower_cased_and_distinct() {
        assert_eq!(index_text("Tea, tea\0and TEA!"), "and tea");
    }

    #[test]
    fn unspaced_scripts_give_pairs() {
        assert_eq!(index_text("東京都 語 a"), "a 京都 東京 語");
    }
}
