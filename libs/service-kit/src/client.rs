//! How services reach each other: a channel that proves the service key, over the network or in process.

use crate::TENANT_METADATA;
use crate::trace::propagate;
use colloquy_types::{Error, Result, TenantId, redacted_url};
use std::time::Duration;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

/// A channel on which every call carries the service key.
pub type InternalChannel = InterceptedService<Channel, ServiceKey>;

/// Default deadline of a call between services.
pub const CALL_DEADLINE: Duration = Duration::from_secs(10);

/// Adds the service key to each request.
#[derive(Clone)]
pub struct ServiceKey(MetadataValue<Ascii>);

impl ServiceKey {
    /// # Errors
    /// `INVALID_FIELD` when the key cannot stand in a header.
    pub fn new(key: &str) -> Result<Self> {
        let invalid = |_| Error::invalid("auth.service_key", "must be printable ASCII");
        format!("Bearer {key}").parse().map(Self).map_err(invalid)
    }

    pub fn wrap(&self, channel: Channel) -> InternalChannel {
        InterceptedService::new(channel, self.clone())
    }
}

impl Interceptor for ServiceKey {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request.metadata_mut().insert("authorization", self.0.clone());
        Ok(request)
    }
}

/// A request on behalf of a tenant, with the default deadline.
pub fn request<T>(tenant: TenantId, message: T) -> Request<T> {
    request_within(tenant, message, CALL_DEADLINE)
}

/// A request on behalf of a tenant with a deadline of its own.
pub fn request_within<T>(tenant: TenantId, message: T, deadline: Duration) -> Request<T> {
    let mut request = untenanted(message);
    request.set_timeout(deadline);
    if let Ok(value) = tenant.to_string().parse() {
        request.metadata_mut().insert(TENANT_METADATA, value);
    }
    request
}

/// A request that no tenant stands behind (credential and account look-up).
pub fn untenanted<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(CALL_DEADLINE);
    propagate(&mut request);
    request
}

/// Connects lazily; a service that is not up yet fails calls, not the start.
///
/// # Errors
/// `INVALID_FIELD` when the URL is none.
pub fn channel(url: &str) -> Result<Channel> {
    Ok(configure(endpoint("services", url)?).connect_lazy())
}

/// Whether `url`, which `setting` names, can be the address of a service.
///
/// # Errors
/// `INVALID_FIELD` when not.
pub fn check_address(setting: &str, url: &str) -> Result<()> {
    endpoint(setting, url).map(|_| ())
}

fn endpoint(setting: &str, url: &str) -> Result<Endpoint> {
    let invalid = || {
        let message = format!("`{}` is not http://host:port", redacted_url(url));
        Error::invalid(setting, message)
    };
    let uri: http::Uri = url.parse().map_err(|_| invalid())?;
    let known = matches!(uri.scheme_str(), Some("http" | "https"));
    if !known || uri.host().is_none_or(str::is_empty) {
        return Err(invalid());
    }
    Endpoint::from_shared(url.to_owned()).map_err(|_| invalid())
}

/// The settings every channel has.
pub fn configure(endpoint: Endpoint) -> Endpoint {
    endpoint
        .connect_timeout(Duration::from_secs(3))
        .tcp_nodelay(true)
        .http2_keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(Duration::from_secs(10))
        .keep_alive_while_idle(true)
        .initial_stream_window_size(4 << 20)
        .initial_connection_window_size(8 << 20)
}
