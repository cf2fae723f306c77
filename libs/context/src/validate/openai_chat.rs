//! Rules of OpenAI Chat Completions.

use super::{Rule, failing, is_id, list, says_something, text};
use serde_json::Value;
use std::collections::HashSet;

pub(super) const RULES: &[Rule] = &[
    ("a role is system, user, assistant or tool", known_role),
    ("a message says something", has_content),
    ("a part of a content is known and not empty", whole_parts),
    (
        "only an assistant calls tools, and a list of calls is not empty",
        callers,
    ),
    (
        "a call has a legal id and name and its arguments as text",
        whole_calls,
    ),
    ("the ids of all calls are different", distinct_ids),
    ("a result follows the message of its call", results_follow),
    (
        "every call has its result before the next message",
        calls_answered,
    ),
];

fn known_role(messages: &[Value]) -> Vec<usize> {
    failing(messages, |message| {
        matches!(text(&message["role"]), "system" | "user" | "assistant" | "tool")
    })
}

fn has_content(messages: &[Value]) -> Vec<usize> {
    failing(messages, |message| match &message["content"] {
        Value::String(_) => says_something(&message["content"]),
        Value::Array(parts) => !parts.is_empty() && message["role"] == "user",
        Value::Null => message["role"] == "assistant" && message["tool_calls"].is_array(),
        _ => false,
    })
}

fn whole_parts(messages: &[Value]) -> Vec<usize> {
    failing(messages, |message| {
        list(&message["content"])
            .iter()
            .all(|part| match text(&part["type"]) {
                "text" => says_something(&part["text"]),
                "image_url" => says_something(&part["image_url"]["url"]),
                "input_audio" => {
                    says_something(&part["input_audio"]["data"]) && part["input_audio"]["format"].is_string()
                }
                "file" => {
                    says_something(&part["file"]["file_data"]) || says_something(&part["file"]["file_id"])
                }
                _ => false,
            })
    })
}

fn callers(messages: &[Value]) -> Vec<usize> {
    failing(messages, |message| match message.get("tool_calls") {
        None => true,
        Some(calls) => message["role"] == "assistant" && !list(calls).is_empty(),
    })
}

fn whole_calls(messages: &[Value]) -> Vec<usize> {
    failing(messages, |message| {
        list(&message["tool_calls"]).iter().all(|call| {
            let function = &call["function"];
            call["type"] == "function"
                && is_id(&call["id"], 40)
                && is_id(&function["name"], 64)
                && serde_json::from_str::<Value>(text(&function["arguments"])).is_ok()
        })
    })
}

fn distinct_ids(messages: &[Value]) -> Vec<usize> {
    let mut seen = HashSet::new();
    let mut broken = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if !list(&message["tool_calls"])
            .iter()
            .all(|call| seen.insert(text(&call["id"])))
        {
            broken.push(at);
        }
    }
    broken
}

fn results_follow(messages: &[Value]) -> Vec<usize> {
    let mut open: HashSet<&str> = HashSet::new();
    let mut broken = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if message["role"] != "tool" {
            open = call_ids(message);
        } else if !open.remove(text(&message["tool_call_id"])) {
            broken.push(at);
        }
    }
    broken
}

fn calls_answered(messages: &[Value]) -> Vec<usize> {
    let mut open: HashSet<&str> = HashSet::new();
    let mut owner = 0;
    let mut broken = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if message["role"] == "tool" {
            open.remove(text(&message["tool_call_id"]));
            continue;
        }
        if !open.is_empty() {
            broken.push(owner);
        }
        open = call_ids(message);
        owner = at;
    }
    if !open.is_empty() {
        broken.push(owner);
    }
    broken
}

fn call_ids(message: &Value) -> HashSet<&str> {
    list(&message["tool_calls"])
        .iter()
        .map(|call| text(&call["id"]))
        .collect()
}
