//! The settings of a process. Strict: an unknown key is an error. `colloquy config reference` prints them all.

use colloquy_llm::ModelConfig;
use colloquy_service_kit::ServerConfig;
use colloquy_service_kit::config::{ConfigError, environment, load};
use colloquy_service_kit::telemetry::TelemetryConfig;
use serde::{Deserialize, Serialize};
use std::path::Path;

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub server: ServerConfig,
    pub telemetry: TelemetryConfig,
    pub auth: AuthConfig,
    pub postgres: PostgresConfig,
    pub sqlite: SqliteConfig,
    pub redis: RedisConfig,
    pub nats: NatsConfig,
    pub services: ServicesConfig,
    pub model: ModelConfig,
    pub history: colloquy_history::Config,
    pub router: colloquy_router::Config,
    pub compactor: colloquy_compactor::Config,
}

/// Secrets that processes share.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthConfig {
    /// What services prove to each other; the same in every process, at least 32 characters.
    pub service_key: String,
    /// Opens tenant management; empty = nobody may.
    pub operator_key: String,
}

/// PostgreSQL 14 or newer.
#[derive(Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PostgresConfig {
    /// `postgres://user:password@host/database` of the application's login; empty = SQLite.
    pub url: String,
    /// The owner's login, for `migrate` only.
    pub owner_url: String,
    /// Connections per store and process.
    pub max_connections: u32,
}

impl Default for PostgresConfig {
    fn default() -> Self {
        Self {
            url: String::new(),
            owner_url: String::new(),
            max_connections: 16,
        }
    }
}

/// The embedded database, when there is no PostgreSQL URL.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SqliteConfig {
    /// File; empty = in memory, gone with the process.
    pub path: String,
}

/// Redis 7 or newer, or Valkey.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RedisConfig {
    /// `redis://…` or `rediss://…`; empty = in process (one process only).
    pub url: String,
}

/// NATS with JetStream.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NatsConfig {
    /// `nats://…`; empty = in process (one process only).
    pub url: String,
}

/// Where services of other processes are; empty = in this process.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServicesConfig {
    pub control: String,
    pub history: String,
    pub router: String,
    pub memory: String,
    pub compactor: String,
    pub ingress: String,
}

impl Config {
    /// # Errors
    /// Those of reading the file and of unknown or unfitting settings.
    pub fn load(file: Option<&Path>) -> Result<Self, ConfigError> {
        load(file, &environment())
    }

    /// As TOML, with secrets and passwords in URLs blanked.
    ///
    /// # Errors
    /// When a value has no TOML form.
    pub fn redacted(&self) -> Result<String, toml::ser::Error> {
        let mut shown = self.clone();
        for secret in [&mut shown.auth.service_key, &mut shown.auth.operator_key] {
            if !secret.is_empty() {
                *secret = "********".into();
            }
        }
        let urls = [
            &mut shown.postgres.url,
            &mut shown.postgres.owner_url,
            &mut shown.redis.url,
            &mut shown.nats.url,
        ];
        for url in urls {
            *url = redact_url(url);
        }
        shown.model = shown.model.redacted();
        toml::to_string_pretty(&shown)
    }
}

/// `scheme://user:password@host` without the password.
fn redact_url(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    match rest.rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}:********@{host}")
        }
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_printed() {
        assert_eq!(
            redact_url("postgres://app:s3cret@db:5432/x"),
            "postgres://app:********@db:5432/x"
        );
        assert_eq!(redact_url("redis://cache:6379"), "redis://cache:6379");
    }
}
