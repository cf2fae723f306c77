//! OpenAI Chat Completions, the stricter endpoints that copy it, and Mistral: a tool result is a message of its
//! own, thinking is not sent.

mod content;

use super::ids::{Alphabet, Ids};
use super::out::Out;
use super::text::{has_text, lines, output, system};
use super::{EARLIER_OMITTED, Projected, own_blocks};
use crate::item::Item;
use crate::validate::chat::own_answer;
use colloquy_types::message::{Message, Role, ToolResult};
use content::{list_part, string_or_list};

/// The names that replayed messages of Chat Completions carry.
const PROVIDERS: &[&str] = &["openai", "openai_chat"];
/// What stands where Mistral wants an answer between a tool result and the next user message.
const NO_ANSWER: &str = "[no answer]";

/// Who is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Plain,
    /// Neighbours of one role are one message, a system message can only be the first.
    Strict,
    /// As strict; the first message is the user's, none of the user follows a result, an answer at the end must
    /// say that it is to be continued, and ids are nine letters or digits.
    Mistral,
}

pub(super) fn project(items: &[Item<'_>], dialect: Dialect) -> Projected {
    let alphabet = if dialect == Dialect::Mistral {
        Alphabet::Nine
    } else {
        Alphabet::AtMost(40)
    };
    let mut request = Request {
        dialect,
        out: Out::new(items),
        ids: Ids::new(alphabet),
        open: Open::Nothing,
        last: None,
    };
    for (at, item) in items.iter().enumerate() {
        let message = &*item.message;
        match message.role {
            Role::User => request.user(message, at),
            Role::System => request.system(message, at),
            Role::Assistant => request.assistant(message, at),
            Role::Tool => message.tool_results().for_each(|result| request.tool(result, at)),
        }
    }
    request.finish()
}

/// What of the newest message can still grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    /// The list of a user message's parts.
    List,
    /// The text of an answer.
    Text,
}

struct Request<'a> {
    dialect: Dialect,
    out: Out,
    ids: Ids<'a>,
    open: Open,
    /// Who speaks in the newest message.
    last: Option<Role>,
}

impl<'a> Request<'a> {
    fn merges(&self) -> bool {
        self.dialect != Dialect::Plain
    }

