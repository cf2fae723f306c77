//! One HTTP call to a provider, its failure classified.

use crate::{ModelConfig, ModelError};
use reqwest::{Client, RequestBuilder, Response};
use serde_json::Value;
use std::sync::Once;
use std::time::Duration;

/// Largest part of an error's body that is read.
const ERROR_BYTES: usize = 8 << 10;

static PROVIDER: Once = Once::new();

/// Installs the TLS provider of the process. Every HTTP client build panics without one; a second installation is
/// refused, which is fine.
pub fn install_tls() {
    PROVIDER.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// A client for calls that take at most `timeout`.
pub fn client(config: &ModelConfig) -> Result<Client, ModelError> {
    install_tls();
    Client::builder()
        .connect_timeout(Duration::from_secs(5))
        .timeout(Duration::from_secs(config.timeout_s))
        .build()
        .map_err(|error| ModelError::Unsupported(format!("no HTTP client: {error}")))
}

/// Sends and reads JSON.
pub async fn json(request: RequestBuilder) -> Result<Value, ModelError> {
    let response = request.send().await.map_err(|error| failure(&error))?;
    let status = response.status();
    if status.is_success() {
        return response.json().await.map_err(|error| {
            if error.is_timeout() {
                ModelError::Deadline
            } else {
                ModelError::Malformed("the answer is not JSON".into())
            }
        });
    }
    let retry_after = retry_after(&response);
    let body = response.text().await.unwrap_or_default();
    let end = (0..=ERROR_BYTES.min(body.len()))
        .rev()
        .find(|at| body.is_char_boundary(*at))
        .unwrap_or(0);
    Err(ModelError::of_status(status.as_u16(), retry_after, &body[..end]))
}

/// Seconds; a date is taken as a short wait.
fn retry_after(response: &Response) -> Option<Duration> {
    let text = response.headers().get("retry-after")?.to_str().ok()?;
    Some(
        text.trim()
            .parse()
            .map_or(Duration::from_secs(2), Duration::from_secs_f32),
    )
}

fn failure(error: &reqwest::Error) -> ModelError {
    if error.is_timeout() {
        ModelError::Deadline
    } else {
        ModelError::Transient("the provider cannot be reached".into())
    }
}

/// A setting that the provider cannot do without.
pub fn required(name: &str, value: &str) -> Result<String, ModelError> {
    if value.is_empty() {
        return Err(ModelError::Unsupported(format!("set `model.{name}`")));
    }
    Ok(value.to_owned())
}
