//! Gemini `generateContent`: two roles that alternate, the user first; calls and responses are parts, joined by
//! name, order and id.
//!
//! A signature belongs to the part behind the thinking it stands in. Calls that another provider's model made have
//! none: the first of a message then says by the documented value that it has none to give.

use super::ids::{Alphabet, Ids};
use super::media::{self, is_base64};
use super::out::Out;
use super::{EARLIER_OMITTED, Projected, inside_list, is_content, own_blocks, signature, text};
use crate::item::Item;
use crate::validate::gemini::{Answer, OwnCall, answer};
use colloquy_types::message::{Completion, Media, MediaKind, Message, Part, Role, ToolCall, ToolResult};

/// The names that signatures and replayed parts of this provider carry.
const PROVIDERS: &[&str] = &["gemini", "google"];
/// Longest tool id that is sent; the API states none.
const MAX_ID: usize = 64;
/// The documented value for a call whose signature was never made.
const UNSIGNED: &str = "skip_thought_signature_validator";

pub(super) fn project(items: &[Item<'_>]) -> Projected {
    let mut request = Request {
        out: Out::new(items),
        ids: Ids::new(Alphabet::AtMost(MAX_ID)),
        open: None,
    };
    for (at, item) in items.iter().enumerate() {
        let message = &*item.message;
        match message.role {
            Role::Assistant => request.model(message, at),
            Role::Tool => message
                .tool_results()
                .for_each(|result| request.response(result, at)),
            Role::User => request.user(&message.parts, at),
            Role::System => request.system(message, at),
        }
    }
    request.finish()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    User,
    Model,
}

struct Request<'a> {
    out: Out,
    ids: Ids<'a>,
    /// The content whose list of parts is still open.
    open: Option<Side>,
}

impl<'a> Request<'a> {
    fn finish(mut self) -> Projected {
        if self.open.is_some() {
            self.out.raw("]}");
        }
        self.out.finish()
    }

