//! Anthropic's provider.

use crate::server::{Answer, Server, question};
use colloquy_llm::{Anthropic, JsonSchema, Model, ModelError, Provider};
use serde_json::json;

async fn ask(answer: Answer) -> (Result<String, ModelError>, Server) {
    let server = Server::start([answer]).await;
    let model = Anthropic::new(&server.config(Provider::Anthropic)).unwrap();
    (model.chat(&question()).await.map(|reply| reply.text), server)
}

#[tokio::test]
async fn an_answer_is_its_texts_together() {
    let answer = json!({"content": [{"type": "text", "text": "Fi"}, {"type": "text", "text": "ne."}]});
    let (text, server) = ask(Answer::ok(&answer)).await;
    assert_eq!(text.unwrap(), "Fine.");
    let seen = &server.seen()[0];
    assert_eq!(seen.path, "/v1/messages");
    assert!(seen.headers.contains(&"x-api-key: sk-test".to_owned()));
    assert_eq!(seen.body["system"], "Be brief.");
    assert_eq!(
        seen.body["messages"][1],
        json!({"role": "assistant", "content": "Yes?"})
    );
}

#[tokio::test]
async fn failures_are_classified() {
    let overflow = "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: \
                    209761 tokens > 200000 maximum\"}}";
    let expected = ModelError::Overflow {
        observed: Some(209_761),
        limit: Some(200_000),
    };
    assert_eq!(ask(Answer::error(400, overflow)).await.0, Err(expected));
    assert_eq!(ask(Answer::error(401, "{}")).await.0, Err(ModelError::Auth));
    let credit = "{\"error\":{\"message\":\"Your credit balance is too low\"}}";
    assert_eq!(ask(Answer::error(400, credit)).await.0, Err(ModelError::Auth));
    let refusal = json!({"content": [], "stop_reason": "refusal"});
    assert_eq!(ask(Answer::ok(&refusal)).await.0, Err(ModelError::Refused));
    let busy = Answer::error(529, "{\"error\":{\"type\":\"overloaded_error\"}}");
    assert!(matches!(ask(busy).await.0, Err(ModelError::Transient(_))));
    assert!(matches!(
        ask(Answer::error(200, "garbage")).await.0,
        Err(ModelError::Malformed(_))
    ));
}

#[tokio::test]
async fn a_shape_is_asked_for_as_a_tool() {
    let answer = json!({"content": [{"type": "tool_use", "name": "answer", "input": {"a": 1}}], "stop_reason": "tool_use"});
    let server = Server::start([Answer::ok(&answer)]).await;
    let model = Anthropic::new(&server.config(Provider::Anthropic)).unwrap();
    let mut request = question();
    request.json_schema = Some(JsonSchema {
        name: "answer".into(),
        schema: json!({"type": "object"}),
    });
    assert_eq!(model.chat(&request).await.unwrap().text, "{\"a\":1}");
    assert_eq!(
        server.seen()[0].body["tool_choice"],
        json!({"type": "tool", "name": "answer"})
    );
}

#[tokio::test]
async fn there_are_no_embeddings() {
    let server = Server::start([Answer::Nothing]).await;
    let model = Anthropic::new(&server.config(Provider::Anthropic)).unwrap();
    assert!(matches!(
        model.embed(&["a".into()]).await,
        Err(ModelError::Unsupported(_))
    ));
    assert!(server.seen().is_empty());
}
