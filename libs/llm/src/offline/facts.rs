//! Facts by rules.

use super::rules::kind_of;
use super::sentences::statements;
use crate::tasks::{Candidate, Line, Speaker};
use std::collections::HashSet;

/// Longest text of a fact, in characters.
const LONGEST: usize = 300;

/// What people and untrusted text state; what the agent says of itself is no fact. Repetitions count once a speaker.
pub fn facts(lines: &[Line]) -> Vec<Candidate> {
    let mut seen = HashSet::new();
    let told = lines.iter().filter(|line| line.speaker != Speaker::Agent);
    told.flat_map(|line| {
        statements(&line.text)
            .into_iter()
            .filter_map(|sentence| fact(sentence, line))
    })
    .filter(|fact| seen.insert((fact.text.to_lowercase(), fact.confidence.to_bits())))
    .collect()
}

fn fact(sentence: &str, line: &Line) -> Option<Candidate> {
    let (kind, importance) = kind_of(sentence)?;
    let sentence = sentence.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = if line.name.is_empty() || line.speaker == Speaker::Untrusted {
        sentence
    } else {
        format!("{}: {sentence}", line.name)
    };
    Some(Candidate {
        text: text.chars().take(LONGEST).collect(),
        kind,
        importance,
        confidence: if line.speaker == Speaker::Person { 0.8 } else { 0.3 },
        lines: vec![line.number],
    })
}
