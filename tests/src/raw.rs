//! Calls by a method's path, past the typed client: every method alike, and bytes that no client would send.

use colloquy_proto::Method;
use colloquy_types::CallerRole;
use std::time::Duration;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

/// Who calls.
#[derive(Debug, Clone)]
pub struct Caller {
    pub key: String,
    /// Named by services only.
    pub tenant: Option<String>,
}

impl Caller {
    /// A request in this caller's name.
    pub fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(Duration::from_secs(10));
        let bearer = format!("Bearer {}", self.key);
        request
            .metadata_mut()
            .insert("authorization", bearer.parse().unwrap());
        if let Some(tenant) = &self.tenant {
            let name = colloquy_service_kit::TENANT_METADATA;
            request.metadata_mut().insert(name, tenant.parse().unwrap());
        }
        request
    }
}

/// Calls a method with one field, number 1, holding the bytes; without bytes the message is empty. Of a stream
/// only the beginning is looked at.
///
/// # Errors
/// The server's status.
pub async fn call(
    channel: &Channel,
    path: &'static str,
    caller: &Caller,
    field: Vec<u8>,
) -> Result<(), Status> {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.unwrap();
    // On the wire a field of bytes is like one of text, and every kind of method begins with one message.
    let codec = ProstCodec::<Vec<u8>, ()>::default();
    let request = caller.request(field);
    grpc.server_streaming(request, PathAndQuery::from_static(path), codec)
        .await
        .map(drop)
}

/// The last part of the method's path.
pub fn name(method: &Method) -> &'static str {
    method.path.rsplit('/').next().unwrap()
}

/// Whether only services and the operator may call it.
pub fn is_internal(method: &Method) -> bool {
    method
        .roles
        .iter()
        .all(|role| [CallerRole::Service, CallerRole::Operator].contains(role))
}
