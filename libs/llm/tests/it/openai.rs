//! The OpenAI-compatible provider.

use crate::server::{Answer, Server, question};
use colloquy_llm::{JsonSchema, Model, ModelConfig, ModelError, OpenAi, Provider, Retry, Retrying};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn said(text: &str) -> Answer {
    Answer::ok(&json!({
        "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 3},
    }))
}

/// One attempt.
fn single(server: &Server) -> OpenAi {
    OpenAi::new(&server.config(Provider::Openai)).unwrap()
}

/// Several, with pauses that a test can wait for.
fn repeated(server: &Server) -> Retrying {
    let retry = Retry {
        attempts: 3,
        first_pause: Duration::from_millis(1),
        longest_pause: Duration::from_millis(5),
    };
    Retrying::new(Arc::new(single(server)), retry, Duration::from_secs(10))
}

async fn failure(answer: Answer) -> ModelError {
    let server = Server::start([answer]).await;
    single(&server).chat(&question()).await.unwrap_err()
}

#[tokio::test]
async fn an_answer_comes_with_what_it_took() {
    let server = Server::start([said(" Fine. ")]).await;
    let reply = single(&server).chat(&question()).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.truncated), ("Fine.", false));
    assert_eq!((reply.input_tokens, reply.output_tokens), (Some(12), Some(3)));
    let seen = &server.seen()[0];
    assert_eq!(seen.path, "/chat/completions");
    assert!(seen.headers.contains(&"authorization: Bearer sk-test".to_owned()));
    assert_eq!(
        seen.body,
        json!({
            "model": "test-model",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hello"},
                {"role": "assistant", "content": "Yes?"},
                {"role": "user", "content": "How are you?"},
            ],
            "max_tokens": 100,
        })
    );
}

#[tokio::test]
async fn failures_are_classified() {
    assert_eq!(failure(Answer::error(401, "{}")).await, ModelError::Auth);
    assert!(matches!(
        failure(Answer::error(500, "oops")).await,
        ModelError::Transient(_)
    ));
    assert!(matches!(failure(Answer::Half).await, ModelError::Transient(_)));
    assert!(matches!(
        failure(Answer::error(404, "")).await,
        ModelError::Unsupported(_)
    ));
    assert!(matches!(
        failure(Answer::error(302, "")).await,
        ModelError::Unsupported(_)
    ));
    for garbage in [
        "<html>",
        "",
        "[]",
        "{\"choices\":[]}",
        "{\"choices\":[{\"message\":{\"content\":\" \"}}]}",
    ] {
        let error = failure(Answer::error(200, garbage)).await;
        assert!(matches!(error, ModelError::Malformed(_)), "{garbage}: {error}");
    }
    let refusal = json!({"choices": [{"message": {"content": null, "refusal": "I can't."}}]});
    assert_eq!(failure(Answer::ok(&refusal)).await, ModelError::Refused);
    let disguised = json!({"error": {"code": 429, "message": "slow down"}});
    assert_eq!(
        failure(Answer::ok(&disguised)).await,
        ModelError::Rate { retry_after: None }
    );
}

#[tokio::test]
async fn a_server_that_is_not_there_is_transient() {
    let config = ModelConfig {
        base_url: "http://127.0.0.1:1".into(),
        ..Server::start([said("")]).await.config(Provider::Openai)
    };
    let error = OpenAi::new(&config).unwrap().chat(&question()).await.unwrap_err();
    assert!(matches!(error, ModelError::Transient(_)), "{error}");
}

#[tokio::test]
async fn an_overflow_tells_its_numbers() {
    let body = "{\"error\":{\"message\":\"This model's maximum context length is 8192 tokens. However, your messages \
                resulted in 9001 tokens.\",\"code\":\"context_length_exceeded\"}}";
    let overflow = ModelError::Overflow {
        observed: Some(9_001),
        limit: Some(8_192),
    };
    assert_eq!(failure(Answer::error(400, body)).await, overflow);
}

#[tokio::test]
async fn a_server_that_says_nothing_ends_at_the_deadline() {
    let server = Server::start([Answer::Nothing]).await;
    let mut request = question();
    request.deadline = Some(Duration::from_millis(150));
    for model in [&single(&server) as &dyn Model, &repeated(&server)] {
        let start = Instant::now();
        assert_eq!(model.chat(&request).await, Err(ModelError::Deadline));
        assert!(start.elapsed() < Duration::from_secs(5));
    }
    assert_eq!(server.seen().len(), 2, "a deadline is not tried again");
}

