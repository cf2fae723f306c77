//! Why a build gave no bytes.

use crate::validate::Violation;
use colloquy_types::{EntryId, Error};
use std::fmt;

pub type Result<T, E = BuildError> = std::result::Result<T, E>;

/// Why a build gave no bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildError {
    /// Nothing a provider accepts is left: no messages at all, only blank ones, or tool results alone.
    NothingToSend,
    /// The input contradicts itself, for instance a compaction pointer at an entry of another kind.
    Input {
        field: &'static str,
        message: &'static str,
    },
    /// The projection broke a rule of its provider. This is a fault of the product and is never sent.
    Invalid {
        violations: Vec<Violation>,
        entries: Vec<EntryId>,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingToSend => f.write_str("no message is left to send: add a user message"),
            Self::Input { field, message } => write!(f, "{field}: {message}"),
            Self::Invalid { violations, entries } => {
                f.write_str("the projected request is invalid:")?;
                for violation in violations {
                    write!(f, " {violation};")?;
                }
                f.write_str(" entries")?;
                entries.iter().try_for_each(|id| write!(f, " {id}"))
            }
        }
    }
}

impl std::error::Error for BuildError {}

impl From<BuildError> for Error {
    fn from(error: BuildError) -> Self {
        let message = error.to_string();
        match error {
            BuildError::NothingToSend => Self::invalid("messages", message),
            BuildError::Input { field, message } => Self::invalid(field, message),
            BuildError::Invalid { .. } => Self::internal(message),
        }
    }
}
