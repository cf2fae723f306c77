//! Rules of Anthropic Messages.

use super::read::{Address, Content, Shape, Text, Word, object};
use super::{blocks, failing, keeps, repeating};
use serde::Deserialize;
use std::borrow::Cow;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    role: Word<'a>,
    #[serde(borrow)]
    content: Content<Block<'a>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Block<'a> {
    #[serde(borrow, rename = "type")]
    kind: Word<'a>,
    text: Text,
    thinking: Text,
    signature: Text,
    data: Text,
    #[serde(borrow)]
    id: Word<'a>,
    #[serde(borrow)]
    name: Word<'a>,
    input: Shape,
    #[serde(borrow)]
    tool_use_id: Word<'a>,
    #[serde(borrow)]
    content: Content<Inner<'a>>,
    #[serde(borrow, deserialize_with = "object")]
    source: Source<'a>,
}

/// A block inside a result.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Inner<'a> {
    #[serde(borrow, rename = "type")]
    kind: Word<'a>,
    text: Text,
    #[serde(borrow, deserialize_with = "object")]
    source: Source<'a>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Source<'a> {
    #[serde(borrow, rename = "type")]
    kind: Word<'a>,
    #[serde(borrow)]
    media_type: Word<'a>,
    data: Address,
    url: Address,
}

/// A rule over the facts of all messages.
type Check = for<'a> fn(&[Message<'a>]) -> Vec<usize>;

pub(super) const RULES: &[(&str, Check)] = &[
    ("a role is user or assistant", known_role),
    ("the first message is the user's", starts_with_user),
    ("roles alternate", alternates),
    ("a message has a list of content blocks", has_blocks),
    ("a block is known and of its role", known_blocks),
    ("a text is not blank", whole_texts),
    ("thinking is signed", signed_thinking),
    ("an attachment has a source the API takes", whole_sources),
    ("an answer does not end in thinking", ends_in_content),
    ("the last answer does not end in white space", ends_in_text),
    ("a tool use has a legal id", legal_ids),
    ("a tool use has a legal name", legal_names),
    ("a tool use has an object as input", object_inputs),
    ("the ids of all tool uses are different", distinct_ids),
    ("a result holds text and attachments", whole_results),
    ("results stand first in their message", results_first),
    ("a result follows the message of its tool use", results_follow),
    ("every tool use has one result in the next message", uses_answered),
];

