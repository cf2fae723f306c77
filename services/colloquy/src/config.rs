//! The settings of a process. Strict: an unknown key is an error. `colloquy config reference` prints them all.

use colloquy_llm::ModelConfig;
use colloquy_service_kit::ServerConfig;
use colloquy_service_kit::config::{ConfigError, environment, load};
use colloquy_service_kit::telemetry::TelemetryConfig;
use colloquy_types::redact::{blanked, redacted_url};
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
        load(file, &environment()?)
    }

    /// As TOML, with secrets and passwords in URLs blanked.
    ///
    /// # Errors
    /// When a value has no TOML form.
    pub fn redacted(&self) -> Result<String, toml::ser::Error> {
        let mut shown = self.clone();
        for secret in [&mut shown.auth.service_key, &mut shown.auth.operator_key] {
            *secret = blanked(secret);
        }
        let services = &mut shown.services;
        let urls = [
            &mut shown.postgres.url,
            &mut shown.postgres.owner_url,
            &mut shown.redis.url,
            &mut shown.nats.url,
            &mut services.control,
            &mut services.history,
            &mut services.router,
            &mut services.memory,
            &mut services.compactor,
            &mut services.ingress,
        ];
        for url in urls {
            *url = redacted_url(url);
        }
        shown.model = shown.model.redacted();
        toml::to_string_pretty(&shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets every text of the settings to `value`, whatever section it is in.
    fn filled(value: &str) -> Config {
        fn fill(node: &mut serde_json::Value, value: &str) {
            match node {
                serde_json::Value::String(text) if text.is_empty() => *text = value.to_owned(),
                serde_json::Value::Object(object) => object.values_mut().for_each(|node| fill(node, value)),
                _ => {}
            }
        }
        let mut root = serde_json::to_value(Config::default()).unwrap();
        fill(&mut root, value);
        serde_json::from_value(root).unwrap()
    }

    #[test]
    fn a_secret_of_an_address_is_printed_from_no_setting() {
        for address in [
            "postgres://h/db?user=u&password=SECRET",
            "nats://SECRET@host:4222",
            "redis://:SECRET@cache:6379",
        ] {
            let mut config = filled(address);
            // Plain names, no place for an address.
            config.sqlite.path.clear();
            config.model.name.clear();
            config.model.embedding_name.clear();
            let shown = config.redacted().unwrap();
            assert!(!shown.contains("SECRET"), "{shown}");
        }
    }
}
