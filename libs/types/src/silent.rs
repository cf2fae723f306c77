//! Replies that are stored and not delivered.

/// The agent has nothing to say.
pub const NO_REPLY: &str = "NO_REPLY";
/// Nothing to report, in heartbeat turns.
pub const HEARTBEAT_OK: &str = "HEARTBEAT_OK";

fn tokens(heartbeat: bool) -> &'static [&'static str] {
    if heartbeat {
        &[NO_REPLY, HEARTBEAT_OK]
    } else {
        &[NO_REPLY]
    }
}

/// Whether nothing of a reply's text is delivered. For the flags see [`deliverable`].
pub fn is_silent(text: &str, prefix: bool, heartbeat: bool) -> bool {
    deliverable(text, prefix, heartbeat).is_none()
}

/// What is left to deliver of a reply's text: `None` when it is silent, else the text, with tokens at its end
/// removed. `prefix` = a reply that starts with a token as a whole word is silent too; `heartbeat` = the
/// heartbeat token counts as well.
pub fn deliverable(text: &str, prefix: bool, heartbeat: bool) -> Option<&str> {
    let tokens = tokens(heartbeat);
    // An ordinary reply goes out as it was written, white space included.
    let mut left = text;
    loop {
        let core = left.trim();
        let silent =
            |token: &&str| core.eq_ignore_ascii_case(token) || (prefix && starts_with_word(core, token));
        if tokens.iter().any(silent) {
            return None;
        }
        let end = left.trim_end();
        match tokens.iter().find_map(|token| strip_at_end(end, token)) {
            Some(kept) => left = kept.trim_end(),
            None => return Some(left),
        }
    }
}

/// Lets a streamed reply through as far as it cannot turn out to be silent: text is held back while it may be a
/// token or the beginning of one. What comes out is what [`deliverable`] says of the whole.
#[derive(Debug, Clone)]
pub struct StreamFilter {
    prefix: bool,
    heartbeat: bool,
    text: String,
    /// Bytes of `text` that are out.
    released: usize,
}

impl StreamFilter {
    /// For the flags see [`deliverable`].
    pub fn new(prefix: bool, heartbeat: bool) -> Self {
        Self {
            prefix,
            heartbeat,
            text: String::new(),
            released: 0,
        }
    }

    /// The text that may go out now, possibly none.
    pub fn push(&mut self, delta: &str) -> &str {
        self.text.push_str(delta);
        let start = self.released;
        self.released = self.certain().max(start);
        &self.text[start..self.released]
    }

    /// The rest, once the reply is complete; none of a silent reply.
    pub fn finish(self) -> String {
        let whole = deliverable(&self.text, self.prefix, self.heartbeat).unwrap_or_default();
        whole.get(self.released..).unwrap_or_default().to_owned()
    }

    /// Where the tail begins that may be a token, part of one, or white space in front of one.
    fn certain(&self) -> usize {
        let tokens = tokens(self.heartbeat);
        let begin = self.text.trim_start();
        if self.prefix && tokens.iter().any(|token| starts_with_word(begin, token)) {
            return 0;
        }
        let mut left = self.text.trim_end();
        loop {
            let head = left.trim_end_matches(is_word);
            let last = &left[head.len()..];
            let may_be = |token: &&str| {
                let start = token.get(..last.len());
                start.is_some_and(|start| start.eq_ignore_ascii_case(last))
            };
            if last.is_empty() || !tokens.iter().any(may_be) {
                return left.len();
            }
            left = head.trim_end();
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn starts_with_word(text: &str, token: &str) -> bool {
    let begins = text
        .get(..token.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(token));
    begins
        && text[token.len()..]
            .chars()
            .next()
            .is_none_or(|next| !is_word(next))
}

fn strip_at_end<'a>(text: &'a str, token: &str) -> Option<&'a str> {
    let cut = text.len().checked_sub(token.len())?;
    let kept = text.get(..cut)?;
    let is_token = text[cut..].eq_ignore_ascii_case(token);
    let apart = kept.chars().next_back().is_some_and(|last| !is_word(last));
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
            ("NO_REPLY NO_REPLY", false, false, None),
            (" Done.\nNO_REPLY\nHEARTBEAT_OK ", false, true, Some(" Done.")),
            ("DO_NO_REPLY", false, false, Some("DO_NO_REPLY")),
        ] {
            assert_eq!(deliverable(text, prefix, heartbeat), expected, "{text}");
        }
    }

    #[test]
    fn a_stream_waits_while_it_may_still_be_silent() {
        let mut filter = StreamFilter::new(false, false);
        assert_eq!(filter.push("NO"), "");
        assert_eq!(filter.push("_RE"), "");
        assert_eq!(filter.clone().push("PLY"), "");
        assert_eq!(filter.push("SULT here "), "NO_RESULT here");
        assert_eq!(filter.push("\nno_reply"), "");
        assert_eq!(filter.finish(), "");
    }

    proptest::proptest! {
        #[test]
        fn a_stream_says_what_the_whole_says(
            words in proptest::collection::vec("NO_REPLY|HEARTBEAT_OK|no|N|_|[a-zé語 .\n]{1,3}", 0..9),
            cut in 1_usize..5,
            prefix: bool,
            heartbeat: bool,
        ) {
            let whole = words.concat();
            let (mut filter, mut out) = (StreamFilter::new(prefix, heartbeat), String::new());
            for piece in whole.chars().collect::<Vec<_>>().chunks(cut) {
                out.push_str(filter.push(&piece.iter().collect::<String>()));
            }
            let expected = deliverable(&whole, prefix, heartbeat);
            if expected.is_none() {
                proptest::prop_assert_eq!(&out, "", "nothing of a silent reply is shown");
            }
            out.push_str(&filter.finish());
            proptest::prop_assert_eq!(out, expected.unwrap_or_default());
        }
    }
}
