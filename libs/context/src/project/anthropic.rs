//! Anthropic Messages: content is a list of blocks, results stand first in the user message behind their calls,
//! neighbours of one role are one message.

use super::ids::{Ids, tool_name};
use super::{EARLIER_OMITTED, NO_OUTPUT, Projected, is_web_image, is_web_url, json, media_marker};
use crate::item::{Item, is_blank};
use colloquy_types::message::{
    Completion, Media, MediaData, MediaKind, Message, Part, Role, Thinking, ToolCall, ToolResult,
};

use serde_json::Value;

/// The name that signatures and replayed blocks of this provider carry.
const PROVIDER: &str = "anthropic";
/// Longest tool id the API takes.
const MAX_ID: usize = 64;

enum Block {
    Text(String),
    Thinking(String),
    Json(String),
}

struct Turn {
    is_user: bool,
    blocks: Vec<Block>,
    sources: Vec<usize>,
}

pub(super) fn project(items: &[Item<'_>]) -> Projected {
    let mut ids = Ids::new(MAX_ID);
    let mut turns: Vec<Turn> = Vec::new();
    let signed_from = signed_from(items);
    for (at, item) in items.iter().enumerate() {
        let message = &*item.message;
        let blocks = match message.role {
            Role::Assistant => assistant(message, &mut ids, at >= signed_from),
            Role::Tool => message
                .tool_results()
                .filter_map(|result| tool_result(result, &mut ids))
                .collect(),
            Role::User => content(&message.parts).collect(),
            Role::System => system(message),
        };
        if !blocks.is_empty() {
            append(&mut turns, message.role != Role::Assistant, blocks, at);
        }
    }
    if turns.first().is_some_and(|first| !first.is_user) {
        let blocks = vec![Block::Text(EARLIER_OMITTED.to_owned())];
        turns.insert(
            0,
            Turn {
                is_user: true,
                blocks,
                sources: Vec::new(),
            },
        );
    }
    trim_end(turns.last_mut());
    let messages: Vec<String> = turns.iter().map(render).collect();
    let sources = turns.into_iter().map(|turn| turn.sources).collect();
    Projected {
        bytes: json::array(&messages).into_bytes(),
        sources,
    }
}

fn append(turns: &mut Vec<Turn>, is_user: bool, blocks: Vec<Block>, source: usize) {
    match turns.last_mut() {
        Some(last) if last.is_user == is_user => {
            last.blocks.extend(blocks);
            last.sources.push(source);
        }
        _ => turns.push(Turn {
            is_user,
            blocks,
            sources: vec![source],
        }),
    }
}

/// Thinking goes back with the tool loop that is running and with the last answer; before that it is stripped.
fn signed_from(items: &[Item<'_>]) -> usize {
    let last = |role: Role| items.iter().rposition(|item| item.message.role == role);
    let loop_start = last(Role::User).map_or(0, |user| user + 1);
    last(Role::Assistant).map_or(loop_start, |assistant| loop_start.min(assistant))
}

/// The API refuses a last answer that ends in white space.
fn trim_end(last: Option<&mut Turn>) {
    if let Some(Turn {
        is_user: false,
        blocks,
        ..
    }) = last
        && let Some(Block::Text(text)) = blocks.last_mut()
    {
        text.truncate(text.trim_end().len());
    }
}

fn render(turn: &Turn) -> String {
    let role = if turn.is_user { "user" } else { "assistant" };
    let blocks: Vec<String> = turn.blocks.iter().map(render_block).collect();
    format!(r#"{{"role":"{role}","content":{}}}"#, json::array(&blocks))
}

fn text_block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, json::string(text))
}

fn assistant(message: &Message, ids: &mut Ids, is_signed: bool) -> Vec<Block> {
    ids.next_message();
    if let Some(raw) = replayed(message, ids) {
        return vec![Block::Json(raw)];
    }
    let is_signed = is_signed && message.completion == Completion::Complete;
    let mut blocks: Vec<Block> = message
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } => (!is_blank(text)).then(|| Block::Text(text.clone())),
            Part::Media(media) => Some(Block::Text(media_marker(media))),
            Part::ToolCall(call) => Some(tool_use(call, ids)),
            Part::Thinking(thinking) if is_signed => signed(thinking),
            Part::Thinking(_) | Part::ToolResult(_) => None,
        })
        .collect();
    // An answer may not end in thinking.
    while matches!(blocks.last(), Some(Block::Thinking(_))) {
        blocks.pop();
    }
    blocks
}

