//! Settings of a model.

use crate::ModelError;
use colloquy_types::redact::{blanked, redacted_url};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Longest time that one call may be given.
const LONGEST_S: u64 = 3_600;
/// Smallest window that a prompt, a chunk and an answer find room in.
const LEAST_WINDOW: u32 = 2_000;

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
    /// With the key blanked, and a password in the URL.
    #[must_use]
    pub fn redacted(&self) -> Self {
        Self {
            api_key: blanked(&self.api_key),
            base_url: redacted_url(&self.base_url),
            ..self.clone()
        }
    }

    /// Longest time of one call.
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_s)
    }

    /// # Errors
    /// `Unsupported` with the setting that cannot work.
    pub(crate) fn validate(&self) -> Result<(), ModelError> {
        let wrong = if !(1..=LONGEST_S).contains(&self.timeout_s) {
            format!("`model.timeout_s` must be 1 to {LONGEST_S}")
        } else if !(1..=20).contains(&self.attempts) {
            "`model.attempts` must be 1 to 20".to_owned()
        } else if self.window_tokens < LEAST_WINDOW {
            format!("`model.window_tokens` must be at least {LEAST_WINDOW}")
        } else {
            return Ok(());
        };
        Err(ModelError::Unsupported(wrong))
    }
}

impl fmt::Debug for ModelConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.redacted();
        f.debug_struct("ModelConfig")
            .field("provider", &shown.provider)
            .field("base_url", &shown.base_url)
            .field("name", &shown.name)
            .field("embedding_name", &shown.embedding_name)
            .field("api_key", &shown.api_key)
            .field("window_tokens", &shown.window_tokens)
            .field("timeout_s", &shown.timeout_s)
            .field("attempts", &shown.attempts)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_shown_nowhere() {
        let config = ModelConfig {
            api_key: "sk-secret".into(),
            base_url: "https://me:secret@models.example/v1".into(),
            ..ModelConfig::default()
        };
        let shown = format!(
            "{config:?} {}",
            serde_json::to_string(&config.redacted()).unwrap()
        );
        assert!(!shown.contains("secret"), "{shown}");
        assert!(shown.contains("@models.example/v1"));
    }

    #[test]
    fn an_unknown_setting_is_an_error() {
        assert!(serde_json::from_str::<ModelConfig>(r#"{"nme":"x"}"#).is_err());
        assert!(serde_json::from_str::<ModelConfig>(r#"{"provider":"openai"}"#).is_ok());
    }

    #[test]
    fn what_cannot_work_names_its_setting() {
        let config = ModelConfig {
            timeout_s: 0,
            ..ModelConfig::default()
        };
        assert!(
            config
                .validate()
                .unwrap_err()
                .to_string()
                .contains("model.timeout_s")
        );
    }
}
