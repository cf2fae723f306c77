//! Settings of the compactor.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Jobs in work at the same time in one process.
    pub concurrency: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { concurrency: 4 }
    }
}
