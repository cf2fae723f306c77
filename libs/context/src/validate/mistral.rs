//! Rules of Mistral's chat completions, after its published request validators.

use super::chat::{
    Check, Message, Part, alternates, callers, calls_answered, distinct_ids, json_arguments, known_role,
    legal_names, results_follow, says_something,
};
use super::failing;
use super::read::{Address, Word};

pub(super) const RULES: &[(&str, Check)] = &[
    ("a role is system, user, assistant or tool", known_role),
    ("the first message is the user's", starts_with_user),
    ("a message says something", says_something),
    ("a part of a content is known and of its role", known_parts),
    ("a part of a content is whole", whole_parts),
    (
        "only an assistant calls tools, and a list of calls is not empty",
        callers,
    ),
    ("a call is of a function with a legal name", legal_names),
    ("an id is nine letters or digits", legal_ids),
    ("a call has JSON in a string as arguments", json_arguments),
    ("the ids of all calls are different", distinct_ids),
    ("a result has a legal name", named_results),
    ("a result follows the message of its call", results_follow),
    (
        "every call has one result before the next message",
        calls_answered,
    ),
    ("users and assistants alternate", alternates),
    ("results are followed by an answer", answer_follows),
    ("a system message follows no answer", system_early),
    ("the last message waits for an answer", ends_open),
    ("only the last message is to be continued", prefix_last),
];

fn starts_with_user(messages: &[Message<'_>]) -> Vec<usize> {
    failing(&messages[..1], |message| {
        !matches!(message.role.as_str(), "assistant" | "tool" | "system")
    })
}

fn known_parts(messages: &[Message<'_>]) -> Vec<usize> {
    failing(messages, |message| {
        let is_known = |part: &Part<'_>| match part.kind.as_str() {
            "text" => true,
            "image_url" | "input_audio" | "document_url" => message.role.is("user"),
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
            "input_audio" => part.input_audio.bare == Address::Base64 || part.input_audio.bare.is_web(),
            "document_url" => part.document_url == Address::Https,
            _ => true,
        };
        message.content.parts().iter().all(is_whole)
    })
}

fn legal_ids(messages: &[Message<'_>]) -> Vec<usize> {
    failing(messages, |message| {
        let is_result = message.role.is("tool");
        message.calls().iter().all(|call| is_nine(&call.id)) && (!is_result || is_nine(&message.tool_call_id))
    })
}

fn named_results(messages: &[Message<'_>]) -> Vec<usize> {
    failing(messages, |message| {
        !message.role.is("tool") || !message.name.is_there() || message.name.is_id(64)
    })
}

fn answer_follows(messages: &[Message<'_>]) -> Vec<usize> {
    let breaks = |at: &usize| {
        let is_next = matches!(messages[*at].role.as_str(), "assistant" | "tool" | "system");
        messages[at - 1].role.is("tool") && !is_next
    };
    (1..messages.len()).filter(breaks).collect()
}

fn system_early(messages: &[Message<'_>]) -> Vec<usize> {
    let answers = |message: &Message<'_>| matches!(message.role.as_str(), "assistant" | "tool");
    let breaks = |at: &usize| messages[*at].role.is("system") && answers(&messages[at - 1]);
    (1..messages.len()).filter(breaks).collect()
}

fn ends_open(messages: &[Message<'_>]) -> Vec<usize> {
    let last = messages.len() - 1;
    let message = &messages[last];
    let is_closed = message.role.is("assistant") && !message.prefix && message.calls().is_empty();
    if is_closed { vec![last] } else { Vec::new() }
}

fn prefix_last(messages: &[Message<'_>]) -> Vec<usize> {
    failing(&messages[..messages.len() - 1], |message| !message.prefix)
}

fn is_nine(id: &Word<'_>) -> bool {
    let id = id.as_str();
    id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
