//! Tool ids and names in the alphabet of a provider.
//!
//! Providers want the ids of one request to be different; transcripts repeat them. A legal id keeps its form
//! where it comes first; others become a short hash of the id and its number of occurrence. What follows
//! later in a request never changes an id before it.

use colloquy_types::message::{Message, ToolCall};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;

const HASH_CHARS: usize = 24;

/// What a provider takes as an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alphabet {
    /// `[A-Za-z0-9_-]`, so many at most.
    AtMost(usize),
    /// `call|item` in a transcript, of which `call` is the id: up to 64 of the same characters.
    Pair,
    /// Exactly nine letters or digits.
    Nine,
}

impl Alphabet {
    /// The id as it may be sent; none when it must be rewritten.
    fn legal(self, id: &str) -> Option<&str> {
        let legal = match self {
            Self::AtMost(max) => is_word(id, max).then_some(id),
            Self::Pair => Some(split_pair(id).0).filter(|call| is_word(call, 64)),
            Self::Nine => {
                Some(id).filter(|id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()))
            }
        };
        legal.filter(|id| !id.is_empty())
    }

    fn hashed(self, id: &str, occurrence: u32, salt: u32) -> String {
        let mut hash = Sha256::new();
        write!(hash, "{occurrence}:{salt}:{id}").expect("a hash takes all that is written to it");
        let digest = hash.finalize();
        if self == Self::Nine {
            return nine(&digest);
        }
        let mut hex = [0; HASH_CHARS];
        hex::encode_to_slice(&digest[..HASH_CHARS / 2], &mut hex).expect("two digits for each byte");
        ["call_", std::str::from_utf8(&hex).expect("digits are ASCII")].concat()
    }
}

/// A call that waits for its result.
#[derive(Debug)]
pub(super) struct Open<'a> {
    id: &'a str,
    /// The id in the request; empty where the provider gave none.
    pub wire: Cow<'a, str>,
    /// The tool's name as sent.
    pub name: Cow<'a, str>,
}

pub(super) struct Ids<'a> {
    alphabet: Alphabet,
    /// Ids of the transcript, by how often they were called, and ids that were sent.
    seen: HashMap<Cow<'a, str>, u32>,
    /// Calls of the newest assistant message, in call order.
    open: Vec<Open<'a>>,
}

impl<'a> Ids<'a> {
    pub(super) fn new(alphabet: Alphabet) -> Self {
        Self {
            alphabet,
            seen: HashMap::new(),
            open: Vec::new(),
        }
    }

    /// Forgets the calls of earlier messages; in a repaired view they have their results.
    pub(super) fn next_message(&mut self) {
        self.open.clear();
    }

    /// The next call as it is sent.
    pub(super) fn call(&mut self, call: &'a ToolCall) -> &Open<'a> {
        let wire = self.wire(&call.id);
        self.push(call, wire)
    }

    /// A call that the provider itself gave no id: its result has none either.
    pub(super) fn call_without_id(&mut self, call: &'a ToolCall) {
        self.push(call, Cow::Borrowed(""));
    }

    /// The call that this result follows.
    pub(super) fn result(&mut self, id: &str) -> Option<Open<'a>> {
        let at = self.open.iter().position(|open| open.id == id)?;
        Some(self.open.remove(at))
    }

    /// Whether the calls of a message can be sent under their own ids.
    pub(super) fn keeps(&self, message: &Message) -> bool {
        let mut sent: Vec<&str> = Vec::new();
        message.tool_calls().all(|call| {
            let legal = self.alphabet.legal(&call.id);
            let Some(id) = legal.filter(|id| !self.is_seen(&call.id) && !self.is_seen(id)) else {
                return false;
            };
            let is_new = !sent.contains(&id);
            sent.push(id);
            is_new
        })
    }

    fn is_seen(&self, id: &str) -> bool {
        self.seen.contains_key(id)
    }

    fn push(&mut self, call: &'a ToolCall, wire: Cow<'a, str>) -> &Open<'a> {
        self.open.push(Open {
            id: &call.id,
            wire,
            name: tool_name(&call.name),
        });
        &self.open[self.open.len() - 1]
    }

    fn wire(&mut self, id: &'a str) -> Cow<'a, str> {
        let count = self.seen.entry(Cow::Borrowed(id)).or_default();
        let occurrence = *count;
        *count += 1;
        if let Some(legal) = self.alphabet.legal(id) {
            let is_free = if legal == id {
                occurrence == 0
            } else {
                !self.is_seen(legal)
            };
            if is_free {
                self.seen.entry(Cow::Borrowed(legal)).or_insert(1);
                return Cow::Borrowed(legal);
            }
        }
        let mut salt = 0;
        loop {
            let hashed = self.alphabet.hashed(id, occurrence, salt);
            if !self.is_seen(&hashed) {
                self.seen.insert(Cow::Owned(hashed.clone()), 1);
                return Cow::Owned(hashed);
            }
            salt += 1;
        }
    }
}

/// The halves of a `call|item` id.
pub(super) fn split_pair(id: &str) -> (&str, Option<&str>) {
    id.split_once('|')
        .map_or((id, None), |(call, item)| (call, Some(item)))
}

/// `[A-Za-z0-9_-]{1,max}`.
pub(super) fn is_word(text: &str, max: usize) -> bool {
    (1..=max).contains(&text.len()) && text.bytes().all(is_word_byte)
}

/// A tool's name as the providers spell them: other characters become `_`, at most 64 of them.
pub(super) fn tool_name(name: &str) -> Cow<'_, str> {
    if is_word(name, 64) {
        return Cow::Borrowed(name);
    }
    let spelled = |c: char| {
        u8::try_from(c)
            .ok()
            .filter(|&byte| is_word_byte(byte))
            .map_or('_', char::from)
    };
    Cow::Owned(name.chars().map(spelled).take(64).collect())
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// Nine letters or digits out of a digest: 62⁹ of them.
fn nine(digest: &[u8]) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut number = digest
        .iter()
        .take(8)
        .fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
    let mut id = String::with_capacity(9);
    for _ in 0..9 {
        id.push(char::from(DIGITS[(number % 62) as usize]));
        number /= 62;
    }
    id
}
