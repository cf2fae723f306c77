//! Any OpenAI-compatible API: chat completions and embeddings.

use crate::http::{Failure, client, json, required};
use crate::{ChatReply, ChatRequest, Model, ModelConfig, ModelError};
use async_trait::async_trait;
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// What a server turned out not to understand, one bit each. Compatible servers differ in little else.
const NO_MAX_TOKENS: u8 = 1;
const NO_SCHEMA: u8 = 2;
const NO_TEMPERATURE: u8 = 4;

/// Single attempts; [`crate::Retrying`] repeats them.
pub struct OpenAi {
    client: Client,
    base_url: String,
    name: String,
    embedding_name: String,
    api_key: String,
    window_tokens: u32,
    timeout: Duration,
    learned: AtomicU8,
}

impl OpenAi {
    /// # Errors
    /// `Unsupported` without a model name or HTTP client.
    pub fn new(config: &ModelConfig) -> Result<Self, ModelError> {
        let base_url = if config.base_url.is_empty() {
            "https://api.openai.com/v1"
        } else {
            &config.base_url
        };
        Ok(Self {
            client: client()?,
            base_url: base_url.trim_end_matches('/').to_owned(),
            name: required("name", &config.name)?,
            embedding_name: config.embedding_name.clone(),
            api_key: config.api_key.clone(),
            window_tokens: config.window_tokens,
            timeout: config.timeout(),
            learned: AtomicU8::new(0),
        })
    }

    fn post(&self, path: &str) -> RequestBuilder {
        let request = self.client.post(format!("{}/{path}", self.base_url));
        // Servers on one's own machine often want no key.
        if self.api_key.is_empty() {
            request
        } else {
            request.bearer_auth(&self.api_key)
        }
    }

    fn body(&self, request: &ChatRequest, lacking: u8) -> Value {
        let mut messages = Vec::new();
        if !request.system.is_empty() {
            messages.push(json!({"role": "system", "content": request.system}));
        }
        for turn in &request.turns {
            messages.push(json!({"role": turn.speaks.as_str(), "content": turn.text}));
        }
        let mut body = json!({"model": self.name, "messages": messages});
        let most = if lacking & NO_MAX_TOKENS == 0 {
            "max_tokens"
        } else {
            "max_completion_tokens"
        };
        body[most] = request.max_tokens.into();
        if let Some(temperature) = request.temperature.filter(|_| lacking & NO_TEMPERATURE == 0) {
            body["temperature"] = temperature.into();
        }
        if let Some(shape) = &request.json_schema {
            body["response_format"] = if lacking & NO_SCHEMA == 0 {
                let schema = json!({"name": shape.name, "strict": true, "schema": shape.schema});
                json!({"type": "json_schema", "json_schema": schema})
            } else {
                json!({"type": "json_object"})
            };
        }
        body
    }

    /// Sends, and sends differently as long as the server names something else that it does not understand.
    async fn complete(&self, request: &ChatRequest) -> Result<Value, ModelError> {
        let limit = request.deadline.unwrap_or(self.timeout);
        let mut lacking = self.learned.load(Ordering::Relaxed);
        loop {
            let call = self.post("chat/completions").json(&self.body(request, lacking));
            let failure = match json(call, limit).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let more = lacking | not_understood(&failure, request);
            if more == lacking {
                return Err(failure.error);
            }
            lacking = more;
            self.learned.fetch_or(lacking, Ordering::Relaxed);
        }
    }
}

/// The parameters that an error complains of.
fn not_understood(failure: &Failure, request: &ChatRequest) -> u8 {
    if !matches!(failure.error, ModelError::Unsupported(_)) {
        return 0;
    }
    let body = failure.body.to_lowercase();
    let mut found = 0;
    if body.contains("max_completion_tokens") {
        found |= NO_MAX_TOKENS;
    }
    if request.json_schema.is_some() && (body.contains("response_format") || body.contains("json_schema")) {
        found |= NO_SCHEMA;
    }
    if request.temperature.is_some() && body.contains("temperature") {
        found |= NO_TEMPERATURE;
    }
    found
}

fn reply(answer: &Value) -> Result<ChatReply, ModelError> {
    let choice = &answer["choices"][0];
    let refusal = choice["message"]["refusal"].as_str().unwrap_or_default();
    if !refusal.is_empty() || choice["finish_reason"] == "content_filter" {
        return Err(ModelError::Refused);
    }
    let tokens = |name: &str| answer["usage"][name].as_u64().and_then(|n| u32::try_from(n).ok());
    let text = choice["message"]["content"].as_str().map(str::trim);
    let text = text
        .filter(|text| !text.is_empty())
        .ok_or_else(|| ModelError::Malformed("no text in the answer".into()))?;
    Ok(ChatReply {
        text: text.to_owned(),
        truncated: choice["finish_reason"] == "length",
        input_tokens: tokens("prompt_tokens"),
        output_tokens: tokens("completion_tokens"),
    })
}

/// Vectors by their index, where rows name one: the order is not promised.
fn vectors(answer: &Value, count: usize) -> Option<Vec<Vec<f32>>> {
    let rows = answer["data"].as_array().filter(|rows| rows.len() == count)?;
    let mut placed: Vec<Option<Vec<f32>>> = vec![None; count];
    for (at, row) in rows.iter().enumerate() {
        let index = match row["index"].as_u64() {
            Some(index) => usize::try_from(index).ok()?,
            None => at,
        };
        let numbers = row["embedding"]
            .as_array()
            .filter(|numbers| !numbers.is_empty())?;
        let vector: Option<Vec<f32>> = numbers.iter().map(|n| n.as_f64().map(|n| n as f32)).collect();
        *placed.get_mut(index)? = Some(vector?);
    }
    placed.into_iter().collect()
}

#[async_trait]
impl Model for OpenAi {
    async fn chat(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        reply(&self.complete(request).await?)
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        let name = required("embedding_name", &self.embedding_name)?;
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let call = self
            .post("embeddings")
            .json(&json!({"model": name, "input": texts, "encoding_format": "float"}));
        let answer = json(call, self.timeout).await.map_err(|failure| failure.error)?;
        vectors(&answer, texts.len()).ok_or_else(|| ModelError::Malformed("not one vector per text".into()))
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn window_tokens(&self) -> u32 {
        self.window_tokens
    }
}
