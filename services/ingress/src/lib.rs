//! Where messages enter and replies leave: webhooks over HTTP, `Submit` and deliveries over gRPC.
//!
//! Owns the channels: verifying, normalising, and the shape of an answer to a webhook. Must not know sessions,
//! policies or stores; the router does the rest. A webhook is answered 200 only when the message is durable.

pub mod channel;

mod accounts;
mod deliveries;
mod service;
mod submit;
mod webhook;

use colloquy_proto::v1::ingress_service_server::IngressServiceServer;
use colloquy_service_kit::server::message_limit;
use colloquy_service_kit::{InternalChannel, Parts, Shutdown};

/// The services it asks.
#[derive(Clone)]
pub struct Deps {
    pub control: InternalChannel,
    pub router: InternalChannel,
    pub history: InternalChannel,
}

/// The service's parts of a process.
pub fn parts(deps: Deps, shutdown: &Shutdown) -> Parts {
    let ingress = service::Ingress::new(deps, shutdown.clone());
    let http = webhook::routes(ingress.clone());
    Parts::new("ingress").http(http).grpc(move |routes| {
        routes.add_service(IngressServiceServer::new(ingress).max_decoding_message_size(message_limit()));
    })
}
