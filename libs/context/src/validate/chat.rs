//! Rules of OpenAI Chat Completions, and of the endpoints that copy it and want more.

use super::read::{Address, Content, JsonText, Leaf, Text, Word, flag, leaf, object, shape};
use super::{failing, keeps, one, repeating};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess};
use std::borrow::Cow;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub role: Word<'a>,
    #[serde(borrow)]
    pub content: Content<Part<'a>>,
    #[serde(borrow)]
    pub tool_calls: Content<Call<'a>>,
    #[serde(borrow)]
    pub tool_call_id: Word<'a>,
    #[serde(borrow)]
    pub name: Word<'a>,
    #[serde(deserialize_with = "flag")]
    pub prefix: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Part<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Word<'a>,
    pub text: Text,
    #[serde(deserialize_with = "object")]
    image_url: Image,
    #[serde(borrow)]
    pub input_audio: Audio<'a>,
    #[serde(deserialize_with = "object")]
    file: File,
    pub document_url: Address,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Image {
    url: Address,
}

/// An object here, a bare string at Mistral.
#[derive(Debug, Clone, Default)]
pub(super) struct Audio<'a> {
    pub bare: Address,
    data: Address,
    format: Word<'a>,
}

impl<'a> Leaf<'a> for Audio<'a> {
    fn other() -> Self {
        Self::default()
    }

    fn text(text: &str) -> Self {
        Self {
            bare: Address::text(text),
            ..Self::default()
        }
    }

    fn object<A: MapAccess<'a>>(mut object: A) -> Result<Self, A::Error> {
        let mut audio = Self::default();
        while let Some(key) = object.next_key::<Word<'_>>()? {
            match key.as_str() {
                "data" => audio.data = object.next_value()?,
                "format" => audio.format = object.next_value()?,
                _ => drop(object.next_value::<IgnoredAny>()?),
            }
        }
        Ok(audio)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Audio<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        leaf(deserializer)
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct File {
    file_data: Address,
    file_id: Text,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Call<'a> {
    #[serde(borrow)]
    pub id: Word<'a>,
    #[serde(borrow, rename = "type")]
    kind: Word<'a>,
    #[serde(borrow, deserialize_with = "object")]
    pub function: Function<'a>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    name: Word<'a>,
    arguments: JsonText,
}

/// A rule over the facts of all messages.
pub(super) type Check = for<'a> fn(&[Message<'a>]) -> Vec<usize>;

pub(super) const RULES: &[(&str, Check)] = &[
    ("a role is system, user, assistant or tool", known_role),
    ("a message says something", says_something),
    ("a part of a content is known and of its role", known_parts),
    ("a part of a content is whole", whole_parts),
    (
        "only an assistant calls tools, and a list of calls is not empty",
        callers,
    ),
    ("a call is of a function with a legal name", legal_names),
    ("a call has a legal id", legal_ids),
    ("a call has JSON in a string as arguments", json_arguments),
    ("the ids of all calls are different", distinct_ids),
    ("a result follows the message of its call", results_follow),
    (
        "every call has one result before the next message",
        calls_answered,
    ),
];

/// What the stricter endpoints want besides.
pub(super) const STRICT: &[(&str, Check)] = &[
    ("users and assistants alternate", alternates),
    ("a system message is the first", system_first),
];

