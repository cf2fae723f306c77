//! Rules of the OpenAI Responses API. What is called a message here is an item of the input.

use super::read::{Address, Content, JsonText, Text, Word, shape};
use super::{blocks, failing, keeps, one, repeating};
use serde::Deserialize;
use std::borrow::Cow;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Item<'a> {
    #[serde(borrow, rename = "type")]
    kind: Word<'a>,
    #[serde(borrow)]
    id: Word<'a>,
    #[serde(borrow)]
    role: Word<'a>,
    #[serde(borrow)]
    content: Content<Part<'a>>,
    #[serde(borrow)]
    call_id: Word<'a>,
    #[serde(borrow)]
    name: Word<'a>,
    arguments: JsonText,
    #[serde(borrow)]
    output: Content<Part<'a>>,
    #[serde(borrow)]
    summary: Content<Part<'a>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Part<'a> {
    #[serde(borrow, rename = "type")]
    kind: Word<'a>,
    text: Text,
    refusal: Text,
    image_url: Address,
    file_id: Text,
    file_url: Address,
    file_data: Address,
}

/// A rule over the facts of all messages.
type Check = for<'a> fn(&[Item<'a>]) -> Vec<usize>;

pub(super) const RULES: &[(&str, Check)] = &[
    ("an item is of a known type", known_type),
    ("a role is system, developer, user or assistant", known_role),
    ("a message says something", says_something),
    ("a part of a content is known and of its role", known_parts),
    ("a part of a content is whole", whole_parts),
    ("a call has a legal call id", legal_call_ids),
    ("a call has a legal name", legal_names),
    ("a call has JSON in a string as arguments", json_arguments),
    ("an item's id is legal and of its type", legal_item_ids),
    ("the ids of all items are different", distinct_item_ids),
    ("the ids of all calls are different", distinct_call_ids),
    ("an output says something", whole_outputs),
    ("an output follows its call", outputs_follow),
    ("every call has one output", calls_answered),
    ("reasoning has a summary", summarised),
    ("reasoning is followed by what it led to", reasoning_leads),
];

