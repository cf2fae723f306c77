//! Replies that are stored and not delivered.

/// The agent has nothing to say.
pub const NO_REPLY: &str = "NO_REPLY";
/// Nothing to report, in heartbeat turns.
pub const HEARTBEAT_OK: &str = "HEARTBEAT_OK";

/// What is left to deliver of a reply's text: `None` when it is silent, else the text, with a token at its end
/// removed. `prefix` = a reply that starts with the token as a whole word is silent too; `heartbeat` = the
/// heartbeat token counts as well.
pub fn deliverable(text: &str, prefix: bool, heartbeat: bool) -> Option<&str> {
    let tokens: &[&str] = if heartbeat {
        &[NO_REPLY, HEARTBEAT_OK]
    } else {
        &[NO_REPLY]
    };
    let mut left = text.trim();
    for token in tokens {
        if left.eq_ignore_ascii_case(token) || (prefix && starts_with_word(left, token)) {
            return None;
        }
        if let Some(kept) = strip_at_end(left, token) {
            left = kept.trim_end();
        }
    }
    // An ordinary reply goes out as it was written.
    if left.len() == text.trim().len() {
        Some(text)
    } else {
        (!left.is_empty()).then_some(left)
    }
}

fn starts_with_word(text: &str, token: &str) -> bool {
    let begins = text
        .get(..token.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(token));
    begins
        && text[token.len()..]
            .chars()
            .next()
            .is_none_or(|next| !next.is_alphanumeric() && next != '_')
}

fn strip_at_end<'a>(text: &'a str, token: &str) -> Option<&'a str> {
    let cut = text.len().checked_sub(token.len())?;
    let kept = text.get(..cut)?;
    let is_token = text[cut..].eq_ignore_ascii_case(token);
    let apart = kept
        .chars()
        .next_back()
        .is_some_and(|last| !last.is_alphanumeric() && last != '_');
    (is_token && apart).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_silences() {
        for (text, prefix, heartbeat, expected) in [
            ("NO_REPLY", false, false, None),
            (" no_reply\n", false, false, None),
            ("Done. NO_REPLY", false, false, Some("Done.")),
            ("NO_REPLY because", false, false, Some("NO_REPLY because")),
            ("NO_REPLY because", true, false, None),
            ("NO_REPLYING", true, false, Some("NO_REPLYING")),
            ("HEARTBEAT_OK", false, false, Some("HEARTBEAT_OK")),
            ("HEARTBEAT_OK", false, true, None),
            (" hello ", false, false, Some(" hello ")),
            ("語", true, true, Some("語")),
        ] {
            assert_eq!(deliverable(text, prefix, heartbeat), expected, "{text}");
        }
    }
}