pub(super) fn known_role(messages: &[Message<'_>]) -> Vec<usize> {
    failing(messages, |message| {
        matches!(message.role.as_str(), "system" | "user" | "assistant" | "tool")
    })
}

pub(super) fn says_something(messages: &[Message<'_>]) -> Vec<usize> {
    failing(messages, |message| match &message.content {
        Content::Text(text) => text.says_something || message.has_calls(),
        Content::List(parts) => !parts.is_empty() || message.has_calls(),
        Content::Absent => message.has_calls(),
        Content::Other => false,
    })
}

fn known_parts(messages: &[Message<'_>]) -> Vec<usize> {
    failing(messages, |message| {
        let is_known = |part: &Part<'_>| match part.kind.as_str() {
            "text" => true,
            "image_url" | "input_audio" | "file" => message.role.is("user"),
            _ => false,
        };
        message.content.parts().iter().all(is_known)
    })
}

fn whole_parts(messages: &[Message<'_>]) -> Vec<usize> {
    failing(messages, |message| {
        let is_whole = |part: &Part<'_>| match part.kind.as_str() {
            "text" => part.text.says_something,
            "image_url" => part.shows_image(),
            "input_audio" => {
                part.input_audio.data == Address::Base64
                    && matches!(part.input_audio.format.as_str(), "wav" | "mp3")
            }
            "file" => part.file.file_data == Address::Data || part.file.file_id.says_something,
            _ => true,
        };
        message.content.parts().iter().all(is_whole)
    })
}

pub(super) fn callers(messages: &[Message<'_>]) -> Vec<usize> {
    failing(messages, |message| match &message.tool_calls {
        Content::Absent => true,
        Content::List(calls) => message.role.is("assistant") && !calls.is_empty(),
        _ => false,
    })
}

pub(super) fn legal_names(messages: &[Message<'_>]) -> Vec<usize> {
    failing(messages, |message| {
        let is_legal = |call: &Call<'_>| call.kind.is("function") && call.function.name.is_id(64);
        message.calls().iter().all(is_legal)
    })
}

fn legal_ids(messages: &[Message<'_>]) -> Vec<usize> {
    failing(messages, |message| {
        message.calls().iter().all(|call| call.id.is_id(40))
    })
}

pub(super) fn json_arguments(messages: &[Message<'_>]) -> Vec<usize> {
    failing(messages, |message| {
        message.calls().iter().all(|call| call.function.arguments.is_json)
    })
}

pub(super) fn distinct_ids(messages: &[Message<'_>]) -> Vec<usize> {
    repeating(messages, |message| {
        message.calls().iter().map(|call| call.id.as_str())
    })
}

/// A result stands behind its call, with nothing but results between them.
pub(super) fn results_follow(messages: &[Message<'_>]) -> Vec<usize> {
    let mut caller: Option<&Message<'_>> = None;
    let mut broken = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if !message.role.is("tool") {
            caller = Some(message);
            continue;
        }
        let is_known = |call: &Call<'_>| call.id == message.tool_call_id;
        if !caller.is_some_and(|caller| caller.calls().iter().any(is_known)) {
            broken.push(at);
        }
    }
    broken
}

pub(super) fn calls_answered(messages: &[Message<'_>]) -> Vec<usize> {
    let is_answered = |at: usize| {
        let results = || {
            messages[at + 1..]
                .iter()
                .take_while(|message| message.role.is("tool"))
        };
        let answers = |id: &Word<'_>| results().filter(|result| result.tool_call_id == *id).count();
        messages[at].calls().iter().all(|call| answers(&call.id) == 1)
    };
    (0..messages.len()).filter(|&at| !is_answered(at)).collect()
}

pub(super) fn alternates(messages: &[Message<'_>]) -> Vec<usize> {
    let repeats = |at: &usize| {
        let role = &messages[*at].role;
        *role == messages[at - 1].role && !role.is("tool") && !role.is("system")
    };
    (1..messages.len()).filter(repeats).collect()
}

fn system_first(messages: &[Message<'_>]) -> Vec<usize> {
    (1..messages.len())
        .filter(|&at| messages[at].role.is("system"))
        .collect()
}

/// The ids of the calls in an answer as the endpoint gave it; none when it may not stand in a request.
pub(crate) fn own_answer(json: &str) -> Option<Vec<Cow<'_, str>>> {
    let messages: [Message<'_>; 1] = [shape(json).and_then(|_| one(json))?];
    let about_results: &[&str] = &["every call has one result before the next message"];
    if !messages[0].role.is("assistant") || !keeps(RULES, about_results, &messages) {
        return None;
    }
    let [message] = messages;
    let Content::List(calls) = message.tool_calls else {
        return Some(Vec::new());
    };
    Some(calls.into_iter().map(|call| call.id.into_string()).collect())
}

impl Part<'_> {
    pub(super) fn shows_image(&self) -> bool {
        self.image_url.url.is_web() || self.image_url.url == Address::Data
    }
}

impl<'a> Message<'a> {
    pub(super) fn calls(&self) -> &[Call<'a>] {
        self.tool_calls.parts()
    }

    fn has_calls(&self) -> bool {
        !self.calls().is_empty()
    }
}
