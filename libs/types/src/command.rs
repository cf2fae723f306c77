//! Chat commands: the whole text, or the trigger and a space; case-insensitive, a bot mention stripped.

/// What a person asks of the product rather than of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Start over; the rest of the text is the first message.
    Reset { rest: Option<String> },
    /// Cancel the oldest running turn.
    Stop,
    /// Cancel everything that runs and waits.
    StopAll,
}

/// The command in a text, with the resetting triggers of the policy. `None` for ordinary text.
pub fn parse(text: &str, reset_triggers: &[String]) -> Option<Command> {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    // Telegram writes `/new@my_bot` in groups.
    let word = word.split('@').next().unwrap_or(word);
    let rest = rest.trim();
    if reset_triggers
        .iter()
        .any(|trigger| trigger.eq_ignore_ascii_case(word))
    {
        return Some(Command::Reset {
            rest: (!rest.is_empty()).then(|| rest.to_owned()),
        });
    }
    match word.to_ascii_lowercase().as_str() {
        "/stop" if rest.is_empty() => Some(Command::Stop),
        "/stopall" if rest.is_empty() => Some(Command::StopAll),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trigger_is_a_whole_word() {
        let triggers = vec!["/new".to_owned()];
        let reset = |rest: Option<&str>| {
            Some(Command::Reset {
                rest: rest.map(str::to_owned),
            })
        };
        for (text, expected) in [
            ("/new", reset(None)),
            (" /NEW ", reset(None)),
            ("/new@harbour_bot hello there", reset(Some("hello there"))),
            ("/newer", None),
            ("please /new", None),
            ("/stop", Some(Command::Stop)),
            ("/stop it", None),
            ("/StopAll", Some(Command::StopAll)),
            ("", None),
        ] {
            assert_eq!(parse(text, &triggers), expected, "{text}");
        }
    }
}
