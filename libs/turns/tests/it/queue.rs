use crate::simulator::{Session, event};
use colloquy_types::UnixMillis;
use colloquy_types::policy::{Policy, Profile};
use colloquy_types::queue::{Outcome, QueueMode};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

fn mode(value: &Value) -> Option<QueueMode> {
    serde_json::from_value(value.clone()).ok()
}

#[test]
fn every_queue_case_holds() {
    for case in crate::cases("queue.jsonl") {
        check(&case);
    }
}

fn check(case: &Value) {
    let name = &case["name"];
    let overrides = match &case["policy"] {
        Value::Null => String::new(),
        policy => serde_json::json!({ "queue": policy }).to_string(),
    };
    let policy = Policy::resolve(Profile::Goclaw, &[&overrides]).unwrap();
    let mut session = Session::new(case["turn_ms"].as_i64().unwrap_or(0));
    session.renew_ms = case["renew_ms"].as_i64().unwrap_or(0);
    let (mut refused, mut seen) = (HashMap::new(), HashSet::new());
    for raw in case["events"].as_array().unwrap() {
        let at = raw["at"].as_i64().unwrap();
        // A message that arrives with the start may be in either turn: here it comes before the start.
        session.advance(at - 1);
        session.state.now = UnixMillis(at);
        let text = match raw["kind"].as_str().unwrap() {
            "stop" => "/stop",
            "stopall" => "/stopall",
            _ => raw["text"].as_str().unwrap(),
        };
        let mut event = event(
            text,
            raw["sender"].as_str().unwrap_or("p1"),
            raw["thread"].as_str(),
        );
        event.mode = mode(&raw["mode"]);
        event.debounce_ms = raw["debounce"].as_i64();
        if let Some(id) = raw["id"].as_str()
            && !seen.insert(id.to_owned())
        {
            continue; // the inbox answers duplicates before any decision
        }
        if let Err(error) = session.accept(&event, &policy) {
            refused.insert(text.to_owned(), error.reason.as_str());
        }
    }
    session.advance(10_000_000);
    expect_turns(case, &session);
    for (text, outcome) in case["outcomes"].as_object().into_iter().flatten() {
        if outcome == "DUPLICATE" {
            continue;
        }
        let found = session.outcome(text);
        assert_eq!(found.map(Outcome::as_str), outcome.as_str(), "{name}: {text}");
    }
    for (text, error) in case["errors"].as_object().into_iter().flatten() {
        assert_eq!(refused.get(text).copied(), error.as_str(), "{name}: {text}");
    }
}

fn expect_turns(case: &Value, session: &Session) {
    let (name, expected) = (&case["name"], case["expect_turns"].as_array().unwrap());
    if case["tolerance"] == "edge" {
        let all: Vec<String> = session.started.iter().map(|(_, text, _)| text.clone()).collect();
        assert_eq!(all.join("\n"), "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11", "{name}");
        assert_eq!(session.started[0].0, 4_000, "{name}");
        return;
    }
    assert_eq!(
        session.started.len(),
        expected.len(),
        "{name}: {:?}",
        session.started
    );
    for (turn, want) in session.started.iter().zip(expected) {
        assert_eq!(turn.1, want[1].as_str().unwrap(), "{name}");
        if let Some(start) = want[0].as_i64() {
            assert_eq!(turn.0, start, "{name}: {}", turn.1);
        }
    }
}
