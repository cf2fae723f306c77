//! One HTTP call to a provider, its failure classified.

use crate::ModelError;
use colloquy_types::{Clock, SystemClock, UnixMillis};
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::Value;
use std::sync::Once;
use std::time::Duration;

/// Most that is read of an answer, and of an error's body.
const ANSWER_BYTES: usize = 32 << 20;
const ERROR_BYTES: usize = 16 << 10;
/// Longest wait that a provider's word is taken for.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3_600);

static PROVIDER: Once = Once::new();

/// Installs the TLS provider of the process. Every HTTP client build panics without one; a second installation is
/// refused, which is fine.
pub fn install_tls() {
    PROVIDER.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// A client that follows no redirect: the key goes to the configured address alone.
pub fn client() -> Result<Client, ModelError> {
    install_tls();
    Client::builder()
        .connect_timeout(Duration::from_secs(5))
        .redirect(Policy::none())
        .build()
        .map_err(|error| ModelError::Unsupported(format!("no HTTP client: {error}")))
}

/// A failed call, with what the provider said, for a provider's own reading.
pub struct Failure {
    pub error: ModelError,
    pub body: String,
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self {
            error,
            body: String::new(),
        }
    }
}

/// Sends and reads JSON, all within `limit`.
pub async fn json(request: RequestBuilder, limit: Duration) -> Result<Value, Failure> {
    match tokio::time::timeout(limit, exchange(request)).await {
        Ok(answer) => answer,
        Err(_) => Err(ModelError::Deadline.into()),
    }
}

async fn exchange(request: RequestBuilder) -> Result<Value, Failure> {
    let mut response = request.send().await.map_err(|error| failure(&error))?;
    let status = response.status();
    if !status.is_success() {
        let wait = retry_after(response.headers(), SystemClock.now());
        // A body that breaks off says enough: the status is known.
        let body = read(&mut response, ERROR_BYTES).await.unwrap_or_default();
        let body = String::from_utf8_lossy(&body).into_owned();
        let error = ModelError::of_status(status.as_u16(), wait, &body);
        return Err(Failure { error, body });
    }
    let bytes = read(&mut response, ANSWER_BYTES + 1).await?;
    if bytes.len() > ANSWER_BYTES {
        return Err(ModelError::Malformed("the answer is too large".into()).into());
    }
    let answer: Value =
        serde_json::from_slice(&bytes).map_err(|_| ModelError::Malformed("the answer is not JSON".into()))?;
    in_disguise(&answer).map_or(Ok(answer), Err)
}

/// Gateways answer 200 with the provider's error inside.
fn in_disguise(answer: &Value) -> Option<Failure> {
    let error = answer.get("error").filter(|error| error.is_object())?;
    let status = error["code"].as_u64().and_then(|code| u16::try_from(code).ok());
    let body = answer.to_string();
    let error = ModelError::of_status(status.unwrap_or(500), None, &body);
    Some(Failure { error, body })
}

/// The body, at most `most` bytes of it.
async fn read(response: &mut Response, most: usize) -> Result<Vec<u8>, ModelError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| failure(&error))? {
        let left = most - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(left)]);
        if bytes.len() == most {
            break;
        }
    }
    Ok(bytes)
}

/// How long to wait: seconds, or a date held against the provider's own clock where it shows it.
fn retry_after(headers: &HeaderMap, now: UnixMillis) -> Option<Duration> {
    let text = |name| headers.get(name)?.to_str().ok().map(str::trim);
    let asked = text(RETRY_AFTER)?;
    let wait = match asked.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok()?,
        Err(_) => {
            let now = text(DATE).and_then(date).unwrap_or(now);
            Duration::from_millis(u64::try_from(date(asked)?.since(now)).unwrap_or(0))
        }
    };
    Some(wait.min(LONGEST_WAIT))
}

fn date(text: &str) -> Option<UnixMillis> {
    let zoned = jiff::fmt::rfc2822::parse(text).ok()?;
    Some(UnixMillis(zoned.timestamp().as_millisecond()))
}

fn failure(error: &reqwest::Error) -> ModelError {
    ModelError::Transient(if error.is_connect() {
        "it cannot be reached".into()
    } else {
        "the connection broke".into()
    })
}

/// A setting that the provider cannot do without.
pub fn required(name: &str, value: &str) -> Result<String, ModelError> {
    if value.is_empty() {
        return Err(ModelError::Unsupported(format!("set `model.{name}`")));
    }
    Ok(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(retry_after: &str, date: Option<&str>) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, retry_after.parse().unwrap());
        if let Some(date) = date {
            headers.insert(DATE, date.parse().unwrap());
        }
        // 1994-11-06 08:49:30.
        super::retry_after(&headers, UnixMillis(784_111_770_000))
    }

    #[test]
    fn a_wait_is_read_as_seconds_or_as_a_date() {
        let later = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(asked("7", None), Some(Duration::from_secs(7)));
        assert_eq!(asked("0.5", None), Some(Duration::from_millis(500)));
        assert_eq!(asked(later, None), Some(Duration::from_secs(7)));
        assert_eq!(
            asked(later, Some("Sun, 06 Nov 1994 08:49:35 GMT")),
            Some(Duration::from_secs(2))
        );
        assert_eq!(asked("Sun, 06 Nov 1994 08:00:00 GMT", None), Some(Duration::ZERO));
    }

    #[test]
    fn nonsense_is_no_wait_and_a_huge_one_is_bounded() {
        for nonsense in ["-1", "NaN", "inf", "soon", ""] {
            assert_eq!(asked(nonsense, None), None, "{nonsense}");
        }
        assert_eq!(asked("99999999999", None), Some(LONGEST_WAIT));
    }
}
