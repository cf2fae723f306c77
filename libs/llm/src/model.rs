//! One call of a chat model, whatever provider is behind it.

use crate::ModelError;
use async_trait::async_trait;
use serde_json::Value;
use std::time::Duration;

/// A chat model behind an API.
#[async_trait]
pub trait Model: Send + Sync + 'static {
    /// The answer to the last turn.
    ///
    /// # Errors
    /// Classified, see [`ModelError`].
    async fn chat(&self, request: &ChatRequest) -> Result<ChatReply, ModelError>;

    /// One vector per text, in order.
    ///
    /// # Errors
    /// Classified; `Unsupported` where the provider has no embeddings or none are configured.
    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError>;

    /// The provider's name of the model.
    fn name(&self) -> &str;

    /// Tokens that instructions, turns and answer may have together.
    fn window_tokens(&self) -> u32;
}

/// What a model is asked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChatRequest {
    /// Instructions; empty without.
    pub system: String,
    /// The first and the last are the user's.
    pub turns: Vec<Turn>,
    /// Longest answer.
    pub max_tokens: u32,
    /// 0 to 1; the provider's default without.
    pub temperature: Option<f32>,
    /// The answer is to be one JSON object of this shape.
    pub json_schema: Option<JsonSchema>,
    /// Longest time, retries included; the configured one without.
    pub deadline: Option<Duration>,
}

/// A shape that an answer is asked in.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonSchema {
    /// `[a-zA-Z0-9_-]{1,64}`.
    pub name: String,
    /// A JSON Schema whose top is an object; every property required, none additional.
    pub schema: Value,
}

/// Who said a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    User,
    Assistant,
}

impl Speaks {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    pub speaks: Speaks,
    pub text: String,
}

impl Turn {
    pub fn user(text: impl Into<String>) -> Self {
        Self {
            speaks: Speaks::User,
            text: text.into(),
        }
    }

    pub fn assistant(text: impl Into<String>) -> Self {
        Self {
            speaks: Speaks::Assistant,
            text: text.into(),
        }
    }
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatReply {
    /// Never blank; the JSON object as text where a schema was given.
    pub text: String,
    /// Whether the answer was cut at its longest.
    pub truncated: bool,
    /// What the provider counted, where it says so.
    pub input_tokens: Option<u32>,
    pub output_tokens: Option<u32>,
}