    /// Makes place for a part: in the open content where that is of the same side, else in a new one.
    fn part(&mut self, side: Side, at: usize) {
        if self.open != Some(side) {
            if self.open.is_none() && side == Side::Model {
                self.start(Side::User);
                self.out.raw(r#"{"text":"#);
                self.out.string(EARLIER_OMITTED);
                self.out.raw("}");
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
            Side::User => r#"{"role":"user","parts":["#,
            Side::Model => r#"{"role":"model","parts":["#,
        });
        self.open = Some(side);
    }

    fn user(&mut self, parts: &[Part], at: usize) {
        for part in parts.iter().filter(|part| text::is_shown(part)) {
            self.part(Side::User, at);
            match part {
                Part::Media(media) => media_part(&mut self.out, media),
                part => text_part(&mut self.out, part, None),
            }
        }
    }

    /// The API knows no system message inside a conversation.
    fn system(&mut self, message: &Message, at: usize) {
        if text::has_text(&message.parts) {
            self.part(Side::User, at);
            self.out.raw(r#"{"text":""#);
            text::system(&mut self.out, &message.parts);
            self.out.raw(r#""}"#);
        }
    }

    fn model(&mut self, message: &'a Message, at: usize) {
        self.ids.next_message();
        if self.replay(message, at) {
            return;
        }
        let mut signed = None;
        let mut is_first_call = true;
        for part in &message.parts {
            match part {
                Part::Thinking(thinking) if message.completion == Completion::Complete => {
                    signed = signature(thinking, PROVIDERS).filter(|signature| is_base64(signature));
                }
                Part::ToolCall(call) => {
                    let unsigned = std::mem::take(&mut is_first_call).then_some(UNSIGNED);
                    self.call(call, signed.take().or(unsigned), at);
                }
                part if is_content(part) => {
                    self.part(Side::Model, at);
                    text_part(&mut self.out, part, signed.take());
                }
                _ => {}
            }
        }
    }

    fn call(&mut self, call: &'a ToolCall, signature: Option<&str>, at: usize) {
        self.part(Side::Model, at);
        let open = self.ids.call(call);
        self.out.raw(r#"{"functionCall":{"id":"#);
        self.out.string(&open.wire);
        self.out.raw(r#","name":"#);
        self.out.string(&open.name);
        self.out.raw(r#","args":"#);
        self.out.object(&call.arguments);
        self.out.raw("}");
        sign(&mut self.out, signature);
        self.out.raw("}");
    }

    fn response(&mut self, result: &ToolResult, at: usize) {
        let Some(call) = self.ids.result(&result.call_id) else {
            return;
        };
        self.part(Side::User, at);
        self.out.raw(r#"{"functionResponse":{"#);
        if !call.wire.is_empty() {
            self.out.raw(r#""id":"#);
            self.out.string(&call.wire);
            self.out.raw(",");
        }
        self.out.raw(r#""name":"#);
        self.out.string(&call.name);
        self.out.raw(if result.is_error {
            r#","response":{"error":""#
        } else {
            r#","response":{"output":""#
        });
        text::output(&mut self.out, &result.parts);
        self.out.raw(r#""}}}"#);
    }

    /// The API's own parts, byte for byte: one or a list of them. Only where they make the same calls, under ids
    /// that need no rewriting or under none.
    fn replay(&mut self, message: &'a Message, at: usize) -> bool {
        let Some(json) = own_blocks(message, PROVIDERS) else {
            return false;
        };
        let Some(Answer { calls }) = answer(json) else {
            return false;
        };
        let is_same = |(own, call): (&OwnCall<'_>, &ToolCall)| {
            own.id.as_ref().is_none_or(|id| *id == call.id) && own.name == call.name
        };
        let count = message.tool_calls().count();
        let same = calls.len() == count && calls.iter().zip(message.tool_calls()).all(is_same);
        let has_ids = calls.iter().any(|call| call.id.is_some());
        if !same || (has_ids && !self.ids.keeps(message)) {
            return false;
        }
        for (own, call) in calls.iter().zip(message.tool_calls()) {
            if own.id.is_some() {
                self.ids.call(call);
            } else {
                self.ids.call_without_id(call);
            }
        }
        self.part(Side::Model, at);
        self.out.raw(inside_list(json));
        true
    }
}

fn sign(out: &mut Out, signature: Option<&str>) {
    if let Some(signature) = signature {
        out.raw(r#","thoughtSignature":"#);
        out.string(signature);
    }
}

fn text_part(out: &mut Out, part: &Part, signature: Option<&str>) {
    out.raw(r#"{"text":""#);
    text::lines(out, std::slice::from_ref(part));
    out.raw(r#"""#);
    sign(out, signature);
    out.raw("}");
}

fn media_part(out: &mut Out, media: &Media) {
    let Some(mime) = mime(media) else {
        return marker_part(out, media);
    };
    if let Some(base64) = media::inline(media) {
        for json in [
            r#"{"inlineData":{"mimeType":""#,
            mime,
            r#"","data":""#,
            base64,
            r#""}}"#,
        ] {
            out.raw(json);
        }
    } else if let Some(url) = media::safe_url(media) {
        out.raw(r#"{"fileData":{"mimeType":""#);
        out.raw(mime);
        out.raw(r#"","fileUri":""#);
        out.escaped(url);
        out.raw(r#""}}"#);
    } else {
        marker_part(out, media);
    }
}

fn marker_part(out: &mut Out, media: &Media) {
    out.raw(r#"{"text":""#);
    media::marker(out, media);
    out.raw(r#""}"#);
}

/// The types that the API lists for its models.
fn mime(media: &Media) -> Option<&'static str> {
    const IMAGES: &[&str] = &[
        "image/png",
        "image/jpeg",
        "image/webp",
        "image/heic",
        "image/heif",
    ];
    const AUDIO: &[&str] = &[
        "audio/wav",
        "audio/mp3",
        "audio/mpeg",
        "audio/aiff",
        "audio/aac",
        "audio/ogg",
        "audio/flac",
    ];
    const FILES: &[&str] = &["application/pdf", "text/plain"];
    let types = match media.kind {
        MediaKind::Image => IMAGES,
        MediaKind::Audio => AUDIO,
        MediaKind::File => FILES,
    };
    let spelled = match media.mime.as_str() {
        "image/jpg" => "image/jpeg",
        "audio/x-wav" | "audio/wave" => "audio/wav",
        mime => mime,
    };
    types.iter().copied().find(|mime| *mime == spelled)
}
