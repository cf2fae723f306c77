//! What the cross-service tests share: servers in this process or as processes, people who write, agents who echo.

#![allow(clippy::unwrap_used)] // a test may panic

pub mod cluster;
pub mod people;
pub mod raw;
pub mod server;
pub mod servers;
pub mod shared;
