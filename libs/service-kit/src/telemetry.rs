//! Logs and metrics of a process, set up once.

use colloquy_types::Error;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::io::IsTerminal;
use std::sync::OnceLock;
use tracing_subscriber::EnvFilter;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetryConfig {
    /// Log filter, for instance `info,colloquy_router=debug`.
    pub log: String,
    /// `text` for people, `json` for collectors.
    pub format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    Text,
    Json,
}

impl TelemetryConfig {
    /// What cannot work, by setting below `telemetry`.
    pub fn problems(&self) -> Vec<Error> {
        let broken = EnvFilter::try_new(&self.log).err();
        broken
            .map(|error| Error::invalid("log", format!("not a log filter: {error}")))
            .into_iter()
            .collect()
    }
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self {
            log: "info".into(),
            format: LogFormat::Text,
        }
    }
}

static METRICS: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// Installs the log subscriber (on standard error) and the metrics recorder. A second call changes nothing.
pub fn init(config: &TelemetryConfig) {
    let filter = EnvFilter::try_new(&config.log).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(coloured(
            std::io::stderr().is_terminal(),
            std::env::var_os("NO_COLOR").as_deref(),
        ))
        .with_writer(std::io::stderr);
    // An error means that a subscriber is installed already, which is what is wanted.
    let _ = match config.format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    metrics_handle();
}

/// Colours are for people at a terminal who did not refuse them (<https://no-color.org>): in a file or a container's log
/// they are noise.
fn coloured(terminal: bool, refused: Option<&OsStr>) -> bool {
    terminal && refused.is_none_or(OsStr::is_empty)
}

fn metrics_handle() -> Option<&'static PrometheusHandle> {
    METRICS
        .get_or_init(|| PrometheusBuilder::new().install_recorder().ok())
        .as_ref()
}

/// The metrics in Prometheus' text format.
pub fn render_metrics() -> String {
    metrics_handle().map(PrometheusHandle::render).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_terminal_that_wants_them_gets_colours() {
        assert!(coloured(true, None));
        assert!(coloured(true, Some(OsStr::new(""))));
        assert!(!coloured(true, Some(OsStr::new("1"))));
        assert!(!coloured(false, None));
    }
}
