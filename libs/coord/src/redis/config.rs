//! How Redis is reached.

use colloquy_types::redacted_url;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Redis 7 or newer, or Valkey.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RedisConfig {
    /// `redis://…` or `rediss://…`.
    pub url: String,
    /// First part of every key and channel, so that several installations share a server.
    pub prefix: String,
    /// Longest wait for a connection or an answer, in milliseconds.
    pub timeout_ms: u64,
}

impl Default for RedisConfig {
    fn default() -> Self {
        Self {
            url: String::new(),
            prefix: "colloquy".into(),
            timeout_ms: 2_000,
        }
    }
}

impl RedisConfig {
    pub fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            ..Self::default()
        }
    }
}

impl fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisConfig")
            .field("url", &redacted_url(&self.url))
            .field("prefix", &self.prefix)
            .field("timeout_ms", &self.timeout_ms)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        let shown = format!("{:?}", RedisConfig::new("rediss://app:s3c@ret@cache:6379/1"));
        assert!(shown.contains("rediss://********@cache:6379/1"), "{shown}");
        assert!(!shown.contains("s3c"), "{shown}");
    }

    #[test]
    fn an_unknown_setting_is_refused() {
        assert!(toml::from_str::<RedisConfig>("url = 'redis://cache'").is_ok());
        assert!(toml::from_str::<RedisConfig>("uri = 'redis://cache'").is_err());
    }
}
