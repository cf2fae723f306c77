//! Ids, URLs, paths and long numbers in a text: what a summary must repeat exactly.

/// Shortest run of digits that counts.
const NUMBER_DIGITS: usize = 6;
/// Longest identifier, in bytes; what is longer is data.
const LONGEST: usize = 256;

/// Identifiers in order of appearance; repetitions stay.
pub fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    let inside = |c: char| c.is_ascii_graphic() && !"\"'`<>()[]{},;|\\".contains(c);
    text.split(move |c: char| !inside(c))
        .flat_map(|word| {
            // A URL keeps its query; elsewhere `=` stands between a name and its value.
            let whole = word.contains("://");
            word.split(move |c: char| c == '=' && !whole)
        })
        .map(without_marks)
        .filter(|word| word.len() <= LONGEST && is_identifier(word))
}

/// Without the punctuation around it; the dots that a relative path begins with stay.
fn without_marks(word: &str) -> &str {
    let word = word.trim_end_matches([':', '.', '!', '?', '*']);
    let begun = word.trim_start_matches([':', '!', '?', '*', '#', '@']);
    if begun.starts_with("./") || begun.starts_with("../") {
        begun
    } else {
        begun.trim_start_matches('.')
    }
}

fn is_identifier(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let letters = word.bytes().filter(u8::is_ascii_alphabetic).count();
    let is_number = digits == word.len() && digits >= NUMBER_DIGITS;
    is_number || is_url(word) || (letters > 0 && is_path(word)) || is_code(word, letters, digits)
}

fn is_url(word: &str) -> bool {
    word.split_once("://")
        .is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty())
}

/// Anchored, or with a file's extension at its end: `and/or` is none.
fn is_path(word: &str) -> bool {
    let anchored = ["/", "./", "../", "~/"]
        .iter()
        .any(|start| word.starts_with(start));
    let name = word.rsplit('/').next().unwrap_or_default();
    let is_file = name
        .rsplit_once('.')
        .is_some_and(|(stem, extension)| !stem.is_empty() && (1..=5).contains(&extension.len()));
    let slashes = word.matches('/').count();
    (anchored && (slashes > 1 || is_file)) || (slashes > 0 && is_file)
}

/// `HAT136`, `ABC-1234`, or a longer word with letters and at least two digits.
fn is_code(word: &str, letters: usize, digits: usize) -> bool {
    let plain = word
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    let shouts = !word.bytes().any(|b| b.is_ascii_lowercase()) && word.len() >= 5;
    plain && letters > 0 && digits >= 2 && (shouts || word.len() >= 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_found_and_prose_is_not() {
        let text = "Order HAT136, see (https://a.example/x?y=1) and/or ./run.sh: id=ses_0123abcd, call 5551234. In 2026 \
                    e.g. nothing else.";
        let found: Vec<&str> = identifiers(text).collect();
        assert_eq!(
            found,
            [
                "HAT136",
                "https://a.example/x?y=1",
                "./run.sh",
                "ses_0123abcd",
                "5551234"
            ]
        );
    }
}
