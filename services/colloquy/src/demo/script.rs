//! What is played: conversations of turns, from the bundled one or from a transcript.

use anyhow::{Context, bail};
use colloquy_types::message::{Message, Part, Role, ToolCall, ToolResult};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// Who writes, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chat {
    /// The channel's id: negative for groups, as Telegram does.
    pub id: i64,
    pub group: bool,
}

/// One exchange: what people write in one go, and what the agent does about it.
#[derive(Debug, Clone)]
pub struct ScriptTurn {
    pub chat: Chat,
    pub sender_id: i64,
    pub sender_name: String,
    pub texts: Vec<String>,
    /// The agent's messages in order: calls, results, the final answer.
    pub entries: Vec<Message>,
}

impl ScriptTurn {
    /// What the agent sends when it is done; blank when it sends nothing.
    pub fn reply(&self) -> String {
        let last = self.entries.last().filter(|last| last.role == Role::Assistant);
        last.map(Message::text).unwrap_or_default()
    }
}

/// Everything to play.
#[derive(Debug, Clone)]
pub struct Script {
    pub agent: String,
    /// Conversations may run beside each other, the turns of one only in order.
    pub conversations: Vec<Vec<ScriptTurn>>,
    /// Play one turn after the other over all conversations, in this order of (conversation, turn).
    pub order: Option<Vec<(usize, usize)>>,
    /// A question to recall at the end, with words that the answer must have.
    pub recall: Option<(i64, String, String)>,
    /// Messages of the transcript that nobody can play: of the system, without text, or in front of the first of a user.
    pub left_out: usize,
}

#[derive(Deserialize)]
struct Bundle {
    agent: String,
    group: i64,
    users: BTreeMap<String, BundleUser>,
    turns: Vec<BundleTurn>,
    recall: BundleRecall,
}

#[derive(Deserialize)]
struct BundleUser {
    id: i64,
    name: String,
}

#[derive(Deserialize)]
struct BundleTurn {
    user: String,
    chat: String,
    texts: Vec<String>,
    calls: Vec<BundleCall>,
    reply: String,
}

#[derive(Deserialize)]
struct BundleCall {
    name: String,
    arguments: Value,
    /// What the result begins with; it goes on with rows up to `result_chars`.
    lead: String,
    result_chars: usize,
}

#[derive(Deserialize)]
struct BundleRecall {
    user: String,
    query: String,
    expect: String,
}

impl Script {
    /// The conversation that comes with the product.
    pub fn bundled() -> anyhow::Result<Self> {
        let bundle: Bundle = serde_json::from_str(include_str!("conversation.json"))?;
        let mut conversations: Vec<Vec<ScriptTurn>> = Vec::new();
        let (mut places, mut order) = (BTreeMap::new(), Vec::new());
        for (number, turn) in bundle.turns.iter().enumerate() {
            let user = bundle
                .users
                .get(&turn.user)
                .with_context(|| format!("no user {}", turn.user))?;
            let group = turn.chat == "group";
            let chat = Chat {
                id: if group { bundle.group } else { user.id },
                group,
            };
            let place = *places.entry(chat.id).or_insert_with(|| {
                conversations.push(Vec::new());
                conversations.len() - 1
            });
            order.push((place, conversations[place].len()));
            conversations[place].push(ScriptTurn {
                chat,
                sender_id: user.id,
                sender_name: user.name.clone(),
                texts: turn.texts.clone(),
                entries: bundled_entries(number, turn),
            });
        }
        let asker = bundle
            .users
            .get(&bundle.recall.user)
            .context("no user to recall for")?;
        let recall = Some((asker.id, bundle.recall.query, bundle.recall.expect));
        Ok(Self {
            agent: bundle.agent,
            conversations,
            order: Some(order),
            recall,
            left_out: 0,
        })
    }

    /// Chats in OpenAI's format, plain or gzip.
    pub fn from_transcript(file: &Path) -> anyhow::Result<Self> {
        let mut bytes = std::fs::read(file)?;
        if bytes.starts_with(&[0x1f, 0x8b]) {
            let mut plain = Vec::new();
            flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut plain)?;
            bytes = plain;
        }
        let value: Value = serde_json::from_slice(&bytes).context("not a JSON document")?;
        let lists = message_lists(&value);
        if lists.is_empty() {
            bail!("no list of messages, and no objects with one under `traj`, `messages` or `history`");
        }
        let all: usize = lists.iter().map(|list| list.len()).sum();
        let turns = |(number, list): (usize, &Vec<Value>)| {
            transcript_turns(i64::try_from(number).unwrap_or(0) + 1, list)
        };
        let conversations: Vec<Vec<ScriptTurn>> = lists.into_iter().enumerate().map(turns).collect();
        let conversations: Vec<Vec<ScriptTurn>> = conversations
            .into_iter()
            .filter(|turns| !turns.is_empty())
            .collect();
        if conversations.is_empty() {
            bail!("no message of a user with a text: nothing would be sent");
        }
        let of_turn = |turn: &ScriptTurn| turn.texts.len() + turn.entries.len();
        let played: usize = conversations.iter().flatten().map(of_turn).sum();
        Ok(Self {
            agent: "default".into(),
            conversations,
            order: None,
            recall: None,
            left_out: all - played,
        })
    }
}

fn bundled_entries(number: usize, turn: &BundleTurn) -> Vec<Message> {
    let mut entries = Vec::new();
    for (index, call) in turn.calls.iter().enumerate() {
        let id = format!("call_{number}_{index}");
        let asked = ToolCall {
            id: id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.to_string(),
        };
        entries.push(Message::new(Role::Assistant, vec![Part::ToolCall(asked)]));
        entries.push(Message::tool_result(id, &call.name, result_text(call)));
    }
    entries.push(Message::assistant(&turn.reply));
    entries
}

