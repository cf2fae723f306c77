//! An HTTP server that answers what a test tells it to, request by request.

use colloquy_llm::{ChatRequest, ModelConfig, Provider, Turn};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

#[derive(Debug, Clone)]
pub enum Answer {
    /// Status, further header lines, body.
    Status(u16, &'static str, String),
    /// Reads the request and says nothing.
    Nothing,
    /// Closes after half of an answer.
    Half,
}

impl Answer {
    pub fn ok(body: &Value) -> Self {
        Self::Status(200, "", body.to_string())
    }

    pub fn error(status: u16, body: &str) -> Self {
        Self::Status(status, "", body.to_owned())
    }
}

/// A request as it came.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    pub path: String,
    /// Lower-case names, as sent otherwise.
    pub headers: Vec<String>,
    pub body: Value,
}

pub struct Server {
    pub url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Answers in this order; the last is repeated.
    pub async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let answers = Arc::new(Mutex::new(answers.into_iter().collect::<VecDeque<_>>()));
        let log = seen.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, answers.clone(), log.clone()));
            }
        });
        Self { url, seen }
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub fn config(&self, provider: Provider) -> ModelConfig {
        ModelConfig {
            provider,
            base_url: format!("{}/", self.url),
            name: "test-model".into(),
            embedding_name: "test-embedding".into(),
            api_key: "sk-test".into(),
            timeout_s: 10,
            ..ModelConfig::default()
        }
    }
}

async fn serve(stream: TcpStream, answers: Arc<Mutex<VecDeque<Answer>>>, log: Arc<Mutex<Vec<Seen>>>) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await {
        log.lock().unwrap().push(request);
        let answer = {
            let mut answers = answers.lock().unwrap();
            if answers.len() > 1 {
                answers.pop_front().unwrap()
            } else {
                answers[0].clone()
            }
        };
        match answer {
            Answer::Nothing => std::future::pending().await,
            Answer::Half => {
                let _ = stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"choices\"")
                    .await;
                return;
            }
            Answer::Status(status, headers, body) => {
                let head = format!(
                    "HTTP/1.1 {status} x\r\n{headers}content-length: {}\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all((head + &body).as_bytes()).await;
            }
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut seen = Seen::default();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if seen.path.is_empty() {
            seen.path = line.split(' ').nth(1)?.to_owned();
        } else if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().ok()?;
        } else {
            seen.headers.push(line.to_owned());
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    seen.body = serde_json::from_slice(&body).ok()?;
    Some(seen)
}

/// A small question with a bound that keeps a test from hanging.
pub fn question() -> ChatRequest {
    ChatRequest {
        system: "Be brief.".into(),
        turns: vec![
            Turn::user("Hello"),
            Turn::assistant("Yes?"),
            Turn::user("How are you?"),
        ],
        max_tokens: 100,
        deadline: Some(Duration::from_secs(10)),
        ..ChatRequest::default()
    }
}
