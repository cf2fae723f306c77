//! Rules of Anthropic Messages.

use super::{Rule, failing, is_id, list, says_something, text};
use serde_json::Value;
use std::collections::HashSet;

pub(super) const RULES: &[Rule] = &[
    ("a role is user or assistant", known_role),
    ("the first message is the user's", starts_with_user),
    ("roles alternate", alternates),
    ("a message has a list of content blocks", has_blocks),
    ("a block is known, of its role and not empty", whole_blocks),
    (
        "an answer ends neither in thinking nor in white space",
        whole_answers,
    ),
    (
        "a tool use has a legal id, a name and an object as input",
        whole_uses,
    ),
    ("the ids of all tool uses are different", distinct_ids),
    (
        "results stand first in the message behind their tool uses",
        results_follow,
    ),
    ("every tool use has its result in the next message", uses_answered),
];

fn known_role(messages: &[Value]) -> Vec<usize> {
    failing(messages, |message| {
        matches!(text(&message["role"]), "user" | "assistant")
    })
}

fn starts_with_user(messages: &[Value]) -> Vec<usize> {
    failing(&messages[..1], |message| message["role"] == "user")
}

fn alternates(messages: &[Value]) -> Vec<usize> {
    (1..messages.len())
        .filter(|&at| messages[at]["role"] == messages[at - 1]["role"])
        .collect()
}

fn has_blocks(messages: &[Value]) -> Vec<usize> {
    failing(messages, |message| !blocks(message).is_empty())
}

fn whole_blocks(messages: &[Value]) -> Vec<usize> {
    failing(messages, |message| {
        let whole = if message["role"] == "user" {
            is_user_block
        } else {
            is_assistant_block
        };
        blocks(message).iter().all(whole)
    })
}

/// The last answer of the whole request may not end in white space; none may end in thinking.
fn whole_answers(messages: &[Value]) -> Vec<usize> {
    let ends_well = |at: usize, message: &Value| {
        let Some(last) = blocks(message).last() else {
            return true;
        };
        let is_final = at + 1 == messages.len();
        let dangles = is_final && last["type"] == "text" && ends_in_space(last);
        !is_thinking(last) && !dangles
    };
    let answers = messages
        .iter()
        .enumerate()
        .filter(|(_, message)| message["role"] == "assistant");
    answers
        .filter(|(at, message)| !ends_well(*at, message))
        .map(|(at, _)| at)
        .collect()
}

fn whole_uses(messages: &[Value]) -> Vec<usize> {
    failing(messages, |message| {
        uses(message)
            .all(|block| is_id(&block["id"], 64) && is_id(&block["name"], 128) && block["input"].is_object())
    })
}

fn distinct_ids(messages: &[Value]) -> Vec<usize> {
    let mut seen = HashSet::new();
    let mut broken = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if !uses(message).all(|block| seen.insert(text(&block["id"]))) {
            broken.push(at);
        }
    }
    broken
}

fn results_follow(messages: &[Value]) -> Vec<usize> {
    let mut open: HashSet<&str> = HashSet::new();
    let mut broken = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let leading = blocks(message)
            .iter()
            .take_while(|block| is_result(block))
            .count();
        let known = results(message).all(|block| open.remove(text(&block["tool_use_id"])));
        if !known || results(message).count() != leading {
            broken.push(at);
        }
        open = uses(message).map(|block| text(&block["id"])).collect();
    }
    broken
}

fn uses_answered(messages: &[Value]) -> Vec<usize> {
    let is_answered = |at: usize| {
        let answers: HashSet<&str> = messages
            .get(at + 1)
            .into_iter()
            .flat_map(results)
            .map(|block| text(&block["tool_use_id"]))
            .collect();
        uses(&messages[at]).all(|block| answers.contains(text(&block["id"])))
    };
    (0..messages.len()).filter(|&at| !is_answered(at)).collect()
}

/// Whether a provider's own blocks may stand as a whole answer.
pub(crate) fn are_assistant_blocks(blocks: &[Value]) -> bool {
    let ends_well = blocks
        .last()
        .is_some_and(|last| !is_thinking(last) && !ends_in_space(last));
    ends_well && blocks.iter().all(is_assistant_block)
}

fn is_user_block(block: &Value) -> bool {
    match text(&block["type"]) {
        "text" => says_something(&block["text"]),
        "image" | "document" => is_source(&block["source"]),
        "tool_result" => {
            let content = list(&block["content"]);
            let is_content = |part: &Value| !is_result(part) && is_user_block(part);
            is_id(&block["tool_use_id"], 64) && !content.is_empty() && content.iter().all(is_content)
        }
        _ => false,
    }
}

fn is_assistant_block(block: &Value) -> bool {
    match text(&block["type"]) {
        "text" => says_something(&block["text"]),
        "thinking" => block["thinking"].is_string() && says_something(&block["signature"]),
        "redacted_thinking" => says_something(&block["data"]),
        "tool_use" => true,
        // Blocks of tools that run at the provider come only in replayed answers.
        other => other.starts_with("server_tool_") || other.ends_with("_tool_result"),
    }
}

fn is_source(source: &Value) -> bool {
    match text(&source["type"]) {
        "base64" => says_something(&source["media_type"]) && says_something(&source["data"]),
        "url" => text(&source["url"]).starts_with("http"),
        _ => false,
    }
}

fn blocks(message: &Value) -> &[Value] {
    list(&message["content"])
}

fn uses(message: &Value) -> impl Iterator<Item = &Value> {
    blocks(message).iter().filter(|block| block["type"] == "tool_use")
}

fn results(message: &Value) -> impl Iterator<Item = &Value> {
    blocks(message).iter().filter(|block| is_result(block))
}

fn is_result(block: &Value) -> bool {
    block["type"] == "tool_result"
}

fn is_thinking(block: &Value) -> bool {
    matches!(text(&block["type"]), "thinking" | "redacted_thinking")
}

fn ends_in_space(block: &Value) -> bool {
    text(&block["text"]).ends_with(char::is_whitespace)
}