fn signed(thinking: &Thinking) -> Option<Block> {
    let signature = thinking
        .signature
        .as_deref()
        .filter(|signature| !is_blank(signature))?;
    if thinking.provider.as_deref() != Some(PROVIDER) {
        return None;
    }
    let signature = json::string(signature);
    Some(Block::Thinking(if thinking.redacted {
        format!(r#"{{"type":"redacted_thinking","data":{signature}}}"#)
    } else {
        let text = json::string(&thinking.text);
        format!(r#"{{"type":"thinking","thinking":{text},"signature":{signature}}}"#)
    }))
}

/// Input is an object; other JSON is wrapped, for some models write a bare value.
fn tool_use(call: &ToolCall, ids: &mut Ids) -> Block {
    let (id, name) = (
        json::string(&ids.call(&call.id)),
        json::string(&tool_name(&call.name)),
    );
    let arguments = call.arguments.trim();
    let input = if arguments.starts_with('{') {
        arguments.to_owned()
    } else {
        format!(r#"{{"value":{arguments}}}"#)
    };
    Block::Json(format!(
        r#"{{"type":"tool_use","id":{id},"name":{name},"input":{input}}}"#
    ))
}

fn tool_result(result: &ToolResult, ids: &mut Ids) -> Option<Block> {
    let id = json::string(&ids.result(&result.call_id)?);
    let mut blocks: Vec<String> = content(&result.parts).map(|block| render_block(&block)).collect();
    if blocks.is_empty() {
        blocks.push(text_block(NO_OUTPUT));
    }
    let error = if result.is_error {
        r#","is_error":true"#
    } else {
        ""
    };
    let blocks = json::array(&blocks);
    Some(Block::Json(format!(
        r#"{{"type":"tool_result","tool_use_id":{id},"content":{blocks}{error}}}"#
    )))
}

/// The API knows no system message inside a conversation.
fn system(message: &Message) -> Vec<Block> {
    let text = message.text();
    if is_blank(&text) {
        Vec::new()
    } else {
        vec![Block::Text(format!("<system>\n{text}\n</system>"))]
    }
}

/// Text and attachments of a user message or a result.
fn content(parts: &[Part]) -> impl Iterator<Item = Block> + '_ {
    parts.iter().filter_map(|part| match part {
        Part::Text { text } => (!is_blank(text)).then(|| Block::Text(text.clone())),
        Part::Media(media) => Some(media_block(media)),
        _ => None,
    })
}

fn render_block(block: &Block) -> String {
    match block {
        Block::Text(text) => text_block(text),
        Block::Thinking(json) | Block::Json(json) => json.clone(),
    }
}

fn media_block(media: &Media) -> Block {
    let kind = match media.kind {
        MediaKind::Image => "image",
        MediaKind::File => "document",
        MediaKind::Audio => return Block::Text(media_marker(media)),
    };
    let is_pdf = media.kind == MediaKind::File && media.mime == "application/pdf";
    let takes_type = is_pdf || (media.kind == MediaKind::Image && is_web_image(&media.mime));
    let source = match &media.data {
        MediaData::Inline(base64) if takes_type => {
            let (mime, data) = (json::string(&media.mime), json::string(base64));
            format!(r#"{{"type":"base64","media_type":{mime},"data":{data}}}"#)
        }
        MediaData::Reference(url) if is_web_url(url) && (is_pdf || media.kind == MediaKind::Image) => {
            format!(r#"{{"type":"url","url":{}}}"#, json::string(url))
        }
        _ => return Block::Text(media_marker(media)),
    };
    Block::Json(format!(r#"{{"type":"{kind}","source":{source}}}"#))
}

/// The provider's own blocks, byte for byte: one block or a list of them. Only where they say the same as the
/// message, so that every call in them has its result, and under ids that need no rewriting.
fn replayed(message: &Message, ids: &mut Ids) -> Option<String> {
    let raw = message.raw.as_ref().filter(|raw| raw.provider == PROVIDER)?;
    let json = raw.json.trim();
    let blocks = match serde_json::from_str(json)
        .ok()
        .filter(|_| crate::repair::is_json(json))?
    {
        Value::Array(blocks) => blocks,
        block @ Value::Object(_) => vec![block],
        _ => return None,
    };
    let calls: Vec<&str> = message.tool_calls().map(|call| call.id.as_str()).collect();
    let is_use = |block: &&Value| block["type"] == "tool_use";
    let uses: Vec<&str> = blocks
        .iter()
        .filter(is_use)
        .filter_map(|block| block["id"].as_str())
        .collect();
    let keeps_ids = calls
        .iter()
        .enumerate()
        .all(|(at, id)| ids.is_fresh(id) && !calls[..at].contains(id));
    if blocks.is_empty() || uses != calls || !keeps_ids || !crate::validate::are_assistant_blocks(&blocks) {
        return None;
    }
    for call in calls {
        ids.call(call);
    }
    let inner = json.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    Some(inner.unwrap_or(json).trim().to_owned())
}
