//! Settings of the history service.

use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Pause between looks for expired leases, in milliseconds, ± 20 %.
    pub sweep_ms: u64,
    /// Longest pause between looks for due jobs, in milliseconds; a written job wakes the relay of its replica.
    pub relay_ms: u64,
    /// A published job that nobody started is published again after this time, in milliseconds.
    pub republish_ms: u64,
    /// Jobs of one tenant handed to the bus per round.
    pub jobs_per_tenant: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            sweep_ms: 500,
            relay_ms: 500,
            republish_ms: 30_000,
            jobs_per_tenant: 8,
        }
    }
}

impl Config {
    /// A pause with jitter, so that replicas do not sweep in step.
    pub(crate) fn jittered(millis: u64) -> Duration {
        Duration::from_millis(millis).mul_f64(rand::random_range(0.8..1.2))
    }
}
