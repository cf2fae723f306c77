//! The words of the product: ids, session keys, messages, entries, policies, errors, time.
//!
//! Owns plain values and the rules about them. Must not know a runtime, a database or the wire:
//! no I/O, no async, no ambient clock. Every other crate may use it, it uses none.

pub mod clock;
pub mod command;
pub mod entry;
pub mod error;
pub mod ids;
pub mod key;
pub mod message;
pub mod policy;
pub mod queue;
pub mod redact;
pub mod scope;
pub mod silent;

pub use clock::{Clock, ManualClock, SystemClock, UnixMillis};
pub use entry::{Entry, EntryBody, NewEntry};
pub use error::{Error, Reason, Result};
pub use ids::*;
pub use key::{ChatKind, SessionKey};
pub use message::{Author, Message, Part, Provenance, Role, Route, Source};
pub use policy::Policy;
pub use redact::redacted_url;
pub use scope::{Principal, Role as CallerRole};
