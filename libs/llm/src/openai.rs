//! Any OpenAI-compatible API: chat completions and embeddings.

use crate::http::{client, json, required};
use crate::{ChatRequest, Model, ModelConfig, ModelError};
use async_trait::async_trait;
use reqwest::{Client, RequestBuilder};
use serde_json::json;

pub struct OpenAi {
    client: Client,
    base_url: String,
    name: String,
    embedding_name: String,
    api_key: String,
}

impl OpenAi {
    pub fn new(config: &ModelConfig) -> Result<Self, ModelError> {
        let base_url = if config.base_url.is_empty() {
            "https://api.openai.com/v1"
        } else {
            &config.base_url
        };
        Ok(Self {
            client: client(config)?,
            base_url: base_url.trim_end_matches('/').to_owned(),
            name: required("name", &config.name)?,
            embedding_name: config.embedding_name.clone(),
            api_key: config.api_key.clone(),
        })
    }

    fn post(&self, path: &str) -> RequestBuilder {
        let request = self.client.post(format!("{}/{path}", self.base_url));
        if self.api_key.is_empty() {
            request
        } else {
            request.bearer_auth(&self.api_key)
        }
    }
}

#[async_trait]
impl Model for OpenAi {
    async fn chat(&self, request: &ChatRequest) -> Result<String, ModelError> {
        let mut body = json!({
            "model": self.name,
            "max_tokens": request.max_tokens,
            "messages": [
                {"role": "system", "content": request.system},
                {"role": "user", "content": request.user},
            ],
        });
        if request.json {
            body["response_format"] = json!({"type": "json_object"});
        }
        let answer = json(self.post("chat/completions").json(&body)).await?;
        let choice = &answer["choices"][0];
        if choice["message"]["refusal"].is_string() || choice["finish_reason"] == "content_filter" {
            return Err(ModelError::Refused);
        }
        let text = choice["message"]["content"]
            .as_str()
            .filter(|text| !text.trim().is_empty());
        text.map(str::to_owned)
            .ok_or_else(|| ModelError::Malformed("no text in the answer".into()))
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        let name = required("embedding_name", &self.embedding_name)?;
        let answer = json(
            self.post("embeddings")
                .json(&json!({"model": name, "input": texts})),
        )
        .await?;
        let vectors: Option<Vec<Vec<f32>>> = answer["data"].as_array().and_then(|rows| {
            rows.iter()
                .map(|row| serde_json::from_value(row["embedding"].clone()).ok())
                .collect()
        });
        vectors
            .filter(|vectors| vectors.len() == texts.len())
            .ok_or_else(|| ModelError::Malformed("not one vector per text".into()))
    }

    fn name(&self) -> &str {
        &self.name
    }
}
