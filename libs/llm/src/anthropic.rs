//! Anthropic's Messages API.

use crate::http::{client, json, required};
use crate::{ChatRequest, Model, ModelConfig, ModelError};
use async_trait::async_trait;
use reqwest::Client;
use serde_json::json;

const VERSION: &str = "2023-06-01";

pub struct Anthropic {
    client: Client,
    base_url: String,
    name: String,
    api_key: String,
}

impl Anthropic {
    pub fn new(config: &ModelConfig) -> Result<Self, ModelError> {
        let base_url = if config.base_url.is_empty() {
            "https://api.anthropic.com"
        } else {
            &config.base_url
        };
        Ok(Self {
            client: client(config)?,
            base_url: base_url.trim_end_matches('/').to_owned(),
            name: required("name", &config.name)?,
            api_key: required("api_key", &config.api_key)?,
        })
    }
}

#[async_trait]
impl Model for Anthropic {
    async fn chat(&self, request: &ChatRequest) -> Result<String, ModelError> {
        let body = json!({
            "model": self.name,
            "max_tokens": request.max_tokens,
            "system": request.system,
            "messages": [{"role": "user", "content": request.user}],
        });
        let call = self.client.post(format!("{}/v1/messages", self.base_url));
        let call = call
            .header("x-api-key", &self.api_key)
            .header("anthropic-version", VERSION)
            .json(&body);
        let answer = json(call).await?;
        if answer["stop_reason"] == "refusal" {
            return Err(ModelError::Refused);
        }
        let blocks = answer["content"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        let text = texts.join("\n");
        if text.trim().is_empty() {
            Err(ModelError::Malformed("no text in the answer".into()))
        } else {
            Ok(text)
        }
    }

    async fn embed(&self, _: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        Err(ModelError::Unsupported("this provider has no embeddings".into()))
    }

    fn name(&self) -> &str {
        &self.name
    }
}
