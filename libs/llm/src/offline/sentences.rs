//! Text in sentences.

/// Longest sentence, in characters; what is longer is no sentence but a paste.
const LONGEST: usize = 400;

/// The statements of a text, in order, without their full stops. Questions state nothing.
pub fn statements(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let next = characters.peek().map(|(_, next)| *next);
        let last = next.is_none();
        // A full stop inside of a number, an address or a file's name ends nothing.
        let alone = next.is_none_or(|next| next.is_whitespace() || matches!(next, '"' | '\'' | ')'));
        let ends = matches!(c, '\n' | '。' | '！' | '？') || (matches!(c, '.' | '!' | '?') && alone);
        if !ends && !last {
            continue;
        }
        let end = if ends { at } else { text.len() };
        let sentence = text[start..end].trim().trim_end_matches(['.', '!']);
        let asks = matches!(c, '?' | '？');
        if !sentence.is_empty() && !asks && sentence.chars().count() <= LONGEST {
            found.push(sentence);
        }
        start = at + c.len_utf8();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_at_full_stops_but_not_inside_of_words() {
        let text = "It costs 5. See example.org/a.b for v1.2! Really? 名前は花子です。はい\nlast one";
        assert_eq!(
            statements(text),
            [
                "It costs 5",
                "See example.org/a.b for v1.2",
                "名前は花子です",
                "はい",
                "last one"
            ]
        );
    }
}
