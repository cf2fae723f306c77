//! Rules of the product's own messages: what every renderer of them may rely on. Ids may repeat.

use super::failing;
use super::read::{Content, JsonText, Text, Word};
use serde::Deserialize;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    role: Word<'a>,
    #[serde(borrow)]
    parts: Content<Part<'a>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Part<'a> {
    #[serde(borrow, rename = "type")]
    kind: Word<'a>,
    text: Text,
    #[serde(borrow)]
    id: Word<'a>,
    #[serde(borrow)]
    name: Word<'a>,
    arguments: JsonText,
    #[serde(borrow)]
    call_id: Word<'a>,
}

/// A rule over the facts of all messages.
type Check = for<'a> fn(&[Message<'a>]) -> Vec<usize>;

pub(super) const RULES: &[(&str, Check)] = &[
    ("a role is user, assistant, tool or system", known_role),
    ("a part is known", known_parts),
    ("a message says something", says_something),
    ("a call has an id, a name and JSON as arguments", whole_calls),
    ("calls are the assistant's, results the tools'", of_their_role),
    (
        "results are those of the calls before them, each once",
        results_match,
    ),
];

fn known_role(messages: &[Message<'_>]) -> Vec<usize> {
    failing(messages, |message| {
        matches!(message.role.as_str(), "user" | "assistant" | "tool" | "system")
    })
}

fn known_parts(messages: &[Message<'_>]) -> Vec<usize> {
    let is_known = |part: &Part<'_>| {
        matches!(
            part.kind.as_str(),
            "text" | "media" | "tool_call" | "tool_result" | "thinking"
        )
    };
    failing(messages, |message| message.parts.parts().iter().all(is_known))
}

fn says_something(messages: &[Message<'_>]) -> Vec<usize> {
    let says = |part: &Part<'_>| !part.kind.is("text") || part.text.says_something;
    failing(messages, |message| message.parts.parts().iter().any(says))
}

fn whole_calls(messages: &[Message<'_>]) -> Vec<usize> {
    let says = |word: &Word<'_>| !word.as_str().trim().is_empty();
    let is_whole = |call: &Part<'_>| says(&call.id) && says(&call.name) && call.arguments.is_json;
    failing(messages, |message| message.of("tool_call").all(is_whole))
}

fn of_their_role(messages: &[Message<'_>]) -> Vec<usize> {
    failing(messages, |message| {
        (message.of("tool_call").next().is_none() || message.role.is("assistant"))
            && (message.of("tool_result").next().is_none() || message.role.is("tool"))
    })
}

/// The fault is at the calls that lack a result, or at the first message of results that have no call.
fn results_match(messages: &[Message<'_>]) -> Vec<usize> {
    let is_tool = |message: &&Message<'_>| message.role.is("tool");
    let mut broken = Vec::new();
    let mut at = 0;
    while at < messages.len() {
        let caller = at;
        let starts_with_results = is_tool(&&messages[at]);
        at += usize::from(!starts_with_results);
        let results = messages[at..].iter().take_while(is_tool);
        let count = results.clone().count();
        let mut answered: Vec<&str> = results
            .flat_map(|message| message.of("tool_result"))
            .map(|part| part.call_id.as_str())
            .collect();
        let calls = if starts_with_results {
            None
        } else {
            Some(&messages[caller])
        };
        let mut called: Vec<&str> = calls
            .into_iter()
            .flat_map(|message| message.of("tool_call"))
            .map(|part| part.id.as_str())
            .collect();
        answered.sort_unstable();
        called.sort_unstable();
        if answered != called {
            broken.push(caller);
        }
        at += count;
    }
    broken
}

impl<'a> Message<'a> {
    fn of(&self, kind: &'static str) -> impl Iterator<Item = &Part<'a>> {
        self.parts.parts().iter().filter(move |part| part.kind.is(kind))
    }
}
