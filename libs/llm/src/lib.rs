//! Models that summarise and extract: a provider's, or an offline one that needs no key.
//!
//! Owns prompts, providers, deadlines, retries and the classes of their errors. Must not know sessions or stores.
//! To add a provider: a file that implements [`Model`], and its arm in [`connect`].

mod anthropic;
mod config;
mod error;
mod http;
mod offline;
mod openai;
mod prompts;
mod retry;
mod tasks;

pub use config::{ModelConfig, Provider};
pub use error::ModelError;
pub use http::install_tls;
pub use tasks::{Candidate, CandidateKind, Extractor, Line, Speaker, Summariser, SummaryRequest};

use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;

/// One call of a chat model.
#[derive(Debug, Clone)]
pub struct ChatRequest {
    pub system: String,
    pub user: String,
    pub max_tokens: u32,
    /// Ask for a JSON object.
    pub json: bool,
}

/// A chat model behind an API.
#[async_trait]
pub trait Model: Send + Sync + 'static {
    /// One attempt. The caller retries and keeps the deadline.
    ///
    /// # Errors
    /// Classified, see [`ModelError`].
    async fn chat(&self, request: &ChatRequest) -> Result<String, ModelError>;

    /// One vector per text.
    ///
    /// # Errors
    /// Classified; `Unsupported` where the provider has no embeddings.
    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError>;

    fn name(&self) -> &str;
}

/// What the services use.
#[derive(Clone)]
pub struct Models {
    pub summariser: Arc<dyn Summariser>,
    pub extractor: Arc<dyn Extractor>,
}

/// The models that the configuration asks for. Nothing is called yet.
///
/// # Errors
/// `Unsupported` when a setting is missing or the HTTP client cannot be made.
pub fn connect(config: &ModelConfig) -> Result<Models, ModelError> {
    let model: Arc<dyn Model> = match config.provider {
        Provider::Offline => {
            let offline = Arc::new(offline::Offline);
            return Ok(Models {
                summariser: offline.clone(),
                extractor: offline,
            });
        }
        Provider::Openai => Arc::new(openai::OpenAi::new(config)?),
        Provider::Anthropic => Arc::new(anthropic::Anthropic::new(config)?),
    };
    let prompted = Arc::new(tasks::Prompted::new(
        model,
        config.window_tokens,
        retry::Retry {
            attempts: config.attempts,
            ..retry::Retry::default()
        },
        Duration::from_secs(config.timeout_s),
    ));
    Ok(Models {
        summariser: prompted.clone(),
        extractor: prompted,
    })
}

/// The model itself, for callers that chat or embed.
///
/// # Errors
/// Those of [`connect`]; the offline model does neither.
pub fn model(config: &ModelConfig) -> Result<Arc<dyn Model>, ModelError> {
    match config.provider {
        Provider::Offline => Err(ModelError::Unsupported("the offline model does not chat".into())),
        Provider::Openai => Ok(Arc::new(openai::OpenAi::new(config)?)),
        Provider::Anthropic => Ok(Arc::new(anthropic::Anthropic::new(config)?)),
    }
}
