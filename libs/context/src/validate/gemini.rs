//! Rules of Gemini `generateContent`.

use super::read::{Address, Shape, Text, Word, maybe_object};
use super::{blocks, failing, keeps, repeating};
use serde::Deserialize;
use std::borrow::Cow;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Content<'a> {
    #[serde(borrow)]
    role: Word<'a>,
    #[serde(borrow)]
    parts: super::read::Content<Part<'a>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Part<'a> {
    text: Text,
    #[serde(borrow, deserialize_with = "maybe_object")]
    inline_data: Option<Media<'a>>,
    #[serde(borrow, deserialize_with = "maybe_object")]
    file_data: Option<Media<'a>>,
    #[serde(borrow, deserialize_with = "maybe_object")]
    function_call: Option<Function<'a>>,
    #[serde(borrow, deserialize_with = "maybe_object")]
    function_response: Option<Function<'a>>,
    executable_code: Shape,
    code_execution_result: Shape,
    #[serde(borrow)]
    thought_signature: Word<'a>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Media<'a> {
    #[serde(borrow)]
    mime_type: Word<'a>,
    data: Address,
    file_uri: Address,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Function<'a> {
    #[serde(borrow)]
    id: Word<'a>,
    #[serde(borrow)]
    name: Word<'a>,
    args: Shape,
    response: Shape,
}

/// A rule over the facts of all messages.
type Check = for<'a> fn(&[Content<'a>]) -> Vec<usize>;

pub(super) const RULES: &[(&str, Check)] = &[
    ("a role is user or model", known_role),
    ("the first content is the user's", starts_with_user),
    ("roles alternate", alternates),
    ("a content has parts", has_parts),
    ("a part holds one thing", one_thing),
    ("a text is not blank", whole_texts),
    ("media has a type and base64 or an address", whole_media),
    ("the model calls, the user responds", of_their_role),
    ("a call has a legal name", legal_names),
    ("a call has an object as arguments", object_arguments),
    ("a call has a legal id where it has one", legal_ids),
    ("the ids of all calls are different", distinct_ids),
    ("a response has an object", object_responses),
    (
        "responses are as many as the calls before, by order, name and id",
        responses_match,
    ),
    ("a signature is base64", whole_signatures),
];

