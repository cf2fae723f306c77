//! Settings of a model.

use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// Extractive summaries and rule-based facts; no key, no network.
    #[default]
    Offline,
    /// Any OpenAI-compatible API.
    Openai,
    Anthropic,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    pub provider: Provider,
    /// Without a trailing slash; empty = the provider's own.
    pub base_url: String,
    /// Model name; required for a provider.
    pub name: String,
    /// Embedding model name; empty = no embeddings.
    pub embedding_name: String,
    pub api_key: String,
    /// The summary model's window in tokens.
    pub window_tokens: u32,
    /// One call takes at most this long, retries included, in seconds.
    pub timeout_s: u64,
    /// Attempts of one call.
    pub attempts: u32,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            provider: Provider::Offline,
            base_url: String::new(),
            name: String::new(),
            embedding_name: String::new(),
            api_key: String::new(),
            window_tokens: 32_000,
            timeout_s: 120,
            attempts: 4,
        }
    }
}

impl ModelConfig {
    /// With the key blanked.
    #[must_use]
    pub fn redacted(&self) -> Self {
        let api_key = if self.api_key.is_empty() {
            String::new()
        } else {
            "********".into()
        };
        Self {
            api_key,
            ..self.clone()
        }
    }
}

impl fmt::Debug for ModelConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelConfig")
            .field("provider", &self.provider)
            .field("base_url", &self.base_url)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
