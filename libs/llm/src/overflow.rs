//! Reading "the context is too long" out of the words of providers.

use crate::ModelError;

const WORDS: [&str; 14] = [
    "context_length_exceeded",
    "exceed_context_size",
    "maximum context length",
    "prompt is too long",
    "exceed context limit",
    "exceeds the context window",
    "exceed the context window",
    "context window exceeded",
    "available context size",
    "input tokens exceed",
    "input token count",
    "request_too_large",
    "too many input tokens",
    "input is too long",
];

/// What stands before the number of tokens that were sent.
const OBSERVED: [&str; 7] = [
    "you requested",
    "resulted in",
    "request has",
    "prompt contains",
    "input token count",
    "\"n_prompt_tokens\"",
    "prompt is too long",
];

/// What stands before the number of tokens that there may be.
const LIMIT: [&str; 7] = [
    "maximum context length is",
    "maximum context length of",
    "configured limit of",
    "tokens allowed",
    "\"n_ctx\"",
    "too large for model with",
    "context window of",
];

/// Most characters between such words and their number ("about", brackets, a colon).
const GAP: usize = 12;

/// The overflow that a lower-case body tells of.
pub fn overflow(body: &str) -> Option<ModelError> {
    if !WORDS.iter().any(|words| body.contains(words)) {
        return None;
    }
    let (observed, limit) = comparison(body).unwrap_or_else(|| {
        let after = |phrases: &[&str]| phrases.iter().find_map(|phrase| number_after(body, phrase));
        (after(&OBSERVED), after(&LIMIT))
    });
    Some(ModelError::Overflow { observed, limit })
}

/// `209761 tokens > 200000 maximum` and `188240 + 21333 > 200000`.
fn comparison(body: &str) -> Option<(Option<u64>, Option<u64>)> {
    let (left, right) = body.split_once(" > ")?;
    let limit = leading(right)?;
    let left = left.strip_suffix(" tokens").unwrap_or(left);
    let mut observed = 0_u64;
    for (place, term) in left.rsplit(" + ").enumerate() {
        let digits = trailing(term)?;
        observed = observed.saturating_add(digits);
        let whole = term.bytes().all(|b| b.is_ascii_digit() || b == b',');
        if !whole || place > 2 {
            break;
        }
    }
    Some((Some(observed), Some(limit)))
}

fn number_after(body: &str, phrase: &str) -> Option<u64> {
    let rest = &body[body.find(phrase)? + phrase.len()..];
    let start = rest.find(|c: char| c.is_ascii_digit())?;
    if rest[..start].chars().count() > GAP {
        return None;
    }
    leading(&rest[start..])
}

/// The number that a text begins with; thousands separators are read.
fn leading(text: &str) -> Option<u64> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == ','))
        .unwrap_or(text.len());
    text[..end].replace(',', "").parse().ok()
}

/// The number that a text ends with.
fn trailing(text: &str) -> Option<u64> {
    let start = text
        .rfind(|c: char| !(c.is_ascii_digit() || c == ','))
        .map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
    text[start..].replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_each_provider_are_read() {
        let cases = [
            (
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9,001 tokens.",
                Some(9_001),
                Some(8_192),
            ),
            (
                "This model's maximum context length is 8192 tokens. However, you requested 9001 tokens (8001 in the messages, 1000 in the completion).",
                Some(9_001),
                Some(8_192),
            ),
            (
                "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.",
                Some(300_000),
                Some(272_000),
            ),
            (
                "prompt is too long: 209761 tokens > 200000 maximum",
                Some(209_761),
                Some(200_000),
            ),
            (
                "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length",
                Some(209_573),
                Some(200_000),
            ),
            (
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
                Some(1_200_000),
                Some(1_048_576),
            ),
            (
                r#"{"error":{"type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}"#,
                Some(5_000),
                Some(4_096),
            ),
            (
                "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
                Some(40_000),
                Some(32_768),
            ),
            (r#"{"error":{"code":"context_length_exceeded"}}"#, None, None),
        ];
        for (body, observed, limit) in cases {
            assert_eq!(
                overflow(&body.to_lowercase()),
                Some(ModelError::Overflow { observed, limit }),
                "{body}"
            );
        }
        assert_eq!(overflow("the window of the shop is too long"), None);
    }
}
