//! Settings of a model.

use crate::ModelError;
use colloquy_types::Error;
use colloquy_types::redact::{blanked, redacted_url};
use reqwest::header::HeaderValue;
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

    /// What cannot work, by setting below `model`.
    pub fn problems(&self) -> Vec<Error> {
        let mut problems = Vec::new();
        let mut unless = |good: bool, setting: &str, message: String| {
            if !good {
                problems.push(Error::invalid(setting, message));
            }
        };
        unless(
            (1..=LONGEST_S).contains(&self.timeout_s),
            "timeout_s",
            format!("must be 1 to {LONGEST_S}"),
        );
        unless(
            (1..=20).contains(&self.attempts),
            "attempts",
            "must be 1 to 20".into(),
        );
        unless(
            self.window_tokens >= LEAST_WINDOW,
            "window_tokens",
            format!("must be at least {LEAST_WINDOW}"),
        );
        if self.provider == Provider::Offline {
            return problems;
        }
        unless(
            !self.name.is_empty(),
            "name",
            "is needed: the provider has many models".into(),
        );
        unless(
            self.base_url.is_empty() || is_http(&self.base_url),
            "base_url",
            format!(
                "`{}` is not http://host or https://host",
                redacted_url(&self.base_url)
            ),
        );
        // Servers on one's own machine often want no key; the providers themselves do.
        let keyless = self.provider == Provider::Openai && !self.base_url.is_empty();
        unless(
            keyless || !self.api_key.is_empty(),
            "api_key",
            "is needed for this provider".into(),
        );
        unless(
            HeaderValue::from_str(&self.api_key).is_ok(),
            "api_key",
            "has characters that no key has".into(),
        );
        problems
    }

    /// # Errors
    /// `Unsupported` with the first setting that cannot work.
    pub(crate) fn validate(&self) -> Result<(), ModelError> {
        match self.problems().into_iter().next() {
            None => Ok(()),
            Some(Error { field, message, .. }) => Err(ModelError::Unsupported(format!(
                "`model.{}` {message}",
                field.unwrap_or_default()
            ))),
        }
    }
}

fn is_http(url: &str) -> bool {
    reqwest::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
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
    fn what_a_provider_lacks_is_named() {
        let wrong = |change: fn(&mut ModelConfig)| {
            let mut config = ModelConfig {
                provider: Provider::Openai,
                name: "gpt".into(),
                api_key: "sk-secret".into(),
                ..ModelConfig::default()
            };
            change(&mut config);
            let fields = config.problems().into_iter().filter_map(|problem| problem.field);
            fields.collect::<Vec<_>>()
        };
        assert!(wrong(|_| ()).is_empty());
        assert_eq!(wrong(|c| c.name.clear()), ["name"]);
        assert_eq!(wrong(|c| c.api_key.clear()), ["api_key"]);
        assert_eq!(wrong(|c| c.api_key = "a\nb".into()), ["api_key"]);
        assert_eq!(wrong(|c| c.base_url = "nonsense".into()), ["base_url"]);
        assert_eq!(wrong(|c| c.base_url = "ftp://host".into()), ["base_url"]);
        let own = |c: &mut ModelConfig| {
            c.base_url = "http://127.0.0.1:11434/v1".into();
            c.api_key.clear();
        };
        assert!(wrong(own).is_empty());
        assert_eq!(
            wrong(|c| {
                c.provider = Provider::Anthropic;
                c.base_url = "http://127.0.0.1:1".into();
                c.api_key.clear();
            }),
            ["api_key"]
        );
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