fn known_role(contents: &[Content<'_>]) -> Vec<usize> {
    failing(contents, |content| content.is_user() || content.is_model())
}

fn starts_with_user(contents: &[Content<'_>]) -> Vec<usize> {
    failing(&contents[..1], |content| !content.is_model())
}

fn alternates(contents: &[Content<'_>]) -> Vec<usize> {
    (1..contents.len())
        .filter(|&at| contents[at].role == contents[at - 1].role)
        .collect()
}

fn has_parts(contents: &[Content<'_>]) -> Vec<usize> {
    failing(contents, |content| !content.parts().is_empty())
}

fn one_thing(contents: &[Content<'_>]) -> Vec<usize> {
    let things = |part: &Part<'_>| {
        [
            part.text.is_there,
            part.inline_data.is_some(),
            part.file_data.is_some(),
            part.function_call.is_some(),
            part.function_response.is_some(),
            part.executable_code.is_object,
            part.code_execution_result.is_object,
        ]
        .into_iter()
        .filter(|is_there| *is_there)
        .count()
    };
    failing(contents, |content| {
        content.parts().iter().all(|part| things(part) == 1)
    })
}

/// The API itself may end an answer in an empty text that carries a signature.
fn whole_texts(contents: &[Content<'_>]) -> Vec<usize> {
    let is_whole = |part: &Part<'_>| part.text.says_something || part.thought_signature.is_there();
    failing(contents, |content| {
        content
            .parts()
            .iter()
            .all(|part| !part.text.is_there || is_whole(part))
    })
}

fn whole_media(contents: &[Content<'_>]) -> Vec<usize> {
    let is_inline =
        |media: &Media<'_>| media.mime_type.as_str().contains('/') && media.data == Address::Base64;
    let is_file =
        |media: &Media<'_>| media.mime_type.as_str().contains('/') && media.file_uri == Address::Https;
    failing(contents, |content| {
        let is_whole = |part: &Part<'_>| {
            part.inline_data.as_ref().is_none_or(is_inline) && part.file_data.as_ref().is_none_or(is_file)
        };
        content.parts().iter().all(is_whole)
    })
}

fn of_their_role(contents: &[Content<'_>]) -> Vec<usize> {
    failing(contents, |content| {
        (content.calls().next().is_none() || !content.is_user())
            && (content.responses().next().is_none() || !content.is_model())
    })
}

fn legal_names(contents: &[Content<'_>]) -> Vec<usize> {
    failing(contents, |content| {
        content.calls().all(|call| call.name.is_id(64))
    })
}

fn object_arguments(contents: &[Content<'_>]) -> Vec<usize> {
    failing(contents, |content| {
        content.calls().all(|call| call.args.is_object)
    })
}

fn legal_ids(contents: &[Content<'_>]) -> Vec<usize> {
    let is_legal = |call: &Function<'_>| !call.id.is_there() || call.id.is_id(64);
    failing(contents, |content| content.calls().all(is_legal))
}

fn distinct_ids(contents: &[Content<'_>]) -> Vec<usize> {
    repeating(contents, |content| content.calls().map(|call| call.id.as_str()))
}

fn object_responses(contents: &[Content<'_>]) -> Vec<usize> {
    failing(contents, |content| {
        content.responses().all(|response| response.response.is_object)
    })
}

/// Calls of a content and the responses of the next one; the fault is where the responses should be.
fn responses_match(contents: &[Content<'_>]) -> Vec<usize> {
    let same =
        |call: &Function<'_>, response: &Function<'_>| call.name == response.name && call.id == response.id;
    let matches = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| contents.get(before));
        let calls: Vec<_> = before.into_iter().flat_map(Content::calls).collect();
        let responses: Vec<_> = contents
            .get(at)
            .into_iter()
            .flat_map(Content::responses)
            .collect();
        calls.len() == responses.len()
            && calls
                .iter()
                .zip(&responses)
                .all(|(call, response)| same(call, response))
    };
    let last = contents.len() - 1;
    (0..=contents.len())
        .filter(|&at| !matches(at))
        .map(|at| at.min(last))
        .collect()
}

fn whole_signatures(contents: &[Content<'_>]) -> Vec<usize> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=-_".contains(&byte);
    let is_whole = |part: &Part<'_>| {
        let signature = part.thought_signature.as_str();
        !part.thought_signature.is_there() || (!signature.is_empty() && signature.bytes().all(legal))
    };
    failing(contents, |content| content.parts().iter().all(is_whole))
}

/// What the API's own parts say, when they may stand as a whole answer.
pub(crate) struct Answer<'a> {
    pub calls: Vec<OwnCall<'a>>,
}

/// A call as the API gave it.
pub(crate) struct OwnCall<'a> {
    /// None from models that give their calls no id.
    pub id: Option<Cow<'a, str>>,
    pub name: Cow<'a, str>,
}

/// Reads one part or a list of them.
pub(crate) fn answer<'a>(json: &'a str) -> Option<Answer<'a>> {
    let content = Content {
        role: Word::Is(Cow::Borrowed("model")),
        parts: super::read::Content::List(blocks(json)?),
    };
    let contents = [content];
    let about_others: &[&str] = &[
        "the first content is the user's",
        "responses are as many as the calls before, by order, name and id",
    ];
    if !keeps(RULES, about_others, &contents) {
        return None;
    }
    let [content] = contents;
    let super::read::Content::List(parts) = content.parts else {
        return None;
    };
    let own = |call: Function<'a>| OwnCall {
        id: call.id.is_there().then(|| call.id.into_string()),
        name: call.name.into_string(),
    };
    let calls = parts.into_iter().filter_map(|part| part.function_call);
    Some(Answer {
        calls: calls.map(own).collect(),
    })
}

impl<'a> Content<'a> {
    fn is_user(&self) -> bool {
        self.role.is("user")
    }

    fn is_model(&self) -> bool {
        self.role.is("model")
    }

    fn parts(&self) -> &[Part<'a>] {
        self.parts.parts()
    }

    fn calls(&self) -> impl Iterator<Item = &Function<'a>> {
        self.parts().iter().filter_map(|part| part.function_call.as_ref())
    }

    fn responses(&self) -> impl Iterator<Item = &Function<'a>> {
        self.parts()
            .iter()
            .filter_map(|part| part.function_response.as_ref())
    }
}
