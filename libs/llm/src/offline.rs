//! A model that needs no key: extractive summaries that keep identifiers, facts by rules. Deterministic.

use crate::ModelError;
use crate::tasks::{Candidate, CandidateKind, Extractor, Line, Speaker, Summariser, SummaryRequest};
use async_trait::async_trait;

/// Characters that a token is taken for; on the safe side for scripts written densely.
const CHARS_PER_TOKEN: usize = 3;
/// Longest excerpt of one message.
const EXCERPT_CHARS: usize = 160;

pub struct Offline;

#[async_trait]
impl Summariser for Offline {
    async fn summarise(&self, request: &SummaryRequest) -> Result<String, ModelError> {
        let budget = (request.max_tokens as usize * CHARS_PER_TOKEN).max(600);
        Ok(summary(request, budget))
    }

    fn name(&self) -> &str {
        "offline"
    }

    fn window_tokens(&self) -> u32 {
        64_000
    }
}

/// Sections in the order of what may least be lost; what does not fit is cut from the excerpts, oldest first.
fn summary(request: &SummaryRequest, budget: usize) -> String {
    let mut head = String::from("Goal and open requests\n");
    if !request.last_request.is_empty() {
        head.push_str(&format!("- Last request: {}\n", cut(&request.last_request, 400)));
    }
    if !request.instructions.is_empty() {
        head.push_str(&format!("- Keep in view: {}\n", cut(&request.instructions, 200)));
    }
    let mut tail = String::new();
    let identifiers = identifiers(request, budget / 4);
    if !identifiers.is_empty() {
        tail.push_str(&format!("Exact identifiers\n- {}\n", identifiers.join(", ")));
    }
    let left = budget.saturating_sub(length(&head) + length(&tail) + 40);
    let earlier = earlier(&request.previous, left / 3);
    let excerpts = excerpts(&request.chunk, left.saturating_sub(length(&earlier)));
    let mut text = head;
    for (title, body) in [
        ("Facts and constraints", earlier),
        ("State of work and tasks", excerpts),
    ] {
        if !body.is_empty() {
            text.push_str(&format!("{title}\n{body}\n"));
        }
    }
    text.push_str(&tail);
    text.trim_end().to_owned()
}

/// Those asked for first, then those of the previous summary as far as they fit.
fn identifiers(request: &SummaryRequest, budget: usize) -> Vec<String> {
    let before = request
        .previous
        .lines()
        .skip_while(|line| *line != "Exact identifiers")
        .skip(1);
    let before = before
        .flat_map(|line| line.trim_start_matches("- ").split(", "))
        .map(str::to_owned);
    let mut kept: Vec<String> = request.identifiers.clone();
    let mut used: usize = kept.iter().map(|id| length(id) + 2).sum();
    for id in before {
        if !id.is_empty() && !kept.contains(&id) && used + length(&id) + 2 <= budget {
            used += length(&id) + 2;
            kept.push(id);
        }
    }
    kept
}

/// The lines of the previous summary, the newest first to be kept.
fn earlier(previous: &str, budget: usize) -> String {
    let lines: Vec<&str> = previous
        .lines()
        .take_while(|line| *line != "Exact identifiers")
        .filter(|line| line.starts_with("- ") && !line.starts_with("- Last request:"))
        .collect();
    newest_within(lines.into_iter().map(str::to_owned).collect(), budget)
}

fn excerpts(chunk: &[String], budget: usize) -> String {
    // What people and the agent said tells more than what tools printed.
    let spoken = |line: &&String| !line.starts_with("tool: ");
    newest_within(
        chunk
            .iter()
            .filter(spoken)
            .map(|line| format!("- {}", cut(line, EXCERPT_CHARS)))
            .collect(),
        budget,
    )
}

