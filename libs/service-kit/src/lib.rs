//! Boots any service the same way: configuration → telemetry → signals → dependencies → readiness → serve →
//! bounded two-phase stop → exit code.
//!
//! Owns what every service has in common: configuration loading, authentication, error mapping, health,
//! telemetry, the gRPC and HTTP listeners, clients of other services, shutdown. Must not know any service, any
//! store, or the contract's messages: method roles and file descriptors are handed in.
//!
//! A service is a library that returns [`Parts`]; several services' parts can share one process and one port.

pub mod auth;
pub mod cache;
pub mod client;
pub mod config;
pub mod health;
pub mod http;
mod malformed;
pub mod run;
pub mod server;
mod settings;
pub mod shutdown;
pub mod status;
pub mod telemetry;
pub mod trace;

pub use auth::{Auth, Credentials, MethodRoles};
pub use client::{InternalChannel, ServiceKey};
pub use health::{Check, Readiness};
pub use run::{Boot, Exit, run};
pub use server::{Contract, Parts, Running, Task};
pub use settings::ServerConfig;
pub use shutdown::Shutdown;
pub use status::{from_status, to_status};

/// Largest gRPC message in either direction, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// Metadata in which the services name the tenant they act for; refused from any other caller.
pub const TENANT_METADATA: &str = "x-colloquy-tenant";
