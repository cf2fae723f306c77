//! OpenAI Responses: the input is a list of items; a call and its output are items of their own, and so is the
//! reasoning before them.
//!
//! A tool id of this API is a pair, `call|item` in a transcript: `call` joins call and output, `item` names the
//! call's item. A thinking's signature is the JSON of its reasoning item.

use super::ids::{Alphabet, Ids, is_word, split_pair};
use super::out::Out;
use super::{Projected, inside_list, is_content, media, own_blocks, signature, text};
use crate::item::Item;
use crate::validate::responses::{Answer, answer, reasoning_id};
use colloquy_types::message::{Completion, Media, MediaKind, Message, Part, Role, ToolCall, ToolResult};
use std::collections::HashSet;

/// The names that signatures and replayed items of this API carry.
const PROVIDERS: &[&str] = &["openai", "openai_responses"];

pub(super) fn project(items: &[Item<'_>]) -> Projected {
    let mut request = Request {
        out: Out::new(items),
        ids: Ids::new(Alphabet::Pair),
        named: HashSet::new(),
    };
    for (at, item) in items.iter().enumerate() {
        let message = &*item.message;
        match message.role {
            Role::User => request.user(message, at),
            Role::System => request.text(r#"{"role":"system","content":""#, &message.parts, at),
            Role::Assistant => request.assistant(message, at),
            Role::Tool => message
                .tool_results()
                .for_each(|result| request.output(result, at)),
        }
    }
    request.out.finish()
}

struct Request<'a> {
    out: Out,
    ids: Ids<'a>,
    /// Names of items: the API takes each once.
    named: HashSet<String>,
}

impl<'a> Request<'a> {
    fn start(&mut self, head: &str, at: usize) {
        self.out.message();
        self.out.source(at);
        self.out.raw(head);
    }

    fn user(&mut self, message: &Message, at: usize) {
        if text::has_text(&message.parts) {
            self.start(r#"{"role":"user","content":"#, at);
            string_or_list(&mut self.out, &message.parts);
            self.out.raw("}");
        }
    }

    fn assistant(&mut self, message: &'a Message, at: usize) {
        self.ids.next_message();
        if self.replay(message, at) {
            return;
        }
        // Reasoning is refused without the item it led to.
        let Some(last) = message.parts.iter().rposition(is_content) else {
            return;
        };
        let mut is_reasoned = false;
        let mut rest = &message.parts[..=last];
        while let Some(part) = rest.first() {
            let texts = rest.iter().take_while(|part| !is_item(part)).count();
            let (run, behind) = rest.split_at(texts.max(1));
            match part {
                Part::ToolCall(call) => self.call(call, is_reasoned, at),
                Part::Thinking(_) => is_reasoned |= self.reasoning(message, part, at),
                _ => self.text(r#"{"role":"assistant","content":""#, run, at),
            }
            rest = behind;
        }
    }

    /// Only users may show what is no text.
    fn text(&mut self, head: &str, run: &[Part], at: usize) {
        if text::has_text(run) {
            self.start(head, at);
            text::lines(&mut self.out, run);
            self.out.raw(r#""}"#);
        }
    }

    /// Replays a reasoning item; whether it could.
    fn reasoning(&mut self, message: &Message, part: &Part, at: usize) -> bool {
        let Part::Thinking(thinking) = part else {
            return false;
        };
        let own = signature(thinking, PROVIDERS).filter(|_| message.completion == Completion::Complete);
        let Some((item, id)) = own.and_then(|item| Some((item, reasoning_id(item)?))) else {
            return false;
        };
        let is_new = self.named.insert(id.into_owned());
        if is_new {
            self.start(item, at);
        }
        is_new
    }

    /// A call keeps the name of its item only behind the reasoning it belongs to.
    fn call(&mut self, call: &'a ToolCall, is_reasoned: bool, at: usize) {
        let item = split_pair(&call.id)
            .1
            .filter(|item| item.starts_with("fc") && is_word(item, 64));
        let item = item.filter(|item| is_reasoned && self.named.insert((*item).to_owned()));
        self.start(r#"{"type":"function_call","#, at);
        if let Some(item) = item {
            self.out.raw(r#""id":"#);
            self.out.string(item);
            self.out.raw(",");
        }
        let open = self.ids.call(call);
        self.out.raw(r#""call_id":"#);
        self.out.string(&open.wire);
        self.out.raw(r#","name":"#);
        self.out.string(&open.name);
        self.out.raw(r#","arguments":"#);
        self.out.string(&call.arguments);
        self.out.raw("}");
    }

    fn output(&mut self, result: &ToolResult, at: usize) {
        let Some(call) = self.ids.result(&result.call_id) else {
            return;
        };
        self.start(r#"{"type":"function_call_output","call_id":"#, at);
        self.out.string(&call.wire);
        self.out.raw(r#","output":"#);
        string_or_list(&mut self.out, &result.parts);
        self.out.raw("}");
    }

    /// The API's own items, byte for byte: one or a list of them. Only where they make the same calls, under ids
    /// that need no rewriting, and under names that were not sent before.
    fn replay(&mut self, message: &'a Message, at: usize) -> bool {
        let Some(json) = own_blocks(message, PROVIDERS) else {
            return false;
        };
        let Some(Answer { items, calls, names }) = answer(json) else {
            return false;
        };
        let same = calls
            .iter()
            .map(|id| &**id)
            .eq(message.tool_calls().map(|call| split_pair(&call.id).0));
        let is_new = names.iter().all(|name| !self.named.contains(&**name));
        if !same || !is_new || !self.ids.keeps(message) {
            return false;
        }
        self.named.extend(names.into_iter().map(|name| name.into_owned()));
        for call in message.tool_calls() {
            self.ids.call(call);
        }
        self.start(inside_list(json), at);
        for _ in 1..items {
            self.out.another(at);
        }
        true
    }
}

/// Whether a part is an item of its own, or ends a run of text.
fn is_item(part: &Part) -> bool {
    matches!(part, Part::ToolCall(_) | Part::Thinking(_))
}

/// One string where there is only text; else a list of parts.
fn string_or_list(out: &mut Out, parts: &[Part]) {
    if !parts
        .iter()
        .any(|part| matches!(part, Part::Media(media) if takes(media)))
    {
        out.raw(r#"""#);
        text::output(out, parts);
        out.raw(r#"""#);
        return;
    }
    out.raw("[");
    for part in parts.iter().filter(|part| text::is_shown(part)) {
        out.comma();
        match part {
            Part::Media(media) if takes(media) => media_part(out, media),
            part => {
                out.raw(r#"{"type":"input_text","text":""#);
                text::lines(out, std::slice::from_ref(part));
                out.raw(r#""}"#);
            }
        }
    }
    out.raw("]");
}

/// Whether the API takes this attachment; it hears nothing.
fn takes(media: &Media) -> bool {
    let is_inline = media::inline(media).is_some();
    match media.kind {
        MediaKind::Image => {
            media::web_url(media).is_some() || (is_inline && media::web_image(media).is_some())
        }
        MediaKind::File => media::is_pdf(media) && (is_inline || media::web_url(media).is_some()),
        MediaKind::Audio => false,
    }
}

fn media_part(out: &mut Out, media: &Media) {
    if media.kind == MediaKind::Image {
        out.raw(r#"{"type":"input_image","detail":"auto","image_url":""#);
        media::data_url(out, media, media::web_image(media).unwrap_or_default());
    } else if let Some(url) = media::web_url(media) {
        out.raw(r#"{"type":"input_file","file_url":""#);
        out.escaped(url);
    } else {
        out.raw(r#"{"type":"input_file","filename":"#);
        out.string(media::file_name(media));
        out.raw(r#","file_data":""#);
        media::data_url(out, media, "application/pdf");
    }
    out.raw(r#""}"#);
}
