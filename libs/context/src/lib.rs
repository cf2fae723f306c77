//! Decides what a model call sees: counting, window, history mode, limit, prune, repair, recall, projection, validation,
//! and how a window is compacted.
//!
//! Owns pure functions from values to values: the same input gives the same bytes. Must not know a store, a
//! clock, a runtime or randomness; callers load, call and write what comes back.
//!
//! To add a provider: a file in [`project`] and one in [`validate`], a variant's arm in each module's root.
//! To add a stage: a module of its own, called from [`build`], with its action in [`receipt`].

pub mod budget;
pub mod build;
pub mod compaction;
pub mod error;
pub mod history_mode;
pub mod item;
pub mod limit;
pub mod project;
pub mod prune;
pub mod recall;
pub mod receipt;
pub mod repair;
pub mod tokens;
pub mod validate;
pub mod window;

pub use budget::Decision;
pub use build::{
    BuildInput, BuildOptions, Built, LastCall, Rebuild, Rebuilt, Stage, TurnMessages, build, build_observed,
    rebuild,
};
pub use error::{BuildError, Result};
pub use item::{Item, Origin};
pub use project::Format;
pub use prune::{Moves, PruneOptions, Watermarks};
pub use receipt::{Receipt, diff, rows};
pub use tokens::{Counter, Tokenizer, count_body, count_message, count_overhead};
