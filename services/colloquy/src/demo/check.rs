//! Independent checks: is a context one that a provider takes, and is what was said what is stored.

use super::Summary;
use super::driver::Driver;
use super::script::{Script, ScriptTurn};
use colloquy_client::v1;
use colloquy_types::message::Message;
use colloquy_types::{Entry, EntryBody};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};

/// Whether the body keeps the provider's rule that a result follows its call, and nothing is left open.
pub fn is_valid(format: v1::ContextFormat, body: &[u8]) -> bool {
    let Ok(Value::Array(messages)) = serde_json::from_slice::<Value>(body) else {
        return false;
    };
    if messages.is_empty() {
        return false;
    }
    match format {
        v1::ContextFormat::Anthropic => anthropic(&messages),
        _ => openai(&messages),
    }
}

fn openai(messages: &[Value]) -> bool {
    let mut open: HashSet<String> = HashSet::new();
    for message in messages {
        if message["role"] == "tool" {
            if !message["tool_call_id"].as_str().is_some_and(|id| open.remove(id)) {
                return false;
            }
            continue;
        }
        // Nobody speaks before every call has its result.
        if !open.is_empty() {
            return false;
        }
        let ids = message["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|call| call["id"].as_str());
        open.extend(ids.map(str::to_owned));
    }
    open.is_empty()
}

fn anthropic(messages: &[Value]) -> bool {
    let blocks = |message: &Value, kind: &str, field: &str| -> Vec<String> {
        let found = message["content"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|block| block["type"] == kind);
        found
            .filter_map(|block| block[field].as_str().map(str::to_owned))
            .collect()
    };
    let mut open: Vec<String> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let expected = if index % 2 == 0 { "user" } else { "assistant" };
        let mut results = blocks(message, "tool_result", "tool_use_id");
        results.sort();
        open.sort();
        if message["role"] != expected || results != open {
            return false;
        }
        open = blocks(message, "tool_use", "id");
    }
    open.is_empty()
}

/// Reads every session back and compares it with the script. The messages, without what differs from run to run.
pub async fn read_back(
    driver: &Driver,
    script: &Script,
    summary: &mut Summary,
) -> anyhow::Result<Vec<Value>> {
    let mut all = Vec::new();
    for turns in &script.conversations {
        let session = driver.session(&turns[0].chat).await?;
        summary.committed += session.turns;
        summary.compactions += session.compactions;
        summary.memories += driver.memories(&session.session_id).await?;
        let stored = driver.entries(&session.session_id).await?;
        all.extend(stored.iter().filter_map(|entry| line(&session.key, entry)));
        let found: Vec<String> = stored.iter().filter_map(of_entry).collect();
        summary.entries += found.len() as u64;
        compare(&expected(turns), &found, summary);
    }
    Ok(all)
}

/// A message of a session, without ids and times. Where summaries stand depends on when the compactor came by.
fn line(session: &str, entry: &Entry) -> Option<Value> {
    let EntryBody::Message(message) = &entry.body else {
        return None;
    };
    Some(json!({
        "session": session, "role": message.role, "parts": message.parts, "author": message.author,
        "provenance": message.provenance, "tokens": entry.tokens,
    }))
}

/// Compares the replies that were delivered with the script's, chat by chat.
pub fn compare_replies(script: &Script, delivered: &[(String, String)], summary: &mut Summary) {
    summary.deliveries = delivered.len() as u64;
    for turns in &script.conversations {
        let chat = turns[0].chat.id.to_string();
        let sent = delivered.iter().filter(|(to, _)| *to == chat);
        let sent: Vec<String> = sent.map(|(_, text)| text.clone()).collect();
        compare(&replies(turns), &sent, summary);
    }
}

/// What the agent sends in these turns.
pub fn replies(turns: &[ScriptTurn]) -> Vec<String> {
    let all = turns.iter().map(ScriptTurn::reply);
    all.filter(|reply| !reply.trim().is_empty()).collect()
}

fn expected(turns: &[ScriptTurn]) -> Vec<String> {
    let of_turn = |turn: &ScriptTurn| {
        let said = turn.texts.iter().map(|text| fingerprint(&Message::user(text)));
        said.chain(turn.entries.iter().map(fingerprint))
            .collect::<Vec<_>>()
    };
    turns.iter().flat_map(of_turn).collect()
}

fn of_entry(entry: &Entry) -> Option<String> {
    match &entry.body {
        EntryBody::Message(message) => Some(fingerprint(message)),
        _ => None,
    }
}

/// What was said, without when and by whom.
fn fingerprint(message: &Message) -> String {
    serde_json::to_string(&(message.role, &message.parts)).unwrap_or_default()
}

/// Counts what is missing, what is too much, and what stands in another place.
fn compare(expected: &[String], found: &[String], summary: &mut Summary) {
    let count = |list: &[String]| {
        let mut counts: HashMap<String, u64> = HashMap::new();
        for item in list {
            *counts.entry(item.clone()).or_default() += 1;
        }
        counts
    };
    let (want, have) = (count(expected), count(found));
    summary.lost += want
        .iter()
        .map(|(item, n)| n.saturating_sub(have.get(item).copied().unwrap_or(0)))
        .sum::<u64>();
    summary.duplicated += have
        .iter()
        .map(|(item, n)| n.saturating_sub(want.get(item).copied().unwrap_or(0)))
        .sum::<u64>();
    if expected.len() == found.len() {
        summary.out_of_order += expected.iter().zip(found).filter(|(a, b)| a != b).count() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(expected: &[&str], found: &[&str]) -> (u64, u64, u64) {
        let own = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let mut summary = Summary::default();
        compare(&own(expected), &own(found), &mut summary);
        (summary.lost, summary.duplicated, summary.out_of_order)
    }

    #[test]
    fn what_is_lost_doubled_or_moved_is_counted() {
        assert_eq!(counts(&["a", "b", "a"], &["a", "b", "a"]), (0, 0, 0));
        assert_eq!(counts(&["a", "b"], &["a"]), (1, 0, 0));
        assert_eq!(counts(&["a"], &["a", "a"]), (0, 1, 0));
        assert_eq!(counts(&["a", "b"], &["b", "a"]), (0, 0, 2));
    }

    #[test]
    fn an_orphan_or_open_call_is_invalid() {
        let openai = |json: &str| is_valid(v1::ContextFormat::OpenaiChat, json.as_bytes());
        assert!(openai(
            r#"[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"c"}]},{"role":"tool","tool_call_id":"c"}]"#
        ));
        assert!(!openai(r#"[{"role":"tool","tool_call_id":"c"}]"#));
        assert!(!openai(
            r#"[{"role":"assistant","tool_calls":[{"id":"c"}]},{"role":"user"}]"#
        ));
        assert!(!openai("[]"));
        let anthropic = |json: &str| is_valid(v1::ContextFormat::Anthropic, json.as_bytes());
        assert!(anthropic(
            r#"[{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant","content":[{"type":"tool_use","id":"c"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c"}]}]"#
        ));
        assert!(!anthropic(
            r#"[{"role":"user","content":"x"},{"role":"user","content":"y"}]"#
        ));
    }
}
