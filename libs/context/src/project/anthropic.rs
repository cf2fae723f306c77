//! Anthropic Messages: content is a list of blocks, results stand first in the user message behind their calls,
//! neighbours of one role are one message.

use super::ids::{Alphabet, Ids};
use super::out::Out;
use super::{
    EARLIER_OMITTED, NO_OUTPUT, Projected, inside_list, is_content, media, own_blocks, signature, text,
};
use crate::item::{Item, is_blank};
use crate::validate::anthropic::{Answer, answer};
use colloquy_types::message::{
    Completion, Media, MediaKind, Message, Part, Role, Thinking, ToolCall, ToolResult,
};

/// The names that signatures and replayed blocks of this provider carry.
const PROVIDERS: &[&str] = &["anthropic"];
/// Longest tool id the API takes.
const MAX_ID: usize = 64;

pub(super) fn project(items: &[Item<'_>]) -> Projected {
    let mut request = Request {
        out: Out::new(items),
        ids: Ids::new(Alphabet::AtMost(MAX_ID)),
        open: None,
    };
    let signed_from = signed_from(items);
    for (at, item) in items.iter().enumerate() {
        let message = &*item.message;
        match message.role {
            Role::Assistant => request.assistant(message, at, at >= signed_from),
            Role::Tool => message
                .tool_results()
                .for_each(|result| request.result(result, at)),
            Role::User => request.user(&message.parts, at),
            Role::System => request.system(message, at),
        }
    }
    request.finish()
}

/// Thinking goes back with the tool loop that is running and with the last answer; before that it is stripped.
fn signed_from(items: &[Item<'_>]) -> usize {
    let last = |role: Role| items.iter().rposition(|item| item.message.role == role);
    let loop_start = last(Role::User).map_or(0, |user| user + 1);
    last(Role::Assistant).map_or(loop_start, |assistant| loop_start.min(assistant))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    User,
    Assistant,
}

struct Request<'a> {
    out: Out,
    ids: Ids<'a>,
    /// The message whose list of blocks is still open.
    open: Option<Side>,
}

impl<'a> Request<'a> {
    fn finish(mut self) -> Projected {
        if self.open.is_some() {
            self.out.raw("]}");
        }
        self.out.finish()
    }

    /// Makes place for a block: in the open message where that is of the same side, else in a new one.
    fn block(&mut self, side: Side, at: usize) {
        if self.open != Some(side) {
            if self.open.is_none() && side == Side::Assistant {
                self.start(Side::User);
                text_block(&mut self.out, EARLIER_OMITTED);
            }
            self.start(side);
        }
        self.out.source(at);
        self.out.comma();
    }

    fn start(&mut self, side: Side) {
        if self.open.is_some() {
            self.out.raw("]}");
        }
        self.out.message();
        self.out.raw(match side {
            Side::User => r#"{"role":"user","content":["#,
            Side::Assistant => r#"{"role":"assistant","content":["#,
        });
        self.open = Some(side);
    }

    fn user(&mut self, parts: &[Part], at: usize) {
        for part in parts.iter().filter(|part| text::is_shown(part)) {
            self.block(Side::User, at);
            content_block(&mut self.out, part);
        }
    }

    /// The API knows no system message inside a conversation.
    fn system(&mut self, message: &Message, at: usize) {
        if text::has_text(&message.parts) {
            self.block(Side::User, at);
            self.out.raw(r#"{"type":"text","text":""#);
            text::system(&mut self.out, &message.parts);
            self.out.raw(r#""}"#);
        }
    }

    fn assistant(&mut self, message: &'a Message, at: usize, is_signed: bool) {
        self.ids.next_message();
        if self.replay(message, at) {
            return;
        }
        let is_signed = is_signed && message.completion == Completion::Complete;
        // An answer may not end in thinking, nor the last one in white space; no one knows which will be last.
        let Some(last) = message.parts.iter().rposition(is_content) else {
            return;
        };
        for (place, part) in message.parts[..=last].iter().enumerate() {
            match part {
                Part::Text { text } if is_blank(text) => {}
                Part::Text { text } => {
                    self.block(Side::Assistant, at);
                    text_block(&mut self.out, if place == last { text.trim_end() } else { text });
                }
                Part::Media(media) => {
                    self.block(Side::Assistant, at);
                    marker_block(&mut self.out, media);
                }
                Part::ToolCall(call) => self.tool_use(call, at),
                Part::Thinking(thinking) if is_signed => self.thinking(thinking, at),
                Part::Thinking(_) | Part::ToolResult(_) => {}
            }
        }
    }

    fn thinking(&mut self, thinking: &Thinking, at: usize) {
        let Some(signature) = signature(thinking, PROVIDERS) else {
            return;
        };
        self.block(Side::Assistant, at);
        if thinking.redacted {
            self.out.raw(r#"{"type":"redacted_thinking","data":"#);
        } else {
            self.out.raw(r#"{"type":"thinking","thinking":"#);
            self.out.string(&thinking.text);
            self.out.raw(r#","signature":"#);
        }
        self.out.string(signature);
        self.out.raw("}");
    }

    /// Input is an object; other JSON is wrapped, for some models write a bare value.
    fn tool_use(&mut self, call: &'a ToolCall, at: usize) {
        self.block(Side::Assistant, at);
        let open = self.ids.call(call);
        self.out.raw(r#"{"type":"tool_use","id":"#);
        self.out.string(&open.wire);
        self.out.raw(r#","name":"#);
        self.out.string(&open.name);
        self.out.raw(r#","input":"#);
        self.out.object(&call.arguments);
        self.out.raw("}");
    }

    fn result(&mut self, result: &ToolResult, at: usize) {
        let Some(call) = self.ids.result(&result.call_id) else {
            return;
        };
        self.block(Side::User, at);
        self.out.raw(r#"{"type":"tool_result","tool_use_id":"#);
        self.out.string(&call.wire);
        self.out.raw(r#","content":["#);
        for part in result.parts.iter().filter(|part| text::is_shown(part)) {
            self.out.comma();
            content_block(&mut self.out, part);
        }
        if !text::has_text(&result.parts) {
            text_block(&mut self.out, NO_OUTPUT);
        }
        self.out.raw(if result.is_error {
            r#"],"is_error":true}"#
        } else {
            "]}"
        });
    }

    /// The provider's own blocks, byte for byte: one block or a list of them. Only where they say the same as the
    /// message, so that every call in them has its result, and under ids that need no rewriting.
    fn replay(&mut self, message: &'a Message, at: usize) -> bool {
        let Some(json) = own_blocks(message, PROVIDERS) else {
            return false;
        };
        let is_same = |answer: &Answer<'_>| {
            let calls = message.tool_calls().map(|call| call.id.as_str());
            answer.calls.iter().map(|id| &**id).eq(calls) && self.ids.keeps(message)
        };
        if !answer(json).is_some_and(|answer| is_same(&answer)) {
            return false;
        }
        self.block(Side::Assistant, at);
        self.out.raw(inside_list(json));
        for call in message.tool_calls() {
            self.ids.call(call);
        }
        true
    }
}

fn text_block(out: &mut Out, text: &str) {
    out.raw(r#"{"type":"text","text":"#);
    out.string(text);
    out.raw("}");
}

fn marker_block(out: &mut Out, media: &Media) {
    out.raw(r#"{"type":"text","text":""#);
    media::marker(out, media);
    out.raw(r#""}"#);
}

/// Text or an attachment of a user message or a result.
fn content_block(out: &mut Out, part: &Part) {
    match part {
        Part::Text { text } => text_block(out, text),
        Part::Media(media) => media_block(out, media),
        _ => {}
    }
}

fn media_block(out: &mut Out, media: &Media) {
    let kind = match media.kind {
        MediaKind::Image => "image",
        MediaKind::File => "document",
        MediaKind::Audio => return marker_block(out, media),
    };
    let mime = media::web_image(media).or(media::is_pdf(media).then_some("application/pdf"));
    let source = match (mime, media::inline(media), media::safe_url(media)) {
        (Some(mime), Some(base64), _) => [r#"base64","media_type":""#, mime, r#"","data":""#, base64],
        (_, None, Some(url)) if media.kind == MediaKind::Image || media::is_pdf(media) => {
            [r#"url","url":""#, "", "", url]
        }
        _ => return marker_block(out, media),
    };
    let [form, mime, data, value] = source;
    for json in [r#"{"type":""#, kind, r#"","source":{"type":""#, form, mime, data] {
        out.raw(json);
    }
    out.escaped(value);
    out.raw(r#""}}"#);
}
