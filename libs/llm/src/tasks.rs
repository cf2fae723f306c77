//! The two things the product asks of a model.

use crate::prompts;
use crate::retry::Retry;
use crate::{ChatRequest, Model, ModelError};
use async_trait::async_trait;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// A chunk of a conversation to be summarised.
#[derive(Debug, Clone, Default)]
pub struct SummaryRequest {
    /// What stands for everything before; empty at the start.
    pub previous: String,
    /// The messages, rendered as `speaker: text`.
    pub chunk: Vec<String>,
    /// What the summary should keep in view; empty without.
    pub instructions: String,
    /// What an earlier attempt left out; empty at the first.
    pub missing: String,
    /// The last request of a person in the range; a summary must name it.
    pub last_request: String,
    /// Ids, URLs, paths and numbers that must stay as they are.
    pub identifiers: Vec<String>,
    pub max_tokens: u32,
}

#[async_trait]
pub trait Summariser: Send + Sync + 'static {
    /// The summary of everything up to the end of the chunk.
    ///
    /// # Errors
    /// See [`ModelError`].
    async fn summarise(&self, request: &SummaryRequest) -> Result<String, ModelError>;

    /// For the entry and the job.
    fn name(&self) -> &str;

    /// Its window, which chunks are sized for.
    fn window_tokens(&self) -> u32;
}

/// Whose words a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    Person,
    Agent,
    /// Tool output, forwarded text.
    Untrusted,
}

/// A line to look for facts in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Names the line in a candidate.
    pub number: usize,
    pub speaker: Speaker,
    /// The person's name, if known.
    pub name: String,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CandidateKind {
    Preference,
    Profile,
    Decision,
    Event,
    Task,
    Knowledge,
}

/// Something worth remembering, before it is held against what is known.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Candidate {
    pub text: String,
    pub kind: CandidateKind,
    /// 0 to 1.
    #[serde(default = "half")]
    pub importance: f32,
    /// 0 to 1.
    #[serde(default = "half")]
    pub confidence: f32,
    /// Numbers of the lines it was taken from.
    #[serde(default)]
    pub lines: Vec<usize>,
}

fn half() -> f32 {
    0.5
}

#[async_trait]
pub trait Extractor: Send + Sync + 'static {
    /// Facts in the lines.
    ///
    /// # Errors
    /// See [`ModelError`].
    async fn extract(&self, lines: &[Line]) -> Result<Vec<Candidate>, ModelError>;

    /// Version of the strategy: another one reads everything again.
    fn strategy(&self) -> &str;
}

/// Both tasks by prompting a chat model.
pub struct Prompted {
    model: Arc<dyn Model>,
    window_tokens: u32,
    retry: Retry,
    limit: Duration,
}

impl Prompted {
    pub fn new(model: Arc<dyn Model>, window_tokens: u32, retry: Retry, limit: Duration) -> Self {
        Self {
            model,
            window_tokens,
            retry,
            limit,
        }
    }

    async fn chat(&self, request: &ChatRequest) -> Result<String, ModelError> {
        let calls = self.retry.call(|| self.model.chat(request));
        tokio::time::timeout(self.limit, calls)
            .await
            .map_err(|_| ModelError::Deadline)?
    }
}

#[async_trait]
impl Summariser for Prompted {
    async fn summarise(&self, request: &SummaryRequest) -> Result<String, ModelError> {
        let chat = ChatRequest {
            system: prompts::SUMMARISE.to_owned(),
            user: prompts::summary(request),
            max_tokens: request.max_tokens,
            json: false,
        };
        self.chat(&chat).await
    }

    fn name(&self) -> &str {
        self.model.name()
    }

    fn window_tokens(&self) -> u32 {
        self.window_tokens
    }
}

#[derive(Deserialize)]
struct Extracted {
    memories: Vec<Candidate>,
}

#[async_trait]
impl Extractor for Prompted {
    async fn extract(&self, lines: &[Line]) -> Result<Vec<Candidate>, ModelError> {
        let chat = ChatRequest {
            system: prompts::EXTRACT.to_owned(),
            user: prompts::lines(lines),
            max_tokens: 2_000,
            json: true,
        };
        let answer = self.chat(&chat).await?;
        let json = answer
            .trim()
            .trim_start_matches("```json")
            .trim_start_matches("```")
            .trim_end_matches("```");
        let extracted: Extracted =
            serde_json::from_str(json).map_err(|error| ModelError::Malformed(error.to_string()))?;
        let usable = |candidate: &Candidate| {
            !candidate.text.trim().is_empty()
                && candidate.text.chars().count() <= 1_000
                && (0.0..=1.0).contains(&candidate.importance)
                && (0.0..=1.0).contains(&candidate.confidence)
        };
        Ok(extracted.memories.into_iter().filter(usable).collect())
    }

    fn strategy(&self) -> &str {
        "model-1"
    }
}
