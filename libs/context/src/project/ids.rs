//! Tool ids and names in the alphabet of a provider.
//!
//! Providers want the ids of one request to be different; transcripts repeat them. A legal id keeps its form
//! where it comes first; others become a short hash of the id and its number of occurrence. What follows
//! later in a request never changes an id before it.

use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet, VecDeque};

const HASH_CHARS: usize = 24;

pub(super) struct Ids {
    max: usize,
    used: HashSet<String>,
    occurrences: HashMap<String, u32>,
    /// Calls of the newest assistant message that wait for their result.
    open: HashMap<String, VecDeque<String>>,
}

impl Ids {
    /// Ids of at most `max` characters.
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            used: HashSet::new(),
            occurrences: HashMap::new(),
            open: HashMap::new(),
        }
    }

    /// Forgets the calls of earlier messages; in a repaired view they have their results.
    pub(super) fn next_message(&mut self) {
        self.open.clear();
    }

    /// The id of the next call with this original id.
    pub(super) fn call(&mut self, id: &str) -> String {
        let seen = self.occurrences.entry(id.to_owned()).or_default();
        let occurrence = *seen;
        *seen += 1;
        let keeps = occurrence == 0 && self.is_legal(id);
        let mut rendered = if keeps {
            id.to_owned()
        } else {
            hashed(id, occurrence, 0)
        };
        let mut salt = 0;
        while !self.used.insert(rendered.clone()) {
            salt += 1;
            rendered = hashed(id, occurrence, salt);
        }
        self.open
            .entry(id.to_owned())
            .or_default()
            .push_back(rendered.clone());
        rendered
    }

    /// The id of the call that this result follows.
    pub(super) fn result(&mut self, id: &str) -> Option<String> {
        self.open.get_mut(id)?.pop_front()
    }

    /// Whether the next call with this id keeps it.
    pub(super) fn is_fresh(&self, id: &str) -> bool {
        self.is_legal(id) && !self.occurrences.contains_key(id) && !self.used.contains(id)
    }

    fn is_legal(&self, id: &str) -> bool {
        !id.is_empty() && id.len() <= self.max && id.bytes().all(is_id_byte)
    }
}

/// A tool's name as the providers spell them: other characters become `_`, at most 64 of them.
pub(super) fn tool_name(name: &str) -> String {
    name.chars()
        .map(|c| {
            if c.is_ascii() && is_id_byte(c as u8) {
                c
            } else {
                '_'
            }
        })
        .take(64)
        .collect()
}

fn is_id_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

fn hashed(id: &str, occurrence: u32, salt: u32) -> String {
    let digest = Sha256::digest(format!("{occurrence}:{salt}:{id}"));
    format!("call_{}", &hex::encode(digest)[..HASH_CHARS])
}
