//! Both tasks by prompting a chat model.

use crate::prompts;
use crate::size::tenths;
use crate::tasks::{Candidate, Extractor, Line, Speaker, Summariser, SummaryRequest};
use crate::{ChatRequest, JsonSchema, Model, ModelError, Turn};
use async_trait::async_trait;
use serde::Deserialize;
use std::sync::Arc;

/// Longest answer of an extraction, and the longest lines that are read in one: more facts would not fit the answer.
const EXTRACT_ANSWER: u32 = 4_000;
const EXTRACT_TOKENS: usize = 8_000;
/// Longest text of a candidate, in characters.
const MAX_TEXT: usize = 1_000;

pub struct Prompted {
    model: Arc<dyn Model>,
}

impl Prompted {
    /// The model keeps deadlines and retries itself.
    pub fn new(model: Arc<dyn Model>) -> Self {
        Self { model }
    }

    /// One call for lines that fit it.
    async fn read(&self, lines: &[&Line]) -> Result<Vec<Candidate>, ModelError> {
        let request = ChatRequest {
            system: prompts::EXTRACT.to_owned(),
            turns: vec![Turn::user(prompts::lines(lines))],
            max_tokens: EXTRACT_ANSWER,
            temperature: Some(0.0),
            json_schema: Some(JsonSchema {
                name: "memories".into(),
                schema: prompts::memories_schema(),
            }),
            deadline: None,
        };
        let reply = self.model.chat(&request).await?;
        if reply.truncated {
            return Err(ModelError::Malformed("the list of memories was cut off".into()));
        }
        let found = parse(&reply.text)?;
        Ok(found
            .into_iter()
            .filter_map(|candidate| usable(candidate, lines))
            .collect())
    }
}

#[async_trait]
impl Summariser for Prompted {
    async fn summarise(&self, request: &SummaryRequest) -> Result<String, ModelError> {
        let chat = ChatRequest {
            system: prompts::SUMMARISE.to_owned(),
            turns: vec![Turn::user(prompts::summary(request))],
            max_tokens: request.max_tokens,
            ..ChatRequest::default()
        };
        Ok(self.model.chat(&chat).await?.text)
    }

    fn name(&self) -> &str {
        self.model.name()
    }

    fn window_tokens(&self) -> u32 {
        self.model.window_tokens()
    }
}

#[async_trait]
impl Extractor for Prompted {
    /// Untrusted lines are read apart from the others: what they say cannot be laid to a person's line.
    async fn extract(&self, lines: &[Line]) -> Result<Vec<Candidate>, ModelError> {
        let most = EXTRACT_TOKENS.min(self.model.window_tokens() as usize / 2);
        let (untrusted, others): (Vec<&Line>, Vec<&Line>) =
            lines.iter().partition(|line| line.speaker == Speaker::Untrusted);
        let mut found = Vec::new();
        for apart in [others, untrusted] {
            for batch in batches(&apart, most) {
                found.extend(self.read(batch).await?);
            }
        }
        Ok(found)
    }

    fn strategy(&self) -> &str {
        "model-1"
    }
}

/// Neighbouring lines that together have at most so many tokens; a longer line is alone.
fn batches<'a, 'b>(lines: &'a [&'b Line], most: usize) -> Vec<&'a [&'b Line]> {
    let mut batches = Vec::new();
    let (mut start, mut used) = (0, 0);
    for (at, line) in lines.iter().enumerate() {
        let size = tenths(&line.text) / 10 + 10;
        if at > start && used + size > most {
            batches.push(&lines[start..at]);
            (start, used) = (at, 0);
        }
        used += size;
    }
    if start < lines.len() {
        batches.push(&lines[start..]);
    }
    batches
}

#[derive(Deserialize)]
struct Extracted {
    memories: Vec<Candidate>,
}

/// The JSON object; models without a schema like to put a fence around it.
fn parse(answer: &str) -> Result<Vec<Candidate>, ModelError> {
    let json = answer
        .trim()
        .trim_start_matches("```json")
        .trim_start_matches("```")
        .trim_end_matches("```");
    let extracted: Extracted = serde_json::from_str(json).map_err(|error| {
        // The place alone: the error's own words quote the answer.
        ModelError::Malformed(format!(
            "not a list of memories, from column {} on",
            error.column()
        ))
    })?;
    Ok(extracted.memories)
}

/// The candidate with its numbers in range and its lines among those read; without any line it has no provenance
/// and is left out.
fn usable(mut candidate: Candidate, lines: &[&Line]) -> Option<Candidate> {
    candidate.lines.sort_unstable();
    candidate.lines.dedup();
    candidate
        .lines
        .retain(|number| lines.iter().any(|line| line.number == *number));
    candidate.text = candidate.text.trim().to_owned();
    let fits = (1..=MAX_TEXT).contains(&candidate.text.chars().count());
    if !fits || candidate.lines.is_empty() {
        tracing::debug!("a memory without text or source is left out");
        return None;
    }
    candidate.importance = candidate.importance.clamp(0.0, 1.0);
    candidate.confidence = candidate.confidence.clamp(0.0, 1.0);
    Some(candidate)
}
