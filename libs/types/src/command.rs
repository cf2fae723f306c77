//! Chat commands: the whole text, or the trigger and a space; case-insensitive, mentions of a bot stripped.

use crate::error::{Error, Result};
use crate::policy::Drop;
use crate::queue::QueueMode;
use serde::Serialize;

/// What a person asks of the product rather than of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Start over; the rest of the text is the first message.
    Reset { rest: Option<String> },
    /// Cancel the oldest running turn.
    Stop,
    /// Cancel everything that runs and waits.
    StopAll,
    /// Summarise what is old now; the rest of the text says what to keep.
    Compact { instructions: Option<String> },
    /// Say how the session is.
    Status,
    /// Change the session's queue; an error says which option is wrong.
    Queue(Result<QueueChange>),
}

/// What `/queue` asks for; absent options stay as they are. Its JSON is the `queue` section of a policy override.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct QueueChange {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<QueueMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub debounce_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop: Option<Drop>,
}

/// The command in a text, with the resetting triggers of the policy. `None` for ordinary text.
pub fn parse(text: &str, reset_triggers: &[String]) -> Option<Command> {
    let text = without_mentions(text);
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    // Telegram writes `/new@my_bot` in groups.
    let word = word.split('@').next().unwrap_or(word);
    let rest = rest.trim();
    let some_rest = || (!rest.is_empty()).then(|| rest.to_owned());
    if reset_triggers
        .iter()
        .any(|trigger| trigger.to_lowercase() == word.to_lowercase())
    {
        return Some(Command::Reset { rest: some_rest() });
    }
    let alone = rest.split_whitespace().all(is_mention);
    match word.to_ascii_lowercase().as_str() {
        "/stop" if alone => Some(Command::Stop),
        "/stopall" if alone => Some(Command::StopAll),
        "/status" if alone => Some(Command::Status),
        "/compact" => Some(Command::Compact {
            instructions: some_rest(),
        }),
        "/queue" => Some(Command::Queue(queue_change(rest))),
        _ => None,
    }
}

/// The text behind the mentions it begins with.
fn without_mentions(text: &str) -> &str {
    let mut text = text.trim();
    while let Some((first, rest)) = text.split_once(char::is_whitespace) {
        if !is_mention(first) {
            break;
        }
        text = rest.trim_start();
    }
    text
}

/// `@name`, or `<@id>` as Slack and Discord write it.
fn is_mention(word: &str) -> bool {
    let named = |name: &str| !name.is_empty() && !name.contains('@');
    word.strip_prefix('@').is_some_and(named)
        || word
            .strip_prefix("<@")
            .and_then(|rest| rest.strip_suffix('>'))
            .is_some_and(named)
}

fn queue_change(options: &str) -> Result<QueueChange> {
    let mut change = QueueChange::default();
    for option in options.split_whitespace().filter(|word| !is_mention(word)) {
        let wrong = |field: &str, wanted: &str| Error::invalid(field, format!("must be {wanted}"));
        match option.split_once(':') {
            None => {
                let modes = "queue, followup, collect, steer, interrupt or reject";
                change.mode = Some(word(option).ok_or_else(|| wrong("mode", modes))?);
            }
            Some(("debounce", value)) => {
                let wanted = "a time such as 800ms or 2s, at most 60s";
                change.debounce_ms = Some(millis(value).ok_or_else(|| wrong("debounce", wanted))?);
            }
            Some(("cap", value)) => {
                let number = value.parse().ok().filter(|number| (1..=10_000).contains(number));
                change.capacity = Some(number.ok_or_else(|| wrong("cap", "a number from 1 to 10000"))?);
            }
            Some(("drop", value)) => {
                change.drop = Some(word(value).ok_or_else(|| wrong("drop", "old, new or summarize"))?);
            }
            Some((name, _)) => return Err(wrong(name, "one of debounce, cap, drop")),
        }
    }
    Ok(change)
}

/// A word of a closed list, any case.
fn word<T: serde::de::DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_value(serde_json::Value::String(text.to_ascii_lowercase())).ok()
}

/// `800ms`, `2s`, `1.5s` or plain milliseconds, up to a minute.
fn millis(text: &str) -> Option<i64> {
    let (number, unit) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1.0),
        (None, Some(number)) => (number, 1_000.0),
        (None, None) => (text, 1.0),
    };
    let value = number.parse::<f64>().ok()? * unit;
    // The range makes the cast exact to the millisecond.
    #[allow(clippy::cast_possible_truncation)]
    (0.0..=60_000.0).contains(&value).then(|| value.round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<Command> {
        parse(text, &["/new".to_owned(), "/Début".to_owned()])
    }

    #[test]
    fn a_trigger_is_a_whole_word() {
        let reset = |rest: Option<&str>| {
            Some(Command::Reset {
                rest: rest.map(str::to_owned),
            })
        };
        for (text, expected) in [
            ("/new", reset(None)),
            (" /NEW ", reset(None)),
            ("/new@harbour_bot hello there", reset(Some("hello there"))),
            ("@harbour_bot /new hello", reset(Some("hello"))),
            ("<@U123> /new", reset(None)),
            ("/DÉBUT", reset(None)),
            ("/new\nhello", reset(Some("hello"))),
            ("/newer", None),
            ("please /new", None),
            ("@harbour_bot", None),
            ("/stop", Some(Command::Stop)),
            ("/stop @harbour_bot", Some(Command::Stop)),
            ("/stop it", None),
            ("/StopAll", Some(Command::StopAll)),
            ("/status", Some(Command::Status)),
            ("/status of the harbour", None),
            ("", None),
            ("@ @ /", None),
        ] {
            assert_eq!(parsed(text), expected, "{text}");
        }
    }

    #[test]
    fn compact_takes_instructions() {
        let compact = |text: Option<&str>| {
            Some(Command::Compact {
                instructions: text.map(str::to_owned),
            })
        };
        assert_eq!(parsed("/compact"), compact(None));
        assert_eq!(parsed("/Compact@bot keep the ids"), compact(Some("keep the ids")));
    }

    #[test]
    fn queue_options_become_an_override() {
        for (text, json) in [
            ("/queue", "{}"),
            ("/queue collect", r#"{"mode":"collect"}"#),
            (
                "/queue Steer debounce:2s cap:25 drop:old",
                r#"{"mode":"steer","debounce_ms":2000,"capacity":25,"drop":"old"}"#,
            ),
            ("/queue debounce:1.5s", r#"{"debounce_ms":1500}"#),
            ("/queue debounce:0", r#"{"debounce_ms":0}"#),
        ] {
            let Some(Command::Queue(Ok(change))) = parsed(text) else {
                panic!("{text}: {:?}", parsed(text))
            };
            assert_eq!(serde_json::to_string(&change).unwrap(), json, "{text}");
        }
    }

    #[test]
    fn a_wrong_queue_option_is_named() {
        for (text, field) in [
            ("/queue fast", "mode"),
            ("/queue debounce:soon", "debounce"),
            ("/queue debounce:61s", "debounce"),
            ("/queue debounce:NaN", "debounce"),
            ("/queue cap:0", "cap"),
            ("/queue drop:all", "drop"),
            ("/queue size:3", "size"),
        ] {
            let Some(Command::Queue(Err(error))) = parsed(text) else {
                panic!("{text}: {:?}", parsed(text))
            };
            assert_eq!(error.field.as_deref(), Some(field), "{text}");
        }
    }
}
