//! Tables for people, JSON for scripts.

use colloquy_client::v1;
use colloquy_proto::convert::millis;
use colloquy_types::{Clock, SystemClock};
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::Value;
use std::io::Write;

/// One thing of a list: its JSON and its cells.
pub type Row = (Value, Vec<String>);

pub struct Output {
    pub json: bool,
}

impl Output {
    /// One JSON document, or a table of the same rows.
    pub fn list(&self, header: &[&str], rows: Vec<Row>) {
        if self.json {
            say(&Value::Array(rows.into_iter().map(|(json, _)| json).collect()).to_string());
        } else if rows.is_empty() {
            say("nothing");
        } else {
            let mut table = Table::new();
            table
                .load_preset(presets::NOTHING)
                .set_content_arrangement(ContentArrangement::Dynamic)
                .set_header(header);
            for (_, cells) in rows {
                table.add_row(cells.iter().map(|cell| printable(cell)));
            }
            say(&table.trim_fmt());
        }
    }

    /// One thing: its JSON, or its fields a line each without the empty ones.
    pub fn one(&self, json: &Value, fields: &[(&str, String)]) {
        if self.json {
            say(&json.to_string());
            return;
        }
        let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
            say(&format!("{name:<width$}  {}", printable(value)));
        }
    }

    /// An entry of a list that has no end: a JSON document or a line.
    pub fn next(&self, json: &Value, line: &str) {
        say(&if self.json {
            json.to_string()
        } else {
            printable(line)
        });
    }

    /// A line for people only.
    pub fn note(&self, text: &str) {
        if !self.json {
            say(&printable(text));
        }
    }

    /// Says that a list was cut, without getting into the way of what reads it.
    pub fn cut(&self, more: bool) {
        if more {
            eprintln!("there are more: give a larger --limit");
        }
    }
}

/// A line on standard output. Whoever reads it may have seen enough (`| head`): that is the end, not a failure.
fn say(line: &str) {
    if writeln!(std::io::stdout(), "{line}").is_err() {
        std::process::exit(0);
    }
}

/// The text without what would steer a terminal or turn the direction of writing: people write labels and messages.
fn printable(text: &str) -> String {
    let steers = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars()
        .map(|c| if steers(c) { '\u{fffd}' } else { c })
        .collect()
}

/// RFC 3339; null when absent.
pub fn instant(at: Option<&colloquy_proto::Timestamp>) -> Value {
    at.map_or(Value::Null, |at| millis(at).to_string().into())
}

/// RFC 3339 for people; empty when absent.
pub fn when(at: Option<&colloquy_proto::Timestamp>) -> String {
    at.map(|at| millis(at).to_string()).unwrap_or_default()
}

/// How long ago; empty when absent.
pub fn age(at: Option<&colloquy_proto::Timestamp>) -> String {
    at.map(|at| span(SystemClock.now().since(millis(at)) / 1_000))
        .unwrap_or_default()
}

/// Seconds in the largest unit that fits; what is negative by two clocks counts as nothing.
fn span(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m", seconds / 60),
        seconds @ 3_600..86_400 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// The beginning of a text on one line.
pub fn excerpt(text: &str, chars: usize) -> String {
    // A bounded part of a large text is enough to fill the line.
    let mut words = text.split_whitespace();
    let mut line = String::new();
    let mut left = chars + 1;
    while let Some(word) = words.next().filter(|_| left > 0) {
        if !line.is_empty() {
            line.push(' ');
            left -= 1;
        }
        let taken: String = word.chars().take(left).collect();
        left -= taken.chars().count();
        line.push_str(&taken);
    }
    match line.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// An enum's wire name without its prefix, in lower case.
pub fn word(name: &str, prefix: &str) -> String {
    name.strip_prefix(prefix).unwrap_or(name).to_lowercase()
}

/// What a message says.
pub fn said(message: &v1::Message) -> String {
    texts(&message.parts)
}

fn texts(parts: &[v1::Part]) -> String {
    let shown = parts
        .iter()
        .filter_map(|part| part.part.as_ref())
        .map(part)
        .filter(|text| !text.is_empty());
    shown.collect::<Vec<_>>().join(" ")
}

fn part(part: &v1::part::Part) -> String {
    use v1::part::Part;
    match part {
        Part::Text(text) => text.clone(),
        Part::Media(media) => {
            let kind = word(media.kind().as_str_name(), "MEDIA_KIND_");
            format!("[{kind} {}]", media.name)
        }
        Part::ToolCall(call) => format!("→ {} {}", call.name, call.arguments),
        Part::ToolResult(result) => format!("← {} {}", result.name, texts(&result.parts)),
        Part::Thinking(_) => "[thinking]".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> v1::Part {
        v1::Part {
            part: Some(v1::part::Part::Text(text.into())),
        }
    }

    #[test]
    fn texts_are_cut_at_characters() {
        assert_eq!(excerpt("a\n b   c", 10), "a b c");
        assert_eq!(excerpt("語語語", 2), "語語…");
        assert_eq!(excerpt("語語", 2), "語語");
        assert_eq!(excerpt("ab cd", 2), "ab…");
        assert_eq!(excerpt("ab cd", 3), "ab …");
        assert_eq!(excerpt("ab cd", 5), "ab cd");
        assert_eq!(excerpt("", 5), "");
    }

    #[test]
    fn enum_names_lose_their_prefix_once() {
        assert_eq!(word("LANE_USER", "LANE_"), "user");
        assert_eq!(word("A_A_B", "A_"), "a_b");
    }

    #[test]
    fn ages_are_in_the_largest_unit_that_fits() {
        let said = [-5, 0, 59, 60, 3_599, 3_600, 86_400 * 3].map(span);
        assert_eq!(said, ["0s", "0s", "59s", "1m", "59m", "1h", "3d"]);
        assert_eq!(age(None), "");
    }

    #[test]
    fn instants_are_rfc_3339() {
        let at = colloquy_proto::Timestamp {
            seconds: 0,
            nanos: 5_000_000,
        };
        assert_eq!(instant(Some(&at)), "1970-01-01T00:00:00.005Z");
        assert_eq!(instant(None), Value::Null);
    }

    #[test]
    fn what_people_wrote_cannot_steer_the_terminal() {
        assert_eq!(
            printable("a\u{1b}[2Jb\u{9b}c\u{202e}"),
            "a\u{fffd}[2Jb\u{fffd}c\u{fffd}"
        );
    }

    #[test]
    fn tool_calls_and_results_are_on_the_line() {
        let call = v1::ToolCall {
            id: "1".into(),
            name: "find".into(),
            arguments: "{}".into(),
        };
        let result = v1::ToolResult {
            call_id: "1".into(),
            name: "find".into(),
            parts: vec![text("three"), text("bikes")],
            is_error: false,
        };
        let parts = [v1::part::Part::ToolCall(call), v1::part::Part::ToolResult(result)];
        let parts = parts.map(|part| v1::Part { part: Some(part) });
        assert_eq!(texts(&parts), "→ find {} ← find three bikes");
    }
}
