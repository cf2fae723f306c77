//! Who calls, and whether they may: a tower layer in front of every gRPC method.
//!
//! The roles of a method come from the contract; a method that names none is refused. The tenant comes from the
//! credential; only a service names it in metadata.

use crate::TENANT_METADATA;
use crate::status::to_status;
use async_trait::async_trait;
use colloquy_types::{CallerRole, Error, Principal, Reason, Result, TenantId};
use futures::future::BoxFuture;
use http::{Request, Response};
use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll};
use subtle::ConstantTimeEq;
use tonic::body::Body;
use tower::{Layer, Service};

/// Resolves a bearer token that is neither the service key nor the operator key.
#[async_trait]
pub trait Credentials: Send + Sync + 'static {
    /// # Errors
    /// `BAD_CREDENTIAL` for an unknown, malformed or revoked key; `DEPENDENCY` when it cannot be looked up.
    async fn authenticate(&self, token: &str) -> Result<Principal>;
}

/// Roles that may call a method, by its full path (`/colloquy.v1.RouterService/AcquireTurn`).
pub type MethodRoles = HashMap<&'static str, Vec<CallerRole>>;

/// Authentication and authorisation of a whole server.
#[derive(Clone)]
pub struct Auth {
    credentials: Arc<dyn Credentials>,
    service_key: Arc<str>,
    operator_key: Option<Arc<str>>,
    methods: Arc<MethodRoles>,
}

impl Auth {
    /// `service_key` is what services prove to each other; `operator_key` opens tenant management only.
    pub fn new(
        credentials: Arc<dyn Credentials>,
        service_key: &str,
        operator_key: Option<&str>,
        methods: MethodRoles,
    ) -> Self {
        Self {
            credentials,
            service_key: service_key.into(),
            operator_key: operator_key.map(Into::into),
            methods: Arc::new(methods),
        }
    }

    /// The caller behind a bearer token.
    ///
    /// # Errors
    /// See [`Credentials::authenticate`].
    pub async fn principal(&self, token: &str) -> Result<Principal> {
        if equal(token, &self.service_key) {
            return Ok(keyless(CallerRole::Service, "service"));
        }
        if self.operator_key.as_deref().is_some_and(|key| equal(token, key)) {
            return Ok(keyless(CallerRole::Operator, "operator"));
        }
        self.credentials.authenticate(token).await
    }

    async fn check(&self, path: &str, headers: &http::HeaderMap) -> Result<Option<Principal>> {
        let Some(allowed) = self.methods.get(path) else {
            // Health and reflection are not in the contract and need no credential; an unknown method answers
            // UNIMPLEMENTED from the router.
            return Ok(None);
        };
        let token = bearer(headers)?;
        let mut principal = self.principal(token).await?;
        let named = headers.get(TENANT_METADATA);
        if principal.has(CallerRole::Service) {
            principal.tenant = named.map(tenant_of).transpose()?;
        } else if named.is_some() {
            return Err(Error::invalid(
                TENANT_METADATA,
                "only services name a tenant; it comes from your credential",
            ));
        }
        if principal.roles.iter().any(|role| allowed.contains(role)) {
            return Ok(Some(principal));
        }
        let needed: Vec<&str> = allowed.iter().map(|role| role.as_str()).collect();
        Err(Error::new(
            Reason::MissingRole,
            format!("this method needs one of the roles: {}", needed.join(", ")),
        ))
    }
}

/// The caller of a request that passed the layer.
///
/// # Errors
/// `INTERNAL` when the layer is missing.
pub fn principal_of<T>(request: &tonic::Request<T>) -> Result<Principal> {
    request
        .extensions()
        .get::<Principal>()
        .cloned()
        .ok_or_else(|| Error::internal("no principal on the request"))
}

/// The tenant of the caller.
///
/// # Errors
/// `INVALID_FIELD` when the credential or the service's metadata names none.
pub fn tenant_of_request<T>(request: &tonic::Request<T>) -> Result<TenantId> {
    let principal = principal_of(request)?;
    principal
        .tenant
        .ok_or_else(|| Error::invalid(TENANT_METADATA, "the call names no tenant"))
}

fn keyless(role: CallerRole, subject: &str) -> Principal {
    Principal {
        tenant: None,
        roles: vec![role],
        key: None,
        subject: subject.into(),
        account: None,
        agents: vec![],
    }
}

fn equal(a: &str, b: &str) -> bool {
    !b.is_empty() && bool::from(a.as_bytes().ct_eq(b.as_bytes()))
}

fn bearer(headers: &http::HeaderMap) -> Result<&str> {
    let missing = || Error::new(Reason::BadCredential, "send `authorization: Bearer <key>`");
    let value = headers.get(http::header::AUTHORIZATION).ok_or_else(missing)?;
    let (scheme, token) = value
        .to_str()
        .ok()
        .and_then(|text| text.split_once(' '))
        .ok_or_else(missing)?;
    if scheme.eq_ignore_ascii_case("bearer") {
        Ok(token.trim())
    } else {
        Err(missing())
    }
}

fn tenant_of(value: &http::HeaderValue) -> Result<TenantId> {
    let text = value
        .to_str()
        .map_err(|_| Error::invalid(TENANT_METADATA, "not an id"))?;
    text.parse()
        .map_err(|_| Error::invalid(TENANT_METADATA, "not a tenant id"))
}

impl<S> Layer<S> for Auth {
    type Service = AuthService<S>;

    fn layer(&self, inner: S) -> AuthService<S> {
        AuthService {
            inner,
            auth: self.clone(),
        }
    }
}

/// [`Auth`] in front of a service.
#[derive(Clone)]
pub struct AuthService<S> {
    inner: S,
    auth: Auth,
}

impl<S> Service<Request<Body>> for AuthService<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let auth = self.auth.clone();
        // The clone that was polled ready must be the one that is called.
        let fresh = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, fresh);
        Box::pin(async move {
            match auth.check(request.uri().path(), request.headers()).await {
                Ok(principal) => {
                    if let Some(principal) = principal {
                        request.extensions_mut().insert(principal);
                    }
                    inner.call(request).await
                }
                Err(error) => Ok(to_status(error).into_http()),
            }
        })
    }
}
