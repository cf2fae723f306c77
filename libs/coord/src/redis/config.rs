//! How Redis is reached.

use colloquy_types::{Error, Result, redacted_url};
use redis::Client;
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

    /// # Errors
    /// `INVALID_FIELD` for a URL that is none.
    pub fn validate(&self) -> Result<()> {
        self.client().map(|_| ())
    }

    pub(super) fn client(&self) -> Result<Client> {
        Client::open(self.url.as_str()).map_err(|error| {
            let message = format!("`{}` is not redis://host:port: {error}", redacted_url(&self.url));
            Error::invalid("redis.url", message)
        })
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
    fn a_url_that_is_none_is_refused_without_repeating_its_password() {
        for url in [
            "",
            "foo",
            "http://app:s3cret@cache",
            "redis://app:s3cret@cache:port",
        ] {
            let refused = RedisConfig::new(url).validate().unwrap_err();
            assert_eq!(refused.field.as_deref(), Some("redis.url"), "{url}");
            assert!(!refused.message.contains("s3cret"), "{}", refused.message);
        }
        RedisConfig::new("redis://cache").validate().unwrap();
    }

    #[test]
    fn an_unknown_setting_is_refused() {
        assert!(toml::from_str::<RedisConfig>("url = 'redis://cache'").is_ok());
        assert!(toml::from_str::<RedisConfig>("uri = 'redis://cache'").is_err());
    }
}
