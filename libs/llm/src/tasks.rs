//! The two things the product asks of a model, whoever does them.

use crate::ModelError;
use async_trait::async_trait;
use serde::Deserialize;

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
    /// The last request of a person in the range; a summary must name it. Empty = not known.
    pub last_request: String,
    /// Ids, URLs, paths and numbers that must stay as they are.
    pub identifiers: Vec<String>,
    /// Longest summary.
    pub max_tokens: u32,
}

#[async_trait]
pub trait Summariser: Send + Sync + 'static {
    /// The summary of everything up to the end of the chunk, in sections: goal and open requests, decisions and
    /// reasons, state of work and tasks, facts and constraints, exact identifiers, next steps.
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
    /// Names the line in a candidate; each line has its own.
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
    /// Numbers of the lines it was taken from: at least one, none twice, and either all untrusted or none.
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
