//! Tables for people, JSON for scripts.

use colloquy_client::v1;
use colloquy_proto::convert::millis;
use colloquy_types::{Clock, SystemClock};
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::Value;

pub struct Output {
    pub json: bool,
}

impl Output {
    /// One JSON document, or a table of the same rows.
    pub fn list(&self, header: &[&str], rows: Vec<(Value, Vec<String>)>) {
        if self.json {
            println!(
                "{}",
                Value::Array(rows.into_iter().map(|(json, _)| json).collect())
            );
            return;
        }
        if rows.is_empty() {
            println!("nothing");
            return;
        }
        let mut table = Table::new();
        table
            .load_preset(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header(header);
        rows.into_iter().for_each(|(_, row)| {
            table.add_row(row);
        });
        println!("{table}");
    }

    /// One thing: its JSON, or its fields a line each.
    pub fn one(&self, json: &Value, fields: &[(&str, String)]) {
        if self.json {
            println!("{json}");
            return;
        }
        let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
            println!("{name:<width$}  {value}");
        }
    }

    /// A line for people only.
    pub fn note(&self, text: &str) {
        if !self.json {
            println!("{text}");
        }
    }
}

/// RFC 3339; empty when absent.
pub fn instant(at: Option<&colloquy_proto::Timestamp>) -> String {
    at.map(|at| millis(at).to_string()).unwrap_or_default()
}

/// How long ago, in the largest unit that fits.
pub fn age(at: Option<&colloquy_proto::Timestamp>) -> String {
    let Some(at) = at else { return String::new() };
    let seconds = SystemClock.now().since(millis(at)).max(0) / 1_000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// The beginning of a text on one line.
pub fn excerpt(text: &str, chars: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= chars {
        line
    } else {
        format!("{}…", line.chars().take(chars).collect::<String>())
    }
}

/// An enum's wire name without its prefix, in lower case.
pub fn word(name: &str, prefix: &str) -> String {
    name.trim_start_matches(prefix).to_lowercase()
}

/// What a message says, on one line.
pub fn said(message: &v1::Message) -> String {
    let part = |part: &v1::Part| match &part.part {
        Some(v1::part::Part::Text(text)) => text.clone(),
        Some(v1::part::Part::Media(media)) => format!(
            "[{} {}]",
            word(media.kind().as_str_name(), "MEDIA_KIND_"),
            media.name
        ),
        Some(v1::part::Part::ToolCall(call)) => format!("→ {} {}", call.name, call.arguments),
        Some(v1::part::Part::ToolResult(result)) => {
            let texts = result.parts.iter().filter_map(|part| match &part.part {
                Some(v1::part::Part::Text(text)) => Some(text.as_str()),
                _ => None,
            });
            format!("← {} {}", result.name, texts.collect::<Vec<_>>().join(" "))
        }
        Some(v1::part::Part::Thinking(_)) | None => String::new(),
    };
    message.parts.iter().map(part).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_characters() {
        assert_eq!(excerpt("a\n b   c", 10), "a b c");
        assert_eq!(excerpt("語語語", 2), "語語…");
        assert_eq!(word("LANE_USER", "LANE_"), "user");
    }
}
