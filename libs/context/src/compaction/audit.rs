//! Whether a summary is good enough to stand for what it replaces.

use super::identifiers::identifiers;
use colloquy_types::message::{Message, Part, Role};
use std::collections::HashSet;
use std::fmt;

/// A summary may always be this long, however short what it replaces.
pub const MIN_LIMIT_TOKENS: u32 = 400;
/// The last messages of the range, whose identifiers must survive, and the most that are asked for.
pub const RECENT_MESSAGES: usize = 10;
pub const MAX_IDENTIFIERS: usize = 12;

/// What a summary is held against.
#[derive(Debug, Clone, Copy)]
pub struct AuditSource<'a> {
    /// The summarised messages, in order.
    pub messages: &'a [&'a Message],
    /// Their tokens.
    pub tokens: u32,
    /// Tokens of the summary.
    pub summary_tokens: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    Empty,
    /// Longer than what it replaces and than [`MIN_LIMIT_TOKENS`].
    TooLong {
        tokens: u32,
        limit: u32,
    },
    /// The model declined instead of summarising.
    Refusal,
    /// The last request is not named; its text, shortened.
    LastRequestMissing(String),
    IdentifiersMissing(Vec<String>),
}

/// Why a summary was refused. Its text tells the model what to add in the one retry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditFailure {
    pub problems: Vec<Problem>,
}

impl fmt::Display for AuditFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { "; " })?;
            match problem {
                Problem::Empty => f.write_str("the summary is empty")?,
                Problem::TooLong { tokens, limit } => {
                    write!(f, "the summary has {tokens} tokens, the limit is {limit}")?
                }
                Problem::Refusal => f.write_str("the answer is a refusal, not a summary")?,
                Problem::LastRequestMissing(request) => write!(f, "the last request is missing: {request}")?,
                Problem::IdentifiersMissing(ids) => write!(f, "identifiers are missing: {}", ids.join(", "))?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for AuditFailure {}

/// Holds a summary against what it replaces.
///
/// # Errors
/// Every problem found: empty, too long, a refusal, the last request not named, identifiers lost.
pub fn audit(summary: &str, source: &AuditSource<'_>) -> Result<(), AuditFailure> {
    let mut problems = Vec::new();
    if summary.trim().is_empty() {
        return Err(AuditFailure {
            problems: vec![Problem::Empty],
        });
    }
    let limit = source.tokens.max(MIN_LIMIT_TOKENS);
    if source.summary_tokens > limit {
        problems.push(Problem::TooLong {
            tokens: source.summary_tokens,
            limit,
        });
    }
    if is_refusal(summary) {
        problems.push(Problem::Refusal);
    }
    if let Some(request) = last_request(source.messages)
        && !names(summary, &request)
    {
        problems.push(Problem::LastRequestMissing(request.chars().take(200).collect()));
    }
    let missing: Vec<String> = required_identifiers(source.messages)
        .into_iter()
        .filter(|id| !summary.contains(id.as_str()))
        .collect();
    if !missing.is_empty() {
        problems.push(Problem::IdentifiersMissing(missing));
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(AuditFailure { problems })
    }
}

/// The identifiers that a summary of these messages must keep: the newest of the recent messages, oldest first.
#[must_use]
pub fn required_identifiers(messages: &[&Message]) -> Vec<String> {
    let recent = &messages[messages.len().saturating_sub(RECENT_MESSAGES)..];
    let mut seen = HashSet::new();
    let mut newest: Vec<String> = recent
        .iter()
        .rev()
        .flat_map(|message| identifiers(&spoken(message)).into_iter().rev())
        .filter(|id| seen.insert(id.clone()))
        .take(MAX_IDENTIFIERS)
        .collect();
    newest.reverse();
    newest
}

/// What people and the model wrote and the calls they made; results repeat too much that no one asked for.
fn spoken(message: &Message) -> String {
    let text = |part: &Part| match part {
        Part::Text { text } if message.role != Role::Tool => Some(text.clone()),
        Part::ToolCall(call) => Some(call.arguments.clone()),
        _ => None,
    };
    message
        .parts
        .iter()
        .filter_map(text)
        .collect::<Vec<_>>()
        .join("\n")
}

fn last_request(messages: &[&Message]) -> Option<String> {
    let requests = messages.iter().rev().filter(|message| message.role == Role::User);
    requests
        .map(|message| message.text())
        .find(|text| !text.trim().is_empty())
}

const REFUSALS: [&str; 12] = [
    "i'm sorry",
    "i am sorry",
    "sorry,",
    "i cannot",
    "i can't",
    "i can\u{2019}t",
    "i\u{2019}m sorry",
    "i am unable",
    "i'm unable",
    "as an ai",
    "抱歉",
    "对不起",
];

fn is_refusal(summary: &str) -> bool {
    let start = summary.trim_start().to_lowercase();
    REFUSALS.iter().any(|refusal| start.starts_with(refusal))
}

/// A request is named when the summary has at least a quarter of its words. Short words say little; where all
/// are short they count as well.
fn names(summary: &str, request: &str) -> bool {
    let summary = summary.to_lowercase();
    let request = request.to_lowercase();
    let all: HashSet<String> = words(&request);
    let long: HashSet<&String> = all.iter().filter(|word| word.len() > 3).collect();
    let wanted: Vec<&String> = if long.is_empty() {
        all.iter().collect()
    } else {
        long.into_iter().collect()
    };
    let found = wanted
        .iter()
        .filter(|word| summary.contains(word.as_str()))
        .count();
    found * 4 >= wanted.len()
}

/// Words of scripts with spaces, and pairs of neighbours in scripts without.
fn words(text: &str) -> HashSet<String> {
    let mut words = HashSet::new();
    for word in text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
    {
        if word.is_ascii() {
            words.insert(word.to_owned());
            continue;
        }
        let letters: Vec<char> = word.chars().collect();
        if letters.len() < 3 || letters.iter().any(|letter| u32::from(*letter) < 0x2e80) {
            words.insert(word.to_owned());
        } else {
            words.extend(letters.windows(2).map(|pair| pair.iter().collect::<String>()));
        }
    }
    words
}
