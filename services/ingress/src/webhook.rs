//! `POST /v1/channels/{channel}/{account}`.
//!
//! | answer | when |
//! |---|---|
//! | 200 `{"ok":true,…}` | the message is durable (or was before, or there was nothing to answer) |
//! | 200 `{"ok":false,"reason":…}` | refused in a way that a redelivery cannot change: the queue is full (recorded on the session with its outcome), the message is too large, the update lacks what a message needs |
//! | 400, 413 | not a body of the channel at all; larger than 2 MiB |
//! | 401 | the secret or signature is wrong |
//! | 404 | no such account |
//! | 408 | the body did not arrive in time |
//! | 503 + `Retry-After` | not accepted now; deliver again |
//!
//! Limits of size and time are those of the kit's HTTP. Every answer carries `x-request-id`.

use crate::accounts::Account;
use crate::channel::{ChatKind, Inbound, Received, generic, telegram};
use crate::service::Ingress;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use colloquy_proto::v1;
use colloquy_service_kit::http::MAX_HTTP_BODY_BYTES;
use colloquy_types::message::{Message, Role, Route, Source};
use colloquy_types::{Error, Reason, Result};
use serde_json::json;

pub fn routes(ingress: Ingress) -> Router {
    Router::new()
        .route("/v1/channels/{channel}/{account}", post(receive))
        .layer(DefaultBodyLimit::max(MAX_HTTP_BODY_BYTES))
        .with_state(ingress)
}

async fn receive(
    State(ingress): State<Ingress>,
    Path((channel, account)): Path<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let (account, inbound) = match authentic(&ingress, &channel, &account, &headers, &body).await {
        Ok((account, Received::Message(inbound))) => (account, *inbound),
        Ok((_, Received::Ignored(why))) => return Json(json!({"ok": true, "ignored": why})).into_response(),
        Ok((account, Received::Unusable(error))) => return refused_for_good(&account, &error),
        Err(error) => return refusal(&error),
    };
    let routed = ingress.route(account.tenant, request(&account, inbound)).await;
    metrics::counter!("colloquy_webhooks_total", "channel" => channel, "ok" => if routed.is_ok() { "yes" } else { "no" })
        .increment(1);
    match routed {
        Ok(accepted) => Json(json!({
            "ok": accepted.placement() != v1::Placement::Dropped,
            "message_id": accepted.message_id,
            "session_id": accepted.session_id,
            "turn_id": accepted.turn_id,
            "placement": accepted.placement().as_str_name().trim_start_matches("PLACEMENT_"),
        }))
        .into_response(),
        Err(error) if may_change(error.reason) => refusal(&error),
        Err(error) => refused_for_good(&account, &error),
    }
}

/// The channel would only bring it again, and hold back what is behind it.
fn refused_for_good(account: &Account, error: &Error) -> Response {
    tracing::warn!(account = %account.id, %error, "message refused");
    let reason = error.reason.as_str();
    metrics::counter!("colloquy_webhooks_refused_total", "reason" => reason).increment(1);
    Json(json!({"ok": false, "reason": reason, "field": error.field, "message": error.message}))
        .into_response()
}

async fn authentic(
    ingress: &Ingress,
    channel: &str,
    account: &str,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<(Account, Received)> {
    let found = ingress.accounts.find(account).await?;
    if found.channel.as_str() != channel {
        return Err(Error::not_found("account", account));
    }
    let header = |name| headers.get(name).map(axum::http::HeaderValue::as_bytes);
    let received = if channel == "telegram" {
        telegram::verify(header(telegram::SECRET_HEADER), &found.secret)?;
        telegram::normalise(body)?
    } else {
        generic::verify(header(generic::SIGNATURE_HEADER), body, &found.secret)?;
        generic::normalise(body)?
    };
    Ok((found, received))
}

fn request(account: &Account, inbound: Inbound) -> v1::RouteMessageRequest {
    let mut message = Message::new(Role::User, inbound.parts);
    message.author = inbound.sender.clone();
    message.provenance = inbound.provenance;
    message.source = Some(Source {
        channel: account.channel.clone(),
        account: account.id.clone(),
        message_id: inbound.message_id,
    });
    let route = Route {
        channel: account.channel.clone(),
        account: account.id.clone(),
        chat: inbound.chat.clone(),
        thread: inbound.topic.clone().or_else(|| inbound.thread.clone()),
    };
    v1::RouteMessageRequest {
        agent: account.agent.to_string(),
        channel: account.channel.to_string(),
        account: account.id.to_string(),
        chat_kind: match inbound.chat_kind {
            ChatKind::Direct => "direct",
            ChatKind::Group => "group",
            ChatKind::Channel => "channel",
        }
        .into(),
        // In a direct chat the person decides about their own conversation; in a group nobody does alone.
        authorised: inbound.chat_kind == ChatKind::Direct,
        chat: inbound.chat,
        thread: inbound.thread.unwrap_or_default(),
        topic: inbound.topic.unwrap_or_default(),
        sender: Some(inbound.sender.into()),
        message: Some(message.into()),
        dedupe_key: format!("account:{}:{}", account.id, inbound.dedupe),
        route: Some(route.into()),
        record_refusal: true,
        ..Default::default()
    }
}

/// Whether a redelivery could be answered otherwise.
fn may_change(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Dependency | Reason::Deadline | Reason::RateLimited | Reason::Conflict | Reason::Internal
    )
}

fn refusal(error: &Error) -> Response {
    let status = match error.reason {
        Reason::InvalidField => StatusCode::BAD_REQUEST,
        Reason::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Reason::BadCredential | Reason::MissingRole => StatusCode::UNAUTHORIZED,
        Reason::NotFound => StatusCode::NOT_FOUND,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    let body =
        json!({"ok": false, "reason": error.reason.as_str(), "field": error.field, "message": error.message});
    if status == StatusCode::SERVICE_UNAVAILABLE {
        let seconds = error.retry_after_ms.unwrap_or(1_000).div_ceil(1_000).to_string();
        return (status, [(header::RETRY_AFTER, seconds)], Json(body)).into_response();
    }
    (status, Json(body)).into_response()
}
