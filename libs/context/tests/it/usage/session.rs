//! A recorded session of a coding agent, read as the growth from call to call.

use super::recorded::lines;
use colloquy_types::message::{Message, Part, Role, Thinking, ToolCall, ToolResult};
use serde_json::Value;

/// What one call's prompt had more than the one before.
pub struct Growth {
    /// The reply to the call before, then results and what people said.
    pub messages: Vec<Message>,
    /// Tokens of the reply, as the provider reported them.
    pub output: u32,
    /// Reported prompt tokens of the call before and of this one.
    pub before: u32,
    pub after: u32,
}

impl Growth {
    pub fn real(&self) -> u32 {
        self.after - self.before
    }
}

/// Growth between two calls that both succeeded with nothing removed in between; none where the file is not there.
pub fn growths() -> Option<Vec<Growth>> {
    let mut all = Vec::new();
    let mut before: Option<(u32, u32)> = None;
    let mut messages = Vec::new();
    for line in lines("data/transcripts/pi-v1/before-compaction.jsonl.gz")? {
        let message = &line["message"];
        match (line["type"].as_str(), message["role"].as_str()) {
            (Some("message"), Some("assistant")) => {
                let after = prompt(message);
                if let Some((prompt, output)) = before.filter(|&(prompt, _)| prompt < after) {
                    all.push(Growth {
                        messages: std::mem::take(&mut messages),
                        output,
                        before: prompt,
                        after,
                    });
                }
                before = (after > 0).then(|| (after, number(&message["usage"]["output"])));
                messages = vec![read(message)];
            }
            (Some("message"), Some("user" | "toolResult")) => messages.push(read(message)),
            (Some("message" | "compaction"), _) => before = None,
            _ => {}
        }
    }
    Some(all)
}

/// 0 for a call that failed or was cut short.
fn prompt(message: &Value) -> u32 {
    if ["aborted", "error"].contains(&message["stopReason"].as_str().unwrap_or_default()) {
        return 0;
    }
    let parts = ["input", "cacheRead", "cacheWrite"];
    parts.iter().map(|part| number(&message["usage"][*part])).sum()
}

fn number(value: &Value) -> u32 {
    value
        .as_u64()
        .and_then(|number| u32::try_from(number).ok())
        .unwrap_or(0)
}

fn read(message: &Value) -> Message {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let part = |part: &Value| match part["type"].as_str() {
        Some("thinking") => Part::Thinking(Thinking {
            text: text(&part["thinking"]),
            signature: None,
            provider: None,
            redacted: false,
        }),
        Some("toolCall") => Part::ToolCall(ToolCall {
            id: text(&part["id"]),
            name: text(&part["name"]),
            arguments: part["arguments"].to_string(),
        }),
        _ => Part::text(text(&part["text"])),
    };
    let parts: Vec<Part> = message["content"]
        .as_array()
        .into_iter()
        .flatten()
        .map(part)
        .collect();
    match message["role"].as_str() {
        Some("assistant") => Message::new(Role::Assistant, parts),
        Some("toolResult") => {
            let result = ToolResult {
                call_id: text(&message["toolCallId"]),
                name: text(&message["toolName"]),
                parts,
                is_error: false,
            };
            Message::new(Role::Tool, vec![Part::ToolResult(result)])
        }
        _ => Message::new(Role::User, parts),
    }
}
