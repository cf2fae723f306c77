//! OpenAI Chat Completions: a tool result is a message of its own, thinking is not sent.

use super::ids::{Ids, tool_name};
use super::{Messages, NO_OUTPUT, Projected, is_web_image, is_web_url, json, media_marker};
use crate::item::{Item, is_blank};
use colloquy_types::message::{Media, MediaData, MediaKind, Message, Part, Role, ToolResult};

/// Longest tool id the API takes.
const MAX_ID: usize = 40;

pub(super) fn project(items: &[Item<'_>]) -> Projected {
    let mut messages = Messages::default();
    let mut ids = Ids::new(MAX_ID);
    for (at, item) in items.iter().enumerate() {
        let message = &*item.message;
        match message.role {
            Role::User => {
                if let Some(content) = user_content(message) {
                    messages.push(format!(r#"{{"role":"user","content":{content}}}"#), at);
                }
            }
            Role::System => {
                if let Some(content) = text_content(&message.parts) {
                    messages.push(format!(r#"{{"role":"system","content":{content}}}"#), at);
                }
            }
            Role::Assistant => {
                if let Some(rendered) = assistant(message, &mut ids) {
                    messages.push(rendered, at);
                }
            }
            Role::Tool => {
                for result in message.tool_results() {
                    if let Some(rendered) = tool(result, &mut ids) {
                        messages.push(rendered, at);
                    }
                }
            }
        }
    }
    messages.finish()
}

fn assistant(message: &Message, ids: &mut Ids) -> Option<String> {
    ids.next_message();
    let calls: Vec<String> = message
        .tool_calls()
        .map(|call| {
            let (id, name) = (
                json::string(&ids.call(&call.id)),
                json::string(&tool_name(&call.name)),
            );
            let arguments = json::string(&call.arguments);
            format!(r#"{{"id":{id},"type":"function","function":{{"name":{name},"arguments":{arguments}}}}}"#)
        })
        .collect();
    match (text_content(&message.parts), calls.is_empty()) {
        (None, true) => None,
        (Some(content), true) => Some(format!(r#"{{"role":"assistant","content":{content}}}"#)),
        (content, false) => {
            let content = content.unwrap_or_else(|| "null".to_owned());
            let calls = json::array(&calls);
            Some(format!(
                r#"{{"role":"assistant","content":{content},"tool_calls":{calls}}}"#
            ))
        }
    }
}

fn tool(result: &ToolResult, ids: &mut Ids) -> Option<String> {
    let id = json::string(&ids.result(&result.call_id)?);
    let content = text_content(&result.parts).unwrap_or_else(|| json::string(NO_OUTPUT));
    Some(format!(
        r#"{{"role":"tool","tool_call_id":{id},"content":{content}}}"#
    ))
}

/// One string where there is only text, the form every compatible endpoint takes; else a list of parts.
fn user_content(message: &Message) -> Option<String> {
    let has_media = message
        .parts
        .iter()
        .any(|part| matches!(part, Part::Media(media) if media_part(media).is_some()));
    if !has_media {
        return text_content(&message.parts);
    }
    let part = |part: &Part| match part {
        Part::Text { text } if !is_blank(text) => Some(text_part(text)),
        Part::Media(media) => Some(media_part(media).unwrap_or_else(|| text_part(&media_marker(media)))),
        _ => None,
    };
    let parts: Vec<String> = message.parts.iter().filter_map(part).collect();
    Some(json::array(&parts))
}

fn text_part(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, json::string(text))
}

/// All text as one JSON string, attachments by their marker; none when blank.
fn text_content(parts: &[Part]) -> Option<String> {
    let text = |part: &Part| match part {
        Part::Text { text } if !is_blank(text) => Some(text.clone()),
        Part::Media(media) => Some(media_marker(media)),
        _ => None,
    };
    let texts: Vec<String> = parts.iter().filter_map(text).collect();
    (!texts.is_empty()).then(|| json::string(&texts.join("\n")))
}

/// The API's part for an attachment it can take; none for the others, which are named by a marker.
fn media_part(media: &Media) -> Option<String> {
    match (media.kind, &media.data) {
        (MediaKind::Image, data) => {
            let url = json::string(&image_url(&media.mime, data)?);
            Some(format!(r#"{{"type":"image_url","image_url":{{"url":{url}}}}}"#))
        }
        (MediaKind::Audio, MediaData::Inline(base64)) => {
            let format = match media.mime.as_str() {
                "audio/wav" | "audio/x-wav" => "wav",
                "audio/mpeg" | "audio/mp3" => "mp3",
                _ => return None,
            };
            let data = json::string(base64);
            Some(format!(
                r#"{{"type":"input_audio","input_audio":{{"data":{data},"format":"{format}"}}}}"#
            ))
        }
        (MediaKind::File, MediaData::Inline(base64)) if media.mime == "application/pdf" => {
            let name = json::string(if media.name.is_empty() {
                "document.pdf"
            } else {
                &media.name
            });
            let data = json::string(&format!("data:application/pdf;base64,{base64}"));
            Some(format!(
                r#"{{"type":"file","file":{{"filename":{name},"file_data":{data}}}}}"#
            ))
        }
        _ => None,
    }
}

fn image_url(mime: &str, data: &MediaData) -> Option<String> {
    match data {
        MediaData::Reference(url) if is_web_url(url) => Some(url.clone()),
        MediaData::Inline(base64) if is_web_image(mime) => Some(format!("data:{mime};base64,{base64}")),
        _ => None,
    }
}
