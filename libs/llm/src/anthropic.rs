//! Anthropic's Messages API.

use crate::http::{client, json, required};
use crate::{ChatReply, ChatRequest, Model, ModelConfig, ModelError};
use async_trait::async_trait;
use reqwest::Client;
use reqwest::header::HeaderValue;
use serde_json::{Value, json};
use std::time::Duration;

const VERSION: &str = "2023-06-01";

/// Single attempts; [`crate::Retrying`] repeats them.
pub struct Anthropic {
    client: Client,
    base_url: String,
    name: String,
    api_key: HeaderValue,
    window_tokens: u32,
    timeout: Duration,
}

impl Anthropic {
    /// # Errors
    /// `Unsupported` without a model name, a key or an HTTP client.
    pub fn new(config: &ModelConfig) -> Result<Self, ModelError> {
        let base_url = if config.base_url.is_empty() {
            "https://api.anthropic.com"
        } else {
            &config.base_url
        };
        let mut api_key = HeaderValue::from_str(&required("api_key", &config.api_key)?)
            .map_err(|_| ModelError::Unsupported("`model.api_key` has characters that no key has".into()))?;
        api_key.set_sensitive(true);
        Ok(Self {
            client: client()?,
            base_url: base_url.trim_end_matches('/').to_owned(),
            name: required("name", &config.name)?,
            api_key,
            window_tokens: config.window_tokens,
            timeout: config.timeout(),
        })
    }

    fn body(&self, request: &ChatRequest) -> Value {
        let messages: Vec<Value> = request
            .turns
            .iter()
            .map(|turn| json!({"role": turn.speaks.as_str(), "content": turn.text}))
            .collect();
        let mut body = json!({"model": self.name, "max_tokens": request.max_tokens, "messages": messages});
        if !request.system.is_empty() {
            body["system"] = request.system.as_str().into();
        }
        if let Some(temperature) = request.temperature {
            body["temperature"] = temperature.into();
        }
        // A forced call of a tool with that schema is how every model of the family answers in a shape.
        if let Some(shape) = &request.json_schema {
            body["tools"] = json!([{
                "name": shape.name,
                "description": "Gives the answer.",
                "input_schema": shape.schema,
            }]);
            body["tool_choice"] = json!({"type": "tool", "name": shape.name});
        }
        body
    }
}

fn reply(answer: &Value, shaped: bool) -> Result<ChatReply, ModelError> {
    if answer["stop_reason"] == "refusal" {
        return Err(ModelError::Refused);
    }
    let blocks = answer["content"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let text = if shaped {
        let call = blocks.iter().find(|block| block["type"] == "tool_use");
        call.map(|call| call["input"].to_string()).unwrap_or_default()
    } else {
        let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        texts.concat().trim().to_owned()
    };
    if text.is_empty() {
        return Err(ModelError::Malformed("no text in the answer".into()));
    }
    let tokens = |name: &str| answer["usage"][name].as_u64().and_then(|n| u32::try_from(n).ok());
    Ok(ChatReply {
        text,
        truncated: answer["stop_reason"] == "max_tokens"
            || answer["stop_reason"] == "model_context_window_exceeded",
        input_tokens: tokens("input_tokens"),
        output_tokens: tokens("output_tokens"),
    })
}

#[async_trait]
impl Model for Anthropic {
    async fn chat(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        let call = self
            .client
            .post(format!("{}/v1/messages", self.base_url))
            .header("x-api-key", self.api_key.clone())
            .header("anthropic-version", VERSION)
            .json(&self.body(request));
        let limit = request.deadline.unwrap_or(self.timeout);
        let answer = json(call, limit).await.map_err(|failure| failure.error)?;
        reply(&answer, request.json_schema.is_some())
    }

    async fn embed(&self, _: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        Err(ModelError::Unsupported("this provider has no embeddings".into()))
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn window_tokens(&self) -> u32 {
        self.window_tokens
    }
}
