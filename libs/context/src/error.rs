//! Why a build gave no bytes.

use crate::project::Format;
use crate::validate::Violation;
use colloquy_types::{EntryId, Error, Reason};
use std::fmt;

pub type Result<T, E = BuildError> = std::result::Result<T, E>;

/// Why a build gave no bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildError {
    /// No projection exists for this provider format yet.
    Unsupported(Format),
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
            Self::Unsupported(format) => write!(f, "the provider format {format} is not supported"),
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
            BuildError::Unsupported(_) => Self {
                field: Some("format".to_owned()),
                ..Self::new(Reason::Unimplemented, message)
            },
            BuildError::NothingToSend => Self::invalid("messages", message),
            BuildError::Input { field, message } => Self::invalid(field, message),
            BuildError::Invalid { .. } => Self::internal(message),
        }
    }
}
