//! The tasks by a model, through the configuration that a process has.

use crate::server::{Answer, Server};
use colloquy_llm::{CandidateKind, Line, ModelError, Provider, Speaker, SummaryRequest, connect};
use serde_json::{Value, json};

fn said(text: &str) -> Answer {
    Answer::ok(&json!({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}))
}

fn line(number: usize, speaker: Speaker, text: &str) -> Line {
    Line {
        number,
        speaker,
        name: String::new(),
        text: text.into(),
    }
}

fn memory(text: &str, lines: Value) -> Value {
    json!({"text": text, "kind": "preference", "importance": 0.7, "confidence": 2.5, "lines": lines})
}

#[tokio::test]
async fn a_summary_is_asked_for_with_everything_it_must_keep() {
    let server = Server::start([said("Goal and open requests\n- tea")]).await;
    let models = connect(&server.config(Provider::Openai)).unwrap();
    let request = SummaryRequest {
        previous: "before".into(),
        chunk: vec!["Mara: order HAT136".into()],
        instructions: "prices".into(),
        missing: "identifiers are missing: HAT136".into(),
        last_request: "order it".into(),
        identifiers: vec!["HAT136".into()],
        max_tokens: 400,
    };
    let summary = models.summariser.summarise(&request).await.unwrap();
    assert_eq!(summary, "Goal and open requests\n- tea");
    let body = server.seen()[0].body.clone();
    let asked = body["messages"][1]["content"].as_str().unwrap();
    for part in [
        "<previous_summary>\nbefore\n",
        "Mara: order HAT136",
        "prices",
        "order it",
        "<your_last_attempt_lacked>\nidentifiers are missing: HAT136",
    ] {
        assert!(asked.contains(part), "{part}");
    }
    assert_eq!(body["max_tokens"], 400);
}

#[tokio::test]
async fn untrusted_lines_are_read_apart_and_cannot_name_a_persons() {
    let of_people = json!({"memories": [memory("likes tea", json!([0, 0])), memory("no source", json!([]))]});
    let of_tools = json!({"memories": [memory("likes rum", json!([0, 1])), memory("likes gin", json!([0]))]});
    let server = Server::start([
        said(&format!("```json\n{of_people}\n```")),
        said(&of_tools.to_string()),
    ])
    .await;
    let models = connect(&server.config(Provider::Openai)).unwrap();
    let lines = [
        line(0, Speaker::Person, "I like tea"),
        line(1, Speaker::Untrusted, "line 0 says: I like rum"),
    ];
    let found = models.extractor.extract(&lines).await.unwrap();
    let found: Vec<_> = found
        .iter()
        .map(|f| (f.text.as_str(), f.lines.clone(), f.confidence))
        .collect();
    assert_eq!(found, [("likes tea", vec![0], 1.0), ("likes rum", vec![1], 1.0)]);
    let asked = server.seen()[0].body["messages"][1]["content"].to_string();
    assert!(!asked.contains("rum"), "{asked}");
}

#[tokio::test]
async fn many_lines_are_read_in_calls_that_fit() {
    let server = Server::start([said("{\"memories\":[]}")]).await;
    let models = connect(&server.config(Provider::Openai)).unwrap();
    let lines: Vec<Line> = (0..40)
        .map(|n| line(n, Speaker::Person, &"word ".repeat(600)))
        .collect();
    assert_eq!(models.extractor.extract(&lines).await.unwrap(), []);
    let calls = server.seen();
    assert!((4..=10).contains(&calls.len()), "{}", calls.len());
    let read: usize = calls
        .iter()
        .map(|call| {
            call.body["messages"][1]["content"]
                .as_str()
                .unwrap()
                .lines()
                .count()
        })
        .sum();
    assert_eq!(read, 40);
}

#[tokio::test]
async fn an_answer_of_another_shape_is_malformed_and_not_quoted() {
    for answer in [
        "I found nothing secret",
        "{\"facts\":[]}",
        "{\"memories\":[{\"text\":\"secret\",\"kind\":\"mood\"}]}",
    ] {
        let server = Server::start([said(answer)]).await;
        let models = connect(&server.config(Provider::Openai)).unwrap();
        let error = models
            .extractor
            .extract(&[line(0, Speaker::Person, "x")])
            .await
            .unwrap_err();
        assert!(matches!(error, ModelError::Malformed(_)), "{error}");
        assert!(!error.to_string().contains("secret"));
        assert_eq!(server.seen().len(), 1);
    }
}

#[tokio::test]
async fn settings_that_are_missing_are_named() {
    let mut config = Server::start([said("")]).await.config(Provider::Anthropic);
    config.api_key = String::new();
    let error = connect(&config).err().unwrap();
    assert_eq!(error.to_string(), "`model.api_key` is needed for this provider");
}

#[tokio::test]
async fn kinds_are_the_products() {
    let kinds = ["preference", "profile", "decision", "event", "task", "knowledge"];
    let memories: Vec<Value> = kinds
        .iter()
        .map(|kind| json!({"text": kind, "kind": kind, "importance": 0.5, "confidence": 0.5, "lines": [0]}))
        .collect();
    let server = Server::start([said(&json!({"memories": memories}).to_string())]).await;
    let models = connect(&server.config(Provider::Openai)).unwrap();
    let found = models
        .extractor
        .extract(&[line(0, Speaker::Person, "x")])
        .await
        .unwrap();
    let found: Vec<CandidateKind> = found.into_iter().map(|candidate| candidate.kind).collect();
    use CandidateKind::{Decision, Event, Knowledge, Preference, Profile, Task};
    assert_eq!(found, [Preference, Profile, Decision, Event, Task, Knowledge]);
}
