//! The contract holds to its own rules, and its conversions lose nothing.

#![allow(clippy::unwrap_used)] // a test may panic

mod contract;
mod conversions;
mod generated;
mod refusals;