    fn finish(mut self) -> Projected {
        if self.dialect == Dialect::Mistral && self.open == Open::Text {
            self.out.raw(r#"","prefix":true}"#);
            self.open = Open::Nothing;
        }
        self.close();
        self.out.finish()
    }

    fn close(&mut self) {
        self.out.raw(match self.open {
            Open::Nothing => "",
            Open::List => "]}",
            Open::Text => r#""}"#,
        });
        self.open = Open::Nothing;
    }

    /// Starts a message, with what the dialect wants before it.
    fn start(&mut self, role: Role, head: &str) {
        self.close();
        if self.dialect == Dialect::Mistral {
            match (self.last, role) {
                (None, Role::Assistant) => self.filler(
                    r#"{"role":"user","content":[{"type":"text","text":"#,
                    EARLIER_OMITTED,
                    "}]}",
                ),
                (Some(Role::Tool), Role::User) => {
                    self.filler(r#"{"role":"assistant","content":"#, NO_ANSWER, "}")
                }
                _ => {}
            }
        }
        self.out.message();
        self.out.raw(head);
        self.last = Some(role);
    }

    fn filler(&mut self, head: &str, text: &str, tail: &str) {
        self.out.message();
        self.out.raw(head);
        self.out.string(text);
        self.out.raw(tail);
    }

    fn user(&mut self, message: &Message, at: usize) {
        if !has_text(&message.parts) {
            return;
        }
        if self.merges() {
            self.start_list(at);
            message
                .parts
                .iter()
                .for_each(|part| list_part(&mut self.out, part, self.dialect));
            return;
        }
        self.start(Role::User, r#"{"role":"user","content":"#);
        self.out.source(at);
        string_or_list(&mut self.out, &message.parts, self.dialect);
        self.out.raw("}");
    }

    /// A user message as a list: a string could not grow by an image without a change of what was sent.
    fn start_list(&mut self, at: usize) {
        if self.open != Open::List {
            self.start(Role::User, r#"{"role":"user","content":["#);
            self.open = Open::List;
        }
        self.out.source(at);
    }

    fn system(&mut self, message: &Message, at: usize) {
        if !has_text(&message.parts) {
            return;
        }
        if self.dialect == Dialect::Plain || (self.dialect == Dialect::Strict && self.out.is_empty()) {
            self.start(Role::System, r#"{"role":"system","content":""#);
            self.out.source(at);
            lines(&mut self.out, &message.parts);
            self.out.raw(r#""}"#);
            return;
        }
        self.start_list(at);
        self.out.comma();
        self.out.raw(r#"{"type":"text","text":""#);
        system(&mut self.out, &message.parts);
        self.out.raw(r#""}"#);
    }

    fn assistant(&mut self, message: &'a Message, at: usize) {
        self.ids.next_message();
        if self.replay(message, at) {
            return;
        }
        let has_calls = message.tool_calls().next().is_some();
        let has_text = has_text(&message.parts);
        if !has_text && !has_calls {
            return;
        }
        let is_merged = self.open == Open::Text;
        if !is_merged {
            self.start(Role::Assistant, r#"{"role":"assistant","content":"#);
        }
        self.out.source(at);
        if has_text {
            self.out.raw(if is_merged { r"\n" } else { r#"""# });
            lines(&mut self.out, &message.parts);
            self.open = Open::Text;
        } else if !is_merged {
            self.out.raw(if self.dialect == Dialect::Mistral {
                r#""""#
            } else {
                "null"
            });
        }
        if has_calls {
            self.calls(message);
        } else if !self.merges() {
            self.close();
        }
    }

    /// Ends the newest answer with its calls.
    fn calls(&mut self, message: &'a Message) {
        if self.open == Open::Text {
            self.out.raw(r#"""#);
        }
        self.open = Open::Nothing;
        self.out.raw(r#","tool_calls":["#);
        for call in message.tool_calls() {
            let open = self.ids.call(call);
            self.out.comma();
            self.out.raw(r#"{"id":"#);
            self.out.string(&open.wire);
            self.out.raw(r#","type":"function","function":{"name":"#);
            self.out.string(&open.name);
            self.out.raw(r#","arguments":"#);
            self.out.string(&call.arguments);
            self.out.raw("}}");
        }
        self.out.raw("]}");
    }

    fn tool(&mut self, result: &ToolResult, at: usize) {
        let Some(call) = self.ids.result(&result.call_id) else {
            return;
        };
        self.start(Role::Tool, r#"{"role":"tool","tool_call_id":"#);
        self.out.source(at);
        self.out.string(&call.wire);
        if self.dialect == Dialect::Mistral {
            self.out.raw(r#","name":"#);
            self.out.string(&call.name);
        }
        self.out.raw(r#","content":""#);
        output(&mut self.out, &result.parts);
        self.out.raw(r#""}"#);
    }

    /// The message as the endpoint gave it, byte for byte, for it may hold fields that the product does not know.
    /// Only where it makes the same calls, under ids that need no rewriting.
    fn replay(&mut self, message: &'a Message, at: usize) -> bool {
        if self.dialect != Dialect::Plain {
            return false;
        }
        let Some(json) = own_blocks(message, PROVIDERS) else {
            return false;
        };
        let calls = message.tool_calls().map(|call| call.id.as_str());
        if !own_answer(json).is_some_and(|ids| ids.iter().map(|id| &**id).eq(calls))
            || !self.ids.keeps(message)
        {
            return false;
        }
        self.start(Role::Assistant, json);
        self.out.source(at);
        for call in message.tool_calls() {
            self.ids.call(call);
        }
        true
    }
}
