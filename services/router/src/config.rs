//! Settings of the router service.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Pause between looks for sessions that the schedule lost, in milliseconds, ± 20 %.
    pub sweep_ms: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { sweep_ms: 1_000 }
    }
}
