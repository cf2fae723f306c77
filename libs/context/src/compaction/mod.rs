//! When a window is compacted, where it is cut, how it is read to the summary model, and whether the summary is
//! good enough. Running the model and applying the result are the caller's.

pub mod audit;
pub mod chunks;
pub mod cut;
pub mod identifiers;
pub mod trigger;

pub use audit::{AuditFailure, AuditSource, Problem, audit};
pub use chunks::{Chunk, chunks, render};
pub use cut::{Cut, plan_cut};
pub use identifiers::identifiers;
pub use trigger::{CompactionOptions, Keep, ReserveRule, Stats, TriggerReason, made_progress, trigger};
