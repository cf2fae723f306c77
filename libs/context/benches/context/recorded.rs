//! A recorded session of a coding agent, where the shared data is there.

use crate::scenario::Scenario;
use colloquy_context::Tokenizer;
use colloquy_types::entry::Compaction;
use colloquy_types::message::{Completion, Message, Part, Role, Thinking, ToolCall, ToolResult};
use colloquy_types::{EntryBody, JobId, Seq};
use flate2::read::GzDecoder;
use serde_json::Value;
use std::io::Read;
use std::path::PathBuf;

const FILE: &str = "data/transcripts/pi-v1/before-compaction.jsonl.gz";

/// The window of its newest compaction, in the model it was held with.
pub fn own_window(tokenizer: Tokenizer) -> Option<Scenario> {
    Some(Scenario::recorded(
        "recorded session",
        200_000,
        bodies()?,
        tokenizer,
    ))
}

/// As if nothing had been compacted, in a window where it all fits.
pub fn whole(tokenizer: Tokenizer) -> Option<Scenario> {
    let bodies = bodies()?.into_iter();
    let messages = bodies.filter(|body| body.message().is_some()).collect();
    Some(Scenario::recorded(
        "recorded session, whole",
        1_500_000,
        messages,
        tokenizer,
    ))
}

/// One for each line of the file.
fn bodies() -> Option<Vec<EntryBody>> {
    let root = std::env::var_os("COLLOQUY_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let Ok(bytes) = std::fs::read(root.join(FILE)) else {
        println!("\nskipped: the recorded session is not there");
        return None;
    };
    let mut text = String::new();
    GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    Some(lines.map(|line| body(&line)).collect())
}

fn body(line: &Value) -> EntryBody {
    if line["type"] == "compaction" {
        return EntryBody::Compaction(Compaction {
            summary: text(&line["summary"]),
            // Lines count from 0, entries from 1.
            first_kept: Seq(line["firstKeptEntryIndex"].as_i64().unwrap() + 1),
            tokens_before: 0,
            tokens_after: 0,
            model: String::new(),
            job: JobId::new(),
            degraded: false,
        });
    }
    match message(&line["message"]) {
        Some(message) => EntryBody::Message(message),
        None => EntryBody::Custom {
            kind: text(&line["type"]),
            json: "{}".to_owned(),
        },
    }
}

fn message(line: &Value) -> Option<Message> {
    let role = match line["role"].as_str()? {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "toolResult" => Role::Tool,
        "bashExecution" => {
            return Some(Message::user(format!(
                "{}\n{}",
                text(&line["command"]),
                text(&line["output"])
            )));
        }
        _ => return None,
    };
    let parts: Vec<Part> = line["content"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(part)
        .collect();
    if role == Role::Tool {
        let result = ToolResult {
            call_id: text(&line["toolCallId"]),
            name: text(&line["toolName"]),
            parts,
            is_error: line["isError"] == true,
        };
        return Some(Message::new(role, vec![Part::ToolResult(result)]));
    }
    let mut message = Message::new(role, parts);
    message.completion = match line["stopReason"].as_str() {
        Some("aborted") => Completion::Aborted,
        Some("error") => Completion::Error,
        _ => Completion::Complete,
    };
    Some(message)
}

fn part(content: &Value) -> Option<Part> {
    match content["type"].as_str()? {
        "text" => Some(Part::text(text(&content["text"]))),
        "toolCall" => Some(Part::ToolCall(ToolCall {
            id: text(&content["id"]),
            name: text(&content["name"]),
            arguments: content["arguments"].to_string(),
        })),
        "thinking" => Some(Part::Thinking(Thinking {
            text: text(&content["thinking"]),
            signature: content["thinkingSignature"].as_str().map(str::to_owned),
            provider: Some("anthropic".to_owned()),
            redacted: false,
        })),
        _ => None,
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
