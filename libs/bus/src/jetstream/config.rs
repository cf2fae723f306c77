//! How NATS is reached.

use crate::ACK_WAIT;
use async_nats::ServerAddr;
use colloquy_types::{Error, Result, redacted_url};
use serde::{Deserialize, Serialize};
use std::fmt;

/// NATS 2.9 or newer with JetStream.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NatsConfig {
    /// `nats://…` or `tls://…`; several servers of one cluster separated by commas.
    pub url: String,
    /// First part of subjects and names, `[a-z][a-z0-9]*`, so that several installations share a server.
    pub prefix: String,
    /// A message that is not acknowledged within this time is delivered again, in milliseconds.
    pub ack_wait_ms: u64,
}

impl Default for NatsConfig {
    fn default() -> Self {
        Self {
            url: String::new(),
            prefix: "colloquy".into(),
            ack_wait_ms: u64::try_from(ACK_WAIT.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

impl NatsConfig {
    pub fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            ..Self::default()
        }
    }

    pub(super) fn servers(&self) -> Result<Vec<ServerAddr>> {
        let servers = self.url.split(',').map(|url| url.trim().parse());
        // The parser's own words may repeat a password.
        servers.collect::<std::result::Result<_, _>>().map_err(|_| {
            Error::invalid(
                "nats.url",
                "must be nats://host:port, several separated by commas",
            )
        })
    }

    /// # Errors
    /// `INVALID_FIELD` for a URL that is none or a prefix that does not fit.
    pub fn validate(&self) -> Result<()> {
        self.servers()?;
        let mut bytes = self.prefix.bytes();
        let first = bytes.next().is_some_and(|byte| byte.is_ascii_lowercase());
        if first && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) {
            return Ok(());
        }
        Err(Error::invalid("nats.prefix", "must match [a-z][a-z0-9]*"))
    }
}

impl fmt::Debug for NatsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsConfig")
            .field("url", &redacted_url(&self.url))
            .field("prefix", &self.prefix)
            .field("ack_wait_ms", &self.ack_wait_ms)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        let shown = format!(
            "{:?}",
            NatsConfig::new("nats://app:s3cret@one:4222,app:s3cret@two:4222")
        );
        assert!(
            shown.contains("nats://********@one:4222,********@two:4222"),
            "{shown}"
        );
    }

    #[test]
    fn settings_that_do_not_fit_are_refused() {
        assert!(toml::from_str::<NatsConfig>("url = 'nats://bus'").is_ok());
        assert!(toml::from_str::<NatsConfig>("uri = 'nats://bus'").is_err());
        let prefix = |prefix: &str| NatsConfig {
            prefix: prefix.into(),
            ..NatsConfig::new("nats://bus")
        };
        assert!(prefix("colloquy2").validate().is_ok());
        assert!(prefix("two.words").validate().is_err());
        assert!(
            NatsConfig::new("nats://one:4222, nats://two:4222")
                .servers()
                .is_ok()
        );
        assert!(NatsConfig::new("not a url").servers().is_err());
        assert!(NatsConfig::new("nats://one:port").validate().is_err());
        assert!(NatsConfig::new("http://one:4222").validate().is_err());
    }
}