/// Rows of plausible output, the same each time.
fn result_text(call: &BundleCall) -> String {
    let mut text = call.lead.clone();
    let mut row = 0_u64;
    while text.chars().count() < call.result_chars {
        row += 1;
        let mixed = row.wrapping_mul(2_654_435_761) % 100_000;
        text.push_str(&format!(
            "\n{row:05};dock {:02};{};{:.2}",
            mixed % 24,
            ["ok", "low", "busy"][(mixed % 3) as usize],
            11.0 + (mixed % 200) as f64 / 100.0
        ));
    }
    text.chars()
        .take(call.result_chars.max(call.lead.chars().count()))
        .collect()
}

/// The message lists of a document.
fn message_lists(value: &Value) -> Vec<&Vec<Value>> {
    let is_message = |value: &Value| value.get("role").is_some();
    match value {
        Value::Array(list) if list.iter().any(is_message) => vec![list],
        Value::Array(list) => list.iter().flat_map(message_lists).collect(),
        Value::Object(object) => ["traj", "messages", "history"]
            .iter()
            .filter_map(|field| object.get(*field))
            .flat_map(message_lists)
            .take(1)
            .collect(),
        _ => Vec::new(),
    }
}

fn transcript_turns(chat: i64, list: &[Value]) -> Vec<ScriptTurn> {
    let mut turns: Vec<ScriptTurn> = Vec::new();
    for message in list {
        match message["role"].as_str() {
            Some("user") => {
                let text = content_text(&message["content"]);
                // An empty message is nothing a person can send.
                if text.trim().is_empty() {
                    continue;
                }
                match turns.last_mut().filter(|turn| turn.entries.is_empty()) {
                    Some(turn) => turn.texts.push(text),
                    None => turns.push(ScriptTurn {
                        chat: Chat {
                            id: chat,
                            group: false,
                        },
                        sender_id: chat,
                        sender_name: format!("user {chat}"),
                        texts: vec![text],
                        entries: Vec::new(),
                    }),
                }
            }
            Some("assistant") => extend(&mut turns, assistant(message)),
            Some("tool") => extend(&mut turns, tool(message)),
            _ => {}
        }
    }
    turns
}

/// What the agent says before anyone wrote has no turn to belong to.
fn extend(turns: &mut [ScriptTurn], message: Message) {
    if let Some(turn) = turns.last_mut()
        && !message.parts.is_empty()
    {
        turn.entries.push(message);
    }
}

fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n"),
        _ => String::new(),
    }
}

fn assistant(message: &Value) -> Message {
    let mut parts = Vec::new();
    let text = content_text(&message["content"]);
    if !text.is_empty() {
        parts.push(Part::text(text));
    }
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let arguments = match &call["function"]["arguments"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        parts.push(Part::ToolCall(ToolCall {
            id: call["id"].as_str().unwrap_or_default().to_owned(),
            name: call["function"]["name"].as_str().unwrap_or_default().to_owned(),
            arguments,
        }));
    }
    Message::new(Role::Assistant, parts)
}

fn tool(message: &Value) -> Message {
    let call_id = match &message["tool_call_id"] {
        Value::String(id) => id.clone(),
        _ => message["tool_call_ids"][0]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
    };
    let result = ToolResult {
        call_id,
        name: message["name"].as_str().unwrap_or_default().to_owned(),
        parts: vec![Part::text(content_text(&message["content"]))],
        is_error: false,
    };
    Message::new(Role::Tool, vec![Part::ToolResult(result)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_conversation_is_what_it_says() {
        let script = Script::bundled().unwrap();
        let turns: Vec<&ScriptTurn> = script.conversations.iter().flatten().collect();
        let messages: usize = turns
            .iter()
            .map(|turn| turn.texts.len() + turn.entries.len())
            .sum();
        assert!(messages >= 60, "{messages}");
        let sizes: Vec<usize> = turns
            .iter()
            .flat_map(|turn| &turn.entries)
            .flat_map(Message::tool_results)
            .flat_map(|result| &result.parts)
            .map(|part| {
                if let Part::Text { text } = part {
                    text.chars().count()
                } else {
                    0
                }
            })
            .collect();
        assert!(
            sizes.iter().any(|size| *size <= 220) && sizes.contains(&60_000),
            "{sizes:?}"
        );
        assert!(script.conversations.len() >= 4);
    }

    #[test]
    fn both_shapes_of_a_transcript_are_read() {
        let list: Value = serde_json::json!([
            {"role": "system", "content": "s"},
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c", "name": "f", "content": "r"},
            {"role": "assistant", "content": "b"},
            {"role": "user", "content": "c"},
        ]);
        let nested = serde_json::json!([{"traj": list.clone()}, {"messages": list.clone()}]);
        assert_eq!(message_lists(&list).len(), 1);
        assert_eq!(message_lists(&nested).len(), 2);
        let turns = transcript_turns(1, list.as_array().unwrap());
        assert_eq!(
            (turns.len(), turns[0].entries.len(), turns[1].entries.len()),
            (2, 3, 0)
        );
    }

    #[test]
    fn what_cannot_be_played_is_counted_or_refused() {
        let write = |value: &Value| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), value.to_string()).unwrap();
            file
        };
        let some = write(&serde_json::json!([
            {"role": "system", "content": "s"},
            {"role": "assistant", "content": "hello"},
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"},
        ]));
        assert_eq!(Script::from_transcript(some.path()).unwrap().left_out, 2);
        let none = write(&serde_json::json!([{"role": "assistant", "content": "hello"}]));
        let refused = Script::from_transcript(none.path()).unwrap_err().to_string();
        assert!(refused.contains("no message of a user"), "{refused}");
    }
}
