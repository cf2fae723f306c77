//! Tenants, API keys, agents with their policies, channel accounts.
//!
//! Owns what is configured. Must not know conversations. Other services ask it for credentials, accounts and
//! effective policies and cache the answers.

mod accounts;
mod agents;
mod convert;
mod keys;
mod service;
mod tenants;

use colloquy_proto::v1::control_service_server::ControlServiceServer;
use colloquy_service_kit::server::message_limit;
use colloquy_service_kit::{Check, Parts};
use colloquy_storage::ControlStore;
use std::sync::Arc;

/// What the service works with.
pub struct Deps {
    pub store: Arc<dyn ControlStore>,
}

/// The service's parts of a process.
pub fn parts(deps: Deps) -> Parts {
    let store = deps.store.clone();
    let control = service::Control { store: deps.store };
    Parts::new("control")
        .grpc(move |routes| {
            routes.add_service(ControlServiceServer::new(control).max_decoding_message_size(message_limit()));
        })
        .check(Check::new("control database", move || {
            let store = store.clone();
            async move { store.now().await.map(|_| ()) }
        }))
}