fn known_role(messages: &[Message<'_>]) -> Vec<usize> {
    failing(messages, |message| {
        message.is_user() || message.role.is("assistant")
    })
}

fn starts_with_user(messages: &[Message<'_>]) -> Vec<usize> {
    failing(&messages[..1], |message| !message.role.is("assistant"))
}

fn alternates(messages: &[Message<'_>]) -> Vec<usize> {
    (1..messages.len())
        .filter(|&at| messages[at].role == messages[at - 1].role)
        .collect()
}

fn has_blocks(messages: &[Message<'_>]) -> Vec<usize> {
    failing(messages, |message| !message.blocks().is_empty())
}

fn known_blocks(messages: &[Message<'_>]) -> Vec<usize> {
    failing(messages, |message| {
        let is_known = |block: &Block<'_>| match block.kind.as_str() {
            "text" => true,
            "image" | "document" | "tool_result" => !message.role.is("assistant"),
            _ => !message.is_user() && is_answer(block),
        };
        message.blocks().iter().all(is_known)
    })
}

fn whole_texts(messages: &[Message<'_>]) -> Vec<usize> {
    failing(messages, |message| {
        let mut texts = message.blocks().iter().filter(|block| block.kind.is("text"));
        texts.all(|block| block.text.says_something)
    })
}

fn signed_thinking(messages: &[Message<'_>]) -> Vec<usize> {
    failing(messages, |message| message.blocks().iter().all(is_signed))
}

fn whole_sources(messages: &[Message<'_>]) -> Vec<usize> {
    failing(messages, |message| {
        message
            .blocks()
            .iter()
            .all(|block| takes(&block.kind, &block.source))
    })
}

fn ends_in_content(messages: &[Message<'_>]) -> Vec<usize> {
    failing(messages, |message| {
        !message.blocks().last().is_some_and(is_thinking)
    })
}

/// Only where the request ends in an answer, which the model is to continue.
fn ends_in_text(messages: &[Message<'_>]) -> Vec<usize> {
    let last = messages.len() - 1;
    let dangles =
        |block: &Block<'_>| block.kind.is("text") && block.text.says_something && block.text.ends_in_space;
    let is_broken =
        messages[last].role.is("assistant") && messages[last].blocks().last().is_some_and(dangles);
    if is_broken { vec![last] } else { Vec::new() }
}

fn legal_ids(messages: &[Message<'_>]) -> Vec<usize> {
    failing(messages, |message| message.uses().all(|block| block.id.is_id(64)))
}

fn legal_names(messages: &[Message<'_>]) -> Vec<usize> {
    failing(messages, |message| {
        message.uses().all(|block| block.name.is_id(128))
    })
}

fn object_inputs(messages: &[Message<'_>]) -> Vec<usize> {
    failing(messages, |message| {
        message.uses().all(|block| block.input.is_object)
    })
}

fn distinct_ids(messages: &[Message<'_>]) -> Vec<usize> {
    repeating(messages, |message| message.uses().map(|block| block.id.as_str()))
}

fn whole_results(messages: &[Message<'_>]) -> Vec<usize> {
    let is_whole = |inner: &Inner<'_>| match inner.kind.as_str() {
        "text" => inner.text.says_something,
        "image" | "document" => takes(&inner.kind, &inner.source),
        _ => false,
    };
    failing(messages, |message| {
        message.results().all(|result| match &result.content {
            Content::Text(text) => text.says_something,
            Content::List(parts) => !parts.is_empty() && parts.iter().all(is_whole),
            Content::Absent => true,
            Content::Other => false,
        })
    })
}

fn results_first(messages: &[Message<'_>]) -> Vec<usize> {
    failing(messages, |message| {
        let leading = message
            .blocks()
            .iter()
            .take_while(|block| block.kind.is("tool_result"));
        leading.count() == message.results().count()
    })
}

fn results_follow(messages: &[Message<'_>]) -> Vec<usize> {
    let follows = |at: usize| {
        let before = at.checked_sub(1).map(|before| &messages[before]);
        let knows = |id: &Word<'_>| before.is_some_and(|before| before.uses().any(|block| block.id == *id));
        messages[at].results().all(|result| knows(&result.tool_use_id))
    };
    (0..messages.len()).filter(|&at| !follows(at)).collect()
}

fn uses_answered(messages: &[Message<'_>]) -> Vec<usize> {
    let answers = |at: usize, id: &Word<'_>| {
        let results = messages.get(at + 1).into_iter().flat_map(Message::results);
        results.filter(|result| result.tool_use_id == *id).count()
    };
    let is_answered = |at: usize| messages[at].uses().all(|block| answers(at, &block.id) == 1);
    (0..messages.len()).filter(|&at| !is_answered(at)).collect()
}

/// What a provider's own blocks say, when they may stand as a whole answer.
pub(crate) struct Answer<'a> {
    /// The ids of its tool uses.
    pub calls: Vec<Cow<'a, str>>,
}

/// Reads one block or a list of them.
pub(crate) fn answer(json: &str) -> Option<Answer<'_>> {
    let message = Message {
        role: Word::Is(Cow::Borrowed("assistant")),
        content: Content::List(blocks(json)?),
    };
    let ends_well = message
        .blocks()
        .last()
        .is_some_and(|last| !last.text.ends_in_space);
    let messages = [message];
    let about_results: &[&str] = &[
        "the first message is the user's",
        "every tool use has one result in the next message",
    ];
    if !ends_well || !keeps(RULES, about_results, &messages) {
        return None;
    }
    let [message] = messages;
    let Content::List(blocks) = message.content else {
        return None;
    };
    let uses = blocks.into_iter().filter(|block| block.kind.is("tool_use"));
    Some(Answer {
        calls: uses.map(|block| block.id.into_string()).collect(),
    })
}

impl<'a> Message<'a> {
    fn is_user(&self) -> bool {
        self.role.is("user")
    }

    fn blocks(&self) -> &[Block<'a>] {
        self.content.parts()
    }

    fn uses(&self) -> impl Iterator<Item = &Block<'a>> {
        self.blocks().iter().filter(|block| block.kind.is("tool_use"))
    }

    fn results(&self) -> impl Iterator<Item = &Block<'a>> {
        self.blocks().iter().filter(|block| block.kind.is("tool_result"))
    }
}

fn is_thinking(block: &Block<'_>) -> bool {
    matches!(block.kind.as_str(), "thinking" | "redacted_thinking")
}

fn is_signed(block: &Block<'_>) -> bool {
    match block.kind.as_str() {
        "thinking" => block.thinking.is_text && block.signature.says_something,
        "redacted_thinking" => block.data.says_something,
        _ => true,
    }
}

/// Blocks an assistant may have besides text. Those of tools that run at the provider come in replays alone.
fn is_answer(block: &Block<'_>) -> bool {
    let kind = block.kind.as_str();
    is_thinking(block)
        || matches!(
            kind,
            "tool_use" | "server_tool_use" | "mcp_tool_use" | "container_upload" | "compaction"
        )
        || (kind != "tool_result" && kind.ends_with("_tool_result"))
}

fn takes(kind: &Word<'_>, source: &Source<'_>) -> bool {
    let mime = source.media_type.as_str();
    let takes_mime = match kind.as_str() {
        "image" => matches!(mime, "image/jpeg" | "image/png" | "image/gif" | "image/webp"),
        "document" => mime == "application/pdf",
        _ => return true,
    };
    match source.kind.as_str() {
        "base64" => takes_mime && source.data == Address::Base64,
        "url" => source.url == Address::Https,
        _ => false,
    }
}
