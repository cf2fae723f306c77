//! Recorded conversations of several agents, read as the product's messages.

use crate::support::shared;
use crate::transcripts::{message, read, runs};
use colloquy_types::message::{Completion, Message, Part, Role, Thinking, ToolCall, ToolResult};
use flate2::read::GzDecoder;
use serde_json::Value;
use std::io::Read;

const JSON: &[&str] = &[
    "tau-bench/gpt-4o-airline.json.gz",
    "swe-agent/function_calling_simple.traj",
    "swe-agent/replay__marshmallow-code__marshmallow-1867__function_calling__install-1/marshmallow-code__marshmallow-1867.traj",
];

const LINES: &[&str] = &[
    "pi-v1/before-compaction.jsonl.gz",
    "claude-code-log/representative_messages.jsonl",
    "claude-code-log/session_b.jsonl",
    "claude-code-log/todowrite_examples.jsonl",
    "claude-code-log/edge_cases.jsonl",
    "claude-code-spotter/tool_heavy.jsonl.gz",
    "claude-code-spotter/short.jsonl.gz",
    "claude-code-spotter/ae4a77f8-aedd-4bc1-888f-c94edc91af04.jsonl.gz",
    "claude-code-spotter/ae4a77f8-aedd-4bc1-888f-c94edc91af04/subagents/agent-aac57f5.jsonl.gz",
    "claude-code-spotter/ae4a77f8-aedd-4bc1-888f-c94edc91af04/subagents/agent-acompact-946d2b.jsonl.gz",
];

/// Every file that is there, with its conversations.
pub fn conversations() -> Vec<(&'static str, Vec<Vec<Message>>)> {
    let path = |file: &str| shared(&format!("data/transcripts/{file}"));
    let whole = JSON.iter().filter_map(|file| {
        let value = read(&path(file)?);
        let runs = runs(&value).into_iter();
        Some((*file, runs.map(|run| run.iter().map(message).collect()).collect()))
    });
    let lines = LINES
        .iter()
        .filter_map(|file| Some((*file, vec![lines(&path(file)?)])));
    whole.chain(lines).collect()
}

fn lines(path: &std::path::Path) -> Vec<Message> {
    let bytes = std::fs::read(path).unwrap();
    let mut text = String::new();
    if path.extension().is_some_and(|extension| extension == "gz") {
        GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    } else {
        text = String::from_utf8(bytes).unwrap();
    }
    let mut messages: Vec<Message> = Vec::new();
    let mut last_id = String::new();
    for line in text.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let Some(next) = recorded(&line["message"]) else {
            continue;
        };
        // One answer may be written over several lines.
        let id = line["message"]["id"].as_str().unwrap_or_default().to_owned();
        match messages.last_mut() {
            Some(last) if !id.is_empty() && id == last_id => last.parts.extend(next.parts),
            _ => messages.push(next),
        }
        last_id = id;
    }
    messages
}

fn recorded(message: &Value) -> Option<Message> {
    let parts = match &message["content"] {
        Value::String(text) => vec![Part::text(text)],
        Value::Array(parts) => parts.iter().filter_map(part).collect(),
        _ => Vec::new(),
    };
    let role = match message["role"].as_str()? {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "toolResult" => {
            let result = ToolResult {
                call_id: message["toolCallId"].as_str()?.to_owned(),
                name: message["toolName"].as_str().unwrap_or_default().to_owned(),
                parts,
                is_error: message["isError"] == true,
            };
            return Some(Message::new(Role::Tool, vec![Part::ToolResult(result)]));
        }
        _ => return None,
    };
    let completion = match message["stopReason"].as_str() {
        Some("aborted") => Completion::Aborted,
        Some("error") => Completion::Error,
        _ => Completion::Complete,
    };
    Some(Message {
        completion,
        ..Message::new(role, parts)
    })
}

fn part(part: &Value) -> Option<Part> {
    let text = |key: &str| part[key].as_str().unwrap_or_default().to_owned();
    let call = |input: &str| ToolCall {
        id: text("id"),
        name: text("name"),
        arguments: part[input].to_string(),
    };
    let thinking = |signature: &str| Thinking {
        text: text("thinking"),
        signature: part[signature].as_str().map(str::to_owned),
        provider: Some("anthropic".to_owned()),
        redacted: false,
    };
    Some(match part["type"].as_str()? {
        "text" => Part::text(text("text")),
        "toolCall" => Part::ToolCall(call("arguments")),
        "tool_use" => Part::ToolCall(call("input")),
        "thinking" if part.get("thinkingSignature").is_some() => {
            Part::Thinking(thinking("thinkingSignature"))
        }
        "thinking" => Part::Thinking(thinking("signature")),
        "tool_result" => Part::ToolResult(ToolResult {
            call_id: text("tool_use_id"),
            name: String::new(),
            parts: match &part["content"] {
                Value::Array(parts) => parts.iter().filter_map(self::part).collect(),
                content => vec![Part::text(content.as_str().unwrap_or_default())],
            },
            is_error: part["is_error"] == true,
        }),
        _ => return None,
    })
}
