//! Byte-pair merging over a ranked vocabulary: of all adjacent pairs whose bytes together are a token, the one with the
//! lowest rank merges first, the leftmost of equals.
//!
//! A heap of candidates over a linked list, so that a piece of n bytes costs about n log n whatever it consists of.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

/// Multiplies eight bytes at a time. The keys are a fixed vocabulary, so nobody can choose colliding ones.
#[derive(Debug, Default)]
pub(super) struct Mix(u64);

impl Mix {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.add(u64::from_le_bytes(*word));
        }
        let tail = rest.iter().fold(0, |tail, &byte| tail << 8 | u64::from(byte));
        self.add(tail);
    }

    fn write_usize(&mut self, length: usize) {
        self.add(length as u64);
    }

    fn finish(&self) -> u64 {
        // The table takes its index from the high bits and its tag from the low ones.
        self.0 ^ self.0 >> 32
    }
}

/// Tokens and their ranks.
#[derive(Debug)]
pub(super) struct Vocabulary {
    ranks: HashMap<&'static [u8], u32, BuildHasherDefault<Mix>>,
    /// Bytes of the longest token.
    longest: usize,
}

impl Vocabulary {
    /// The tokens in the order of their ranks. Every single byte must be one.
    pub(super) fn new(tokens: impl Iterator<Item = &'static [u8]>) -> Self {
        let mut ranks = HashMap::with_capacity_and_hasher(1 << 16, BuildHasherDefault::default());
        ranks.extend(tokens.zip(0..));
        let longest = ranks.keys().map(|token| token.len()).max().unwrap_or(0);
        Self { ranks, longest }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.ranks.len()
    }

    fn rank(&self, bytes: &[u8]) -> Option<u32> {
        if bytes.len() > self.longest {
            return None;
        }
        self.ranks.get(bytes).copied()
    }
}

/// No pair starts here.
const NONE: u32 = u32::MAX;

/// Counts the tokens of pieces, keeping its buffers from one to the next.
pub(super) struct Merger<'v> {
    vocabulary: &'v Vocabulary,
    /// Pairs that would merge: the rank in the upper half, where the pair starts in the lower.
    candidates: BinaryHeap<Reverse<u64>>,
    /// Where the part that starts here ends.
    ends: Vec<u32>,
    /// Where the part before the one that starts here starts.
    befores: Vec<u32>,
    /// The rank of the pair that starts here; an older candidate has another.
    ranks: Vec<u32>,
}

impl<'v> Merger<'v> {
    pub(super) fn new(vocabulary: &'v Vocabulary) -> Self {
        Self {
            vocabulary,
            candidates: BinaryHeap::new(),
            ends: Vec::new(),
            befores: Vec::new(),
            ranks: Vec::new(),
        }
    }

    /// Tokens of a piece.
    ///
    /// # Panics
    /// For a piece of 4 GiB and more; a stored message is far smaller.
    pub(super) fn count(&mut self, piece: &[u8]) -> usize {
        if piece.len() < 2 || self.vocabulary.rank(piece).is_some() {
            return usize::from(!piece.is_empty());
        }
        self.start(piece);
        let mut parts = piece.len();
        while let Some(Reverse(candidate)) = self.candidates.pop() {
            let [rank, first] = halves(candidate);
            if self.ranks[first as usize] == rank {
                self.merge(piece, first);
                parts -= 1;
            }
        }
        parts
    }

    /// Every byte is a part, every two neighbours that are a token a candidate.
    fn start(&mut self, piece: &[u8]) {
        let length = u32::try_from(piece.len()).expect("a piece is shorter than 4 GiB");
        self.ends.clear();
        self.ends.extend(1..=length);
        self.befores.clear();
        self.befores.extend((0..length).map(|at| at.saturating_sub(1)));
        self.ranks.clear();
        self.ranks.resize(piece.len(), NONE);
        let mut pairs = std::mem::take(&mut self.candidates).into_vec();
        pairs.clear();
        for (at, pair) in piece.windows(2).enumerate() {
            if let Some(rank) = self.vocabulary.rank(pair) {
                self.ranks[at] = rank;
                pairs.push(Reverse(u64::from(rank) << 32 | at as u64));
            }
        }
        // All at once is linear.
        self.candidates = BinaryHeap::from(pairs);
    }

    fn merge(&mut self, piece: &[u8], first: u32) {
        let second = self.ends[first as usize];
        let end = self.ends[second as usize];
        self.ends[first as usize] = end;
        self.ranks[second as usize] = NONE;
        if (end as usize) < piece.len() {
            self.befores[end as usize] = first;
        }
        self.offer(piece, first);
        if first > 0 {
            self.offer(piece, self.befores[first as usize]);
        }
    }

    /// Notes whether the part that starts here and the next may merge.
    fn offer(&mut self, piece: &[u8], first: u32) {
        let second = self.ends[first as usize] as usize;
        let end = self.ends.get(second);
        let pair = end.and_then(|&end| self.vocabulary.rank(&piece[first as usize..end as usize]));
        self.ranks[first as usize] = pair.unwrap_or(NONE);
        if let Some(rank) = pair {
            self.candidates
                .push(Reverse(u64::from(rank) << 32 | u64::from(first)));
        }
    }
}

#[allow(clippy::cast_possible_truncation, reason = "halves of 64 bits have 32")]
fn halves(candidate: u64) -> [u32; 2] {
    [(candidate >> 32) as u32, candidate as u32]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(tokens: &[&'static str], piece: &str) -> usize {
        let vocabulary = Vocabulary::new(tokens.iter().map(|token| token.as_bytes()));
        Merger::new(&vocabulary).count(piece.as_bytes())
    }

    #[test]
    fn the_lowest_rank_merges_first_and_the_leftmost_of_equals() {
        let tokens = ["a", "b", "c", "bc", "ab", "aa"];
        assert_eq!(count(&tokens, "abc"), 2, "a|bc, not ab|c");
        assert_eq!(count(&tokens, "aaa"), 2);
        assert_eq!(count(&tokens, "aaaa"), 2);
        assert_eq!(count(&tokens, ""), 0);
        assert_eq!(count(&tokens, "c"), 1);
    }

    #[test]
    fn a_merged_part_merges_on() {
        let tokens = ["a", "b", "ab", "abab", "ababab"];
        assert_eq!(count(&tokens, "abab"), 1);
        assert_eq!(count(&tokens, "ababab"), 1, "a token as a whole");
        assert_eq!(count(&tokens, "abababab"), 2, "abab|abab");
    }
}
