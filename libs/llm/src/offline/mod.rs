//! A model that needs no key: extractive summaries that keep identifiers, facts by rules. Deterministic.

mod facts;
mod identifiers;
mod rules;
mod sections;
mod sentences;
mod summary;

use crate::ModelError;
use crate::tasks::{Candidate, Extractor, Line, Summariser, SummaryRequest};
use async_trait::async_trait;

/// Does both tasks without a model.
pub struct Offline;

#[async_trait]
impl Summariser for Offline {
    /// Never fails.
    async fn summarise(&self, request: &SummaryRequest) -> Result<String, ModelError> {
        Ok(summary::summary(request))
    }

    fn name(&self) -> &str {
        "offline"
    }

    fn window_tokens(&self) -> u32 {
        64_000
    }
}

#[async_trait]
impl Extractor for Offline {
    /// Never fails.
    async fn extract(&self, lines: &[Line]) -> Result<Vec<Candidate>, ModelError> {
        Ok(facts::facts(lines))
    }

    fn strategy(&self) -> &str {
        "rules-2"
    }
}