fn known_type(items: &[Item<'_>]) -> Vec<usize> {
    failing(items, |item| match item.kind.as_str() {
        "message" | "reasoning" | "function_call" | "function_call_output" => true,
        // Calls of tools that run at the provider, which come in replays alone.
        other => (!item.kind.is_there() && item.role.is_there()) || other.ends_with("_call"),
    })
}

fn known_role(items: &[Item<'_>]) -> Vec<usize> {
    let is_known = |role: &Word<'_>| matches!(role.as_str(), "system" | "developer" | "user" | "assistant");
    failing(items, |item| !item.is_message() || is_known(&item.role))
}

fn says_something(items: &[Item<'_>]) -> Vec<usize> {
    failing(items, |item| match &item.content {
        _ if !item.is_message() => true,
        Content::Text(text) => text.says_something,
        Content::List(parts) => !parts.is_empty(),
        _ => false,
    })
}

fn known_parts(items: &[Item<'_>]) -> Vec<usize> {
    failing(items, |item| {
        let is_known = |part: &Part<'_>| match part.kind.as_str() {
            "input_text" => !item.role.is("assistant"),
            "input_image" | "input_file" => matches!(item.role.as_str(), "user" | ""),
            "output_text" | "refusal" => item.role.is("assistant"),
            _ => false,
        };
        !item.is_message() || item.content.parts().iter().all(is_known)
    })
}

fn whole_parts(items: &[Item<'_>]) -> Vec<usize> {
    failing(items, |item| {
        !item.is_message() || item.content.parts().iter().all(is_whole)
    })
}

fn legal_call_ids(items: &[Item<'_>]) -> Vec<usize> {
    failing(items, |item| !item.is_call() || item.call_id.is_id(64))
}

fn legal_names(items: &[Item<'_>]) -> Vec<usize> {
    failing(items, |item| !item.is_call() || item.name.is_id(64))
}

fn json_arguments(items: &[Item<'_>]) -> Vec<usize> {
    failing(items, |item| !item.is_call() || item.arguments.is_json)
}

fn legal_item_ids(items: &[Item<'_>]) -> Vec<usize> {
    failing(items, |item| {
        let begins = match item.kind.as_str() {
            "function_call" => "fc",
            "reasoning" => "rs",
            "message" => "msg",
            _ => "",
        };
        let is_legal = item.id.is_id(64) && item.id.as_str().starts_with(begins);
        is_legal || (!item.id.is_there() && !item.is_reasoning())
    })
}

fn distinct_item_ids(items: &[Item<'_>]) -> Vec<usize> {
    repeating(items, |item| std::iter::once(item.id.as_str()))
}

fn distinct_call_ids(items: &[Item<'_>]) -> Vec<usize> {
    let call_id = |item: &'_ Item<'_>| item.is_call();
    repeating(items, move |item| {
        call_id(item).then_some(item.call_id.as_str()).into_iter()
    })
}

fn whole_outputs(items: &[Item<'_>]) -> Vec<usize> {
    let is_input =
        |part: &Part<'_>| matches!(part.kind.as_str(), "input_text" | "input_image" | "input_file");
    failing(items, |item| match &item.output {
        _ if !item.is_output() => true,
        Content::Text(text) => text.says_something,
        Content::List(parts) => {
            !parts.is_empty() && parts.iter().all(|part| is_input(part) && is_whole(part))
        }
        _ => false,
    })
}

fn outputs_follow(items: &[Item<'_>]) -> Vec<usize> {
    let mut called = std::collections::HashSet::new();
    let mut broken = Vec::new();
    for (at, item) in items.iter().enumerate() {
        if item.is_call() {
            called.insert(item.call_id.as_str());
        } else if item.is_output() && !called.contains(item.call_id.as_str()) {
            broken.push(at);
        }
    }
    broken
}

fn calls_answered(items: &[Item<'_>]) -> Vec<usize> {
    let mut outputs = std::collections::HashMap::<&str, usize>::new();
    for item in items.iter().filter(|item| item.is_output()) {
        *outputs.entry(item.call_id.as_str()).or_default() += 1;
    }
    failing(items, |item| {
        !item.is_call() || outputs.get(item.call_id.as_str()) == Some(&1)
    })
}

fn summarised(items: &[Item<'_>]) -> Vec<usize> {
    failing(items, |item| {
        !item.is_reasoning() || matches!(item.summary, Content::List(_))
    })
}

fn reasoning_leads(items: &[Item<'_>]) -> Vec<usize> {
    let leads = |at: usize| {
        let is_led_to =
            |item: &Item<'_>| !item.is_output() && (!item.is_message() || item.role.is("assistant"));
        !items[at].is_reasoning() || items.get(at + 1).is_some_and(is_led_to)
    };
    (0..items.len()).filter(|&at| !leads(at)).collect()
}

/// What the API's own items say, when they may stand in a request.
pub(crate) struct Answer<'a> {
    pub items: usize,
    /// The ids of its calls.
    pub calls: Vec<Cow<'a, str>>,
    /// The names of its items, those that have one.
    pub names: Vec<Cow<'a, str>>,
}

/// Reads one item or a list of them.
pub(crate) fn answer(json: &str) -> Option<Answer<'_>> {
    let items: Vec<Item<'_>> = blocks(json)?;
    let is_answer = |item: &Item<'_>| !item.is_output() && (!item.is_message() || item.role.is("assistant"));
    if items.is_empty()
        || !items.iter().all(is_answer)
        || !keeps(RULES, &["every call has one output"], &items)
    {
        return None;
    }
    let calls = items.iter().filter(|item| item.is_call());
    Some(Answer {
        items: items.len(),
        calls: calls.map(|item| item.call_id.clone().into_string()).collect(),
        names: items
            .into_iter()
            .map(|item| item.id.into_string())
            .filter(|id| !id.is_empty())
            .collect(),
    })
}

/// The id of a reasoning item that may be sent again.
pub(crate) fn reasoning_id(json: &str) -> Option<Cow<'_, str>> {
    let items: [Item<'_>; 1] = [shape(json).and_then(|_| one(json))?];
    let is_whole =
        items[0].is_reasoning() && legal_item_ids(&items).is_empty() && summarised(&items).is_empty();
    let [item] = items;
    is_whole.then(|| item.id.into_string())
}

impl Item<'_> {
    fn is_message(&self) -> bool {
        self.kind.is("message") || (!self.kind.is_there() && self.role.is_there())
    }

    fn is_call(&self) -> bool {
        self.kind.is("function_call")
    }

    fn is_output(&self) -> bool {
        self.kind.is("function_call_output")
    }

    fn is_reasoning(&self) -> bool {
        self.kind.is("reasoning")
    }
}

fn is_whole(part: &Part<'_>) -> bool {
    match part.kind.as_str() {
        "input_text" | "output_text" => part.text.says_something,
        "refusal" => part.refusal.says_something,
        "input_image" => {
            part.image_url.is_web() || part.image_url == Address::Data || part.file_id.says_something
        }
        "input_file" => {
            part.file_url.is_web() || part.file_data == Address::Data || part.file_id.says_something
        }
        _ => true,
    }
}