fn newest_within(lines: Vec<String>, budget: usize) -> String {
    let mut used = 0;
    let mut kept: Vec<String> = lines
        .into_iter()
        .rev()
        .take_while(|line| {
            used += length(line) + 1;
            used <= budget
        })
        .collect();
    kept.reverse();
    kept.join("\n")
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// The first characters on one line.
fn cut(text: &str, chars: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if length(&line) <= chars {
        line
    } else {
        format!("{}…", line.chars().take(chars).collect::<String>())
    }
}

/// Words that give a fact away, and its kind. Longer phrases first where one contains another.
const RULES: [(&str, CandidateKind, f32); 26] = [
    ("my name is ", CandidateKind::Profile, 0.9),
    ("i live in ", CandidateKind::Profile, 0.8),
    ("i work at ", CandidateKind::Profile, 0.7),
    ("i work for ", CandidateKind::Profile, 0.7),
    ("i am a ", CandidateKind::Profile, 0.5),
    ("i run the ", CandidateKind::Profile, 0.6),
    ("my birthday is ", CandidateKind::Profile, 0.8),
    ("i'm allergic to ", CandidateKind::Profile, 0.9),
    ("i am allergic to ", CandidateKind::Profile, 0.9),
    ("i prefer ", CandidateKind::Preference, 0.8),
    ("i like ", CandidateKind::Preference, 0.6),
    ("i don't like ", CandidateKind::Preference, 0.6),
    ("i hate ", CandidateKind::Preference, 0.6),
    ("please always ", CandidateKind::Preference, 0.8),
    ("please never ", CandidateKind::Preference, 0.8),
    ("call me ", CandidateKind::Preference, 0.7),
    ("we decided ", CandidateKind::Decision, 0.8),
    ("i decided ", CandidateKind::Decision, 0.7),
    ("we agreed ", CandidateKind::Decision, 0.8),
    ("remember that ", CandidateKind::Knowledge, 0.9),
    ("don't forget ", CandidateKind::Task, 0.7),
    ("remind me ", CandidateKind::Task, 0.7),
    ("the deadline is ", CandidateKind::Event, 0.8),
    ("名前は", CandidateKind::Profile, 0.8),
    ("好きです", CandidateKind::Preference, 0.6),
    ("覚えて", CandidateKind::Knowledge, 0.8),
];

#[async_trait]
impl Extractor for Offline {
    async fn extract(&self, lines: &[Line]) -> Result<Vec<Candidate>, ModelError> {
        let told = lines.iter().filter(|line| line.speaker != Speaker::Agent);
        Ok(told
            .flat_map(|line| {
                sentences(&line.text)
                    .into_iter()
                    .filter_map(|text| fact(&text, line))
            })
            .collect())
    }

    fn strategy(&self) -> &str {
        "rules-1"
    }
}

fn fact(sentence: &str, line: &Line) -> Option<Candidate> {
    let lower = sentence.to_lowercase();
    let (_, kind, importance) = RULES.into_iter().find(|(words, ..)| begins_word(&lower, words))?;
    let who = if line.name.is_empty() {
        String::new()
    } else {
        format!("{}: ", line.name)
    };
    Some(Candidate {
        text: cut(&format!("{who}{sentence}"), 300),
        kind,
        importance,
        confidence: if line.speaker == Speaker::Person { 0.8 } else { 0.3 },
        lines: vec![line.number],
    })
}

/// Whether the words stand in the text, not in the middle of another word.
fn begins_word(text: &str, words: &str) -> bool {
    text.match_indices(words).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        !words.is_ascii() || before.is_none_or(|c| !c.is_alphanumeric())
    })
}

/// Sentences of at most 400 characters; questions state nothing.
fn sentences(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut current = String::new();
    for c in text.chars().chain(['\n']) {
        if matches!(c, '\n' | '!' | '?' | '。' | '！' | '？')
            || (c == '.' && !current.ends_with(|d: char| d.is_ascii_digit()))
        {
            let sentence = current.trim().trim_end_matches('.').to_owned();
            let asks = matches!(c, '?' | '？');
            if !sentence.is_empty() && !asks && sentence.chars().count() <= 400 {
                found.push(sentence);
            }
            current.clear();
        } else {
            current.push(c);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(speaker: Speaker, text: &str) -> Line {
        Line {
            number: 1,
            speaker,
            name: "Mara".into(),
            text: text.into(),
        }
    }

    #[tokio::test]
    async fn facts_are_found_and_questions_are_not() {
        let lines = [
            line(
                Speaker::Person,
                "Hello! My name is Mara Lindqvist. Do I prefer tea? I prefer reports before 07:00.",
            ),
            line(Speaker::Agent, "I prefer to help you."),
            line(Speaker::Person, "Where is it? It is late."),
        ];
        let found = Offline.extract(&lines).await.unwrap();
        let texts: Vec<&str> = found.iter().map(|candidate| candidate.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "Mara: My name is Mara Lindqvist",
                "Mara: I prefer reports before 07:00"
            ]
        );
    }

    #[tokio::test]
    async fn a_summary_is_bounded_and_keeps_what_it_must() {
        let mut previous = String::new();
        for round in 0..10 {
            let request = SummaryRequest {
                previous: previous.clone(),
                chunk: (0..60)
                    .map(|n| format!("Mara: message {n} of round {round} {}", "x".repeat(300)))
                    .collect(),
                last_request: format!("Please check order HB-{round}"),
                identifiers: vec![format!("ID-90000{round}"), "https://example.org/a/b".into()],
                max_tokens: 500,
                ..SummaryRequest::default()
            };
            previous = Offline.summarise(&request).await.unwrap();
            assert!(previous.chars().count() <= 1_500, "{}", previous.chars().count());
            assert!(
                previous.contains(&format!("ID-90000{round}"))
                    && previous.contains("https://example.org/a/b")
            );
            assert!(previous.contains(&format!("order HB-{round}")));
        }
        assert!(
            previous.contains("ID-900000"),
            "earlier identifiers are carried: {previous}"
        );
    }
}
