//! Models that summarise and extract: a provider's, or an offline one that needs no key.
//!
//! Owns prompts, providers, deadlines, retries and the classes of their errors. Must not know sessions or stores.
//! To add a provider: a file that implements [`Model`] with single attempts, a [`Provider`], and its arm in [`model`].

mod anthropic;
mod config;
mod error;
mod http;
mod model;
mod offline;
mod openai;
mod overflow;
mod prompted;
mod prompts;
mod retry;
mod size;
mod tasks;

pub use anthropic::Anthropic;
pub use config::{ModelConfig, Provider};
pub use error::ModelError;
pub use http::install_tls;
pub use model::{ChatReply, ChatRequest, JsonSchema, Model, Speaks, Turn};
pub use offline::Offline;
pub use openai::OpenAi;
pub use prompted::Prompted;
pub use retry::{Retry, Retrying};
pub use tasks::{Candidate, CandidateKind, Extractor, Line, Speaker, Summariser, SummaryRequest};

use std::sync::Arc;

/// What the services use.
#[derive(Clone)]
pub struct Models {
    pub summariser: Arc<dyn Summariser>,
    pub extractor: Arc<dyn Extractor>,
}

/// The models that the configuration asks for. Nothing is called yet.
///
/// # Errors
/// `Unsupported` when a setting is missing or cannot work, or the HTTP client cannot be made.
pub fn connect(config: &ModelConfig) -> Result<Models, ModelError> {
    if config.provider == Provider::Offline {
        let offline = Arc::new(Offline);
        return Ok(Models {
            summariser: offline.clone(),
            extractor: offline,
        });
    }
    let prompted = Arc::new(Prompted::new(model(config)?));
    Ok(Models {
        summariser: prompted.clone(),
        extractor: prompted,
    })
}

/// The model itself with its retries, for callers that chat or embed.
///
/// # Errors
/// Those of [`connect`]; the offline model does neither.
pub fn model(config: &ModelConfig) -> Result<Arc<dyn Model>, ModelError> {
    config.validate()?;
    let single: Arc<dyn Model> = match config.provider {
        Provider::Offline => {
            return Err(ModelError::Unsupported(
                "the offline model does not chat: set `model.provider`".into(),
            ));
        }
        Provider::Openai => Arc::new(OpenAi::new(config)?),
        Provider::Anthropic => Arc::new(Anthropic::new(config)?),
    };
    let retry = Retry {
        attempts: config.attempts,
        ..Retry::default()
    };
    Ok(Arc::new(Retrying::new(single, retry, config.timeout())))
}