#[tokio::test]
async fn a_busy_provider_is_asked_again_and_its_wait_is_kept() {
    let busy = Answer::Status(429, "retry-after: 0.2\r\n", "{}".into());
    let server = Server::start([busy, Answer::error(500, ""), said("Fine.")]).await;
    let start = Instant::now();
    let reply = repeated(&server).chat(&question()).await.unwrap();
    assert_eq!(reply.text, "Fine.");
    assert!(start.elapsed() >= Duration::from_millis(200));
    assert_eq!(server.seen().len(), 3);
}

#[tokio::test]
async fn attempts_have_an_end_and_a_wrong_key_is_tried_once() {
    let server = Server::start([Answer::error(500, "")]).await;
    assert!(matches!(
        repeated(&server).chat(&question()).await,
        Err(ModelError::Transient(_))
    ));
    assert_eq!(server.seen().len(), 3);
    let server = Server::start([Answer::error(401, "")]).await;
    assert_eq!(repeated(&server).chat(&question()).await, Err(ModelError::Auth));
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_wait_beyond_the_deadline_is_told_at_once() {
    let busy = Answer::Status(429, "retry-after: 3600\r\n", "{}".into());
    let server = Server::start([busy]).await;
    let error = repeated(&server).chat(&question()).await.unwrap_err();
    let asked = Some(Duration::from_secs(3_600));
    assert_eq!(error, ModelError::Rate { retry_after: asked });
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn what_a_server_does_not_understand_is_asked_otherwise_from_then_on() {
    let complaint = |words: &str| Answer::error(400, &json!({"error": {"message": words}}).to_string());
    let server = Server::start([
        complaint("'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
        complaint("'temperature' does not support 0 with this model."),
        complaint("This response_format type is unavailable now"),
        said("{}"),
    ])
    .await;
    let model = single(&server);
    let mut request = question();
    request.temperature = Some(0.0);
    request.json_schema = Some(JsonSchema {
        name: "answer".into(),
        schema: json!({"type": "object"}),
    });
    model.chat(&request).await.unwrap();
    model.chat(&request).await.unwrap();
    let bodies: Vec<Value> = server.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!(bodies.len(), 5);
    assert_eq!(bodies[0]["response_format"]["json_schema"]["name"], "answer");
    for body in &bodies[3..] {
        assert_eq!(body["response_format"], json!({"type": "json_object"}));
        assert_eq!(body["max_completion_tokens"], 100);
        assert!(body["max_tokens"].is_null() && body["temperature"].is_null());
    }
}

#[tokio::test]
async fn the_same_complaint_twice_is_the_callers() {
    let complaint = Answer::error(
        400,
        "{\"error\":{\"message\":\"max_completion_tokens is too large\"}}",
    );
    let server = Server::start([complaint]).await;
    let error = single(&server).chat(&question()).await.unwrap_err();
    assert!(matches!(error, ModelError::Unsupported(_)));
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn vectors_come_in_the_order_of_their_texts() {
    let rows = json!({"data": [{"index": 1, "embedding": [0.5, 2]}, {"index": 0, "embedding": [1, 0.25]}]});
    let server = Server::start([Answer::ok(&rows)]).await;
    let texts = ["a".to_owned(), "b".to_owned()];
    let vectors = single(&server).embed(&texts).await.unwrap();
    assert_eq!(vectors, [[1.0, 0.25], [0.5, 2.0]]);
    assert_eq!(server.seen()[0].body["model"], "test-embedding");
    let too_few = single(&server).embed(&texts[..1]).await;
    assert!(matches!(too_few, Err(ModelError::Malformed(_))));
}

#[tokio::test]
async fn embeddings_need_their_model() {
    let mut config = Server::start([said("")]).await.config(Provider::Openai);
    config.embedding_name = String::new();
    let error = OpenAi::new(&config)
        .unwrap()
        .embed(&["a".into()])
        .await
        .unwrap_err();
    assert_eq!(
        error,
        ModelError::Unsupported("set `model.embedding_name`".into())
    );
}
