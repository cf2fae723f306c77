//! The shared acceptance cases.

use crate::support::{call, calls, items, quarter_chars, shared, tool};
use colloquy_context::compaction::{CompactionOptions, Stats, TriggerReason, plan_cut, trigger};
use colloquy_context::prune::{CLEARED, PruneInput, Pruned, prune};
use colloquy_context::repair::repair;
use colloquy_context::{PruneOptions, Watermarks};
use colloquy_types::message::{Completion, Message, Part, Role};
use serde_json::{Value, json};

fn cases(file: &str) -> Vec<Value> {
    let Some(path) = shared(&format!("cases/{file}")) else {
        return Vec::new();
    };
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn repair_message(line: &Value) -> Message {
    let mut message = match text(&line["role"]) {
        "user" => return Message::user(text(&line["text"])),
        "tool" => return tool(text(&line["call_id"]), text(&line["text"])),
        _ => calls(Vec::new()),
    };
    if !text(&line["text"]).is_empty() {
        message.parts.push(Part::text(text(&line["text"])));
    }
    for one in line["calls"].as_array().unwrap() {
        message.parts.push(call(
            text(&one["id"]),
            text(&one["name"]),
            text(&one["arguments"]),
        ));
    }
    message.completion = match text(&line["stop"]) {
        "aborted" => Completion::Aborted,
        "error" => Completion::Error,
        _ => Completion::Complete,
    };
    message
}

fn rendered(message: &Message) -> Value {
    if let Some(result) = message.tool_results().next() {
        return if result.is_error {
            json!({"role": "tool", "call_id": result.call_id, "synthetic_error": true})
        } else {
            let Part::Text { text } = &result.parts[0] else {
                panic!("a result of the cases is text")
            };
            json!({"role": "tool", "call_id": result.call_id, "text": text})
        };
    }
    if message.role == Role::User {
        return json!({"role": "user", "text": message.text()});
    }
    let calls: Vec<Value> = message
        .tool_calls()
        .map(|call| json!({"id": call.id, "name": call.name, "arguments": call.arguments}))
        .collect();
    json!({"role": "assistant", "text": message.text(), "calls": calls})
}

#[test]
fn repair_cases_hold() {
    for case in cases("repair.jsonl") {
        let name = text(&case["name"]);
        let messages: Vec<Message> = case["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(repair_message)
            .collect();
        let (view, actions) = repair(items(&messages, &quarter_chars), &quarter_chars);
        let got: Vec<Value> = view.iter().map(|item| rendered(&item.message)).collect();
        assert_eq!(Value::from(got), case["expect"], "{name}");
        let mut actions: Vec<String> = actions.iter().map(ToString::to_string).collect();
        if name == "parallel results come in call order" {
            assert!(
                matches!(actions.as_slice(), [one] if one == "c1 moved" || one == "c2 moved"),
                "{actions:?}"
            );
            actions = vec!["c1 moved".to_owned()];
        }
        assert_eq!(Value::from(actions), case["actions"], "{name}");

        let (again, actions) = repair(view.clone(), &quarter_chars);
        assert_eq!(again, view, "{name}");
        assert!(actions.is_empty(), "{name}: {actions:?}");
    }
}

fn prune_message(line: &str, fill: &str, next_id: &mut u32) -> Message {
    let (role, size) = line.split_once(' ').unwrap_or((line, "0"));
    let body = fill.repeat(size.parse().unwrap());
    match role {
        "user" => Message::user(body),
        "assistant" => Message::assistant(body),
        "call" => {
            *next_id += 1;
            calls(vec![call(&format!("c{next_id}"), "f", "{}")])
        }
        "tool" => tool(&format!("c{next_id}"), &body),
        other => panic!("unknown role {other}"),
    }
}

fn prune_fate(message: &Message, original: &Message) -> &'static str {
    if message == original {
        return "kept";
    }
    let Some(Part::Text { text }) = message
        .tool_results()
        .next()
        .and_then(|result| result.parts.first())
    else {
        panic!("only results are pruned")
    };
    if text == CLEARED {
        return "cleared";
    }
    let (head, tail) = text.split_once("\n[… ").unwrap();
    let (count, tail) = tail.split_once(" characters cut …]\n").unwrap();
    assert_eq!((head.chars().count(), tail.chars().count()), (1_500, 1_500));
    assert_eq!(
        count.parse::<usize>().unwrap(),
        crate::support::chars(original) - 3_000
    );
    "trimmed"
}

#[test]
fn prune_cases_hold() {
    for case in cases("prune.jsonl") {
        let name = text(&case["name"]);
        let fill = case["fill"].as_str().unwrap_or("x");
        let mut next_id = 0;
        let lines = case["messages"].as_array().unwrap().iter();
        let messages: Vec<Message> = lines
            .map(|line| prune_message(text(line), fill, &mut next_id))
            .collect();
        let options = if case["profile"] == "openclaw" {
            PruneOptions::openclaw()
        } else {
            PruneOptions::goclaw()
        };
        let input = PruneInput {
            window: u32::try_from(case["window"].as_u64().unwrap()).unwrap(),
            watermarks: Watermarks::default(),
            cache_cold: case["cold_cache"].as_bool().unwrap_or(false),
            may_move: true,
        };
        let mut view = items(&messages, &quarter_chars);
        let pruned = prune(&mut view, &options, &input, &quarter_chars);
        for (at, fate) in case["expect"].as_object().unwrap() {
            let at: usize = at.parse().unwrap();
            assert_eq!(
                prune_fate(&view[at].message, &messages[at]),
                fate,
                "{name} at {at}"
            );
        }

        let mut again = items(&messages, &quarter_chars);
        let replay = PruneInput {
            watermarks: pruned.watermarks,
            may_move: false,
            ..input
        };
        assert_eq!(
            prune(&mut again, &options, &replay, &quarter_chars),
            Pruned { held: None, ..pruned },
            "{name}"
        );
        let same = view
            .iter()
            .zip(&again)
            .all(|(one, other)| one.message == other.message);
        assert!(same, "{name}: the marks alone give another view");
    }
}

/// Messages of a compaction case with their tokens.
fn compaction_messages(spec: &Value) -> Vec<(Message, u32)> {
    let mut messages = Vec::new();
    if let Some(runs) = spec.as_str() {
        for run in runs.split(" + ") {
            let (count, tokens) = run.split_once(" x ").unwrap();
            for _ in 0..count.parse().unwrap() {
                let message = if messages.len() % 2 == 0 {
                    Message::user("q")
                } else {
                    Message::assistant("a")
                };
                messages.push((message, tokens.parse().unwrap()));
            }
        }
        return messages;
    }
    for line in spec.as_array().unwrap().iter().map(text) {
        let (kind, tokens) = line.split_once(' ').unwrap();
        let place = messages.len();
        let message = match kind {
            "user" => Message::user("q"),
            "assistant" => Message::assistant("a"),
            "call" => calls(Vec::new()),
            _ => {
                let owner = messages
                    .iter()
                    .rposition(|(message, _): &(Message, u32)| message.role == Role::Assistant);
                let id = format!("c{place}");
                messages[owner.unwrap()].0.parts.push(call(&id, "f", "{}"));
                tool(&id, "r")
            }
        };
        messages.push((message, tokens.parse().unwrap()));
    }
    messages
}

#[test]
fn compaction_cases_hold() {
    for case in cases("compaction.jsonl") {
        let name = text(&case["name"]);
        let (messages, tokens): (Vec<Message>, Vec<u32>) =
            compaction_messages(&case["messages"]).into_iter().unzip();
        let options = if case["profile"] == "openclaw" {
            CompactionOptions::openclaw()
        } else {
            CompactionOptions::goclaw()
        };
        let window = u32::try_from(case["window"].as_u64().unwrap()).unwrap();
        let stats = Stats {
            messages: u32::try_from(messages.len()).unwrap(),
            tokens: tokens.iter().sum(),
            window,
            bytes: 0,
        };
        let expect = &case["expect"];
        let reason = trigger(&stats, &options);
        let Some(wanted) = expect["reason"].as_str() else {
            assert_eq!(reason, None, "{name}");
            continue;
        };
        let wanted = if wanted == "messages" {
            TriggerReason::Messages
        } else {
            TriggerReason::Tokens
        };
        assert_eq!(reason, Some(wanted), "{name}");
        let mut view = items(&messages, &|_| 0);
        for (item, tokens) in view.iter_mut().zip(tokens) {
            item.tokens = tokens;
        }
        let cut = plan_cut(&view, window, &options).unwrap();
        let number = |field: &str| {
            expect[field]
                .as_u64()
                .map(|number| usize::try_from(number).unwrap())
        };
        assert!(
            number("kept").is_none_or(|kept| kept == cut.kept_messages),
            "{name}: {cut:?}"
        );
        assert!(
            number("first_kept").is_none_or(|first| first == cut.first_kept),
            "{name}: {cut:?}"
        );
        let least = number("kept_tokens_at_least").unwrap_or(0);
        assert!(cut.kept_tokens as usize >= least, "{name}: {cut:?}");
    }
}
