//! Every prefix of recorded agent runs, as a running turn would build it.

use crate::project_prefix::open_end;
use crate::support::{entries, shared};
use colloquy_context::{BuildInput, Built, Format, Tokenizer, Watermarks, build, count_message};
use colloquy_types::Entry;
use colloquy_types::message::{Message, Part, Role, ToolCall, ToolResult};
use flate2::read::GzDecoder;
use serde_json::Value;
use std::io::Read;
use std::path::Path;

pub fn read(path: &Path) -> Value {
    let bytes = std::fs::read(path).unwrap();
    let mut text = String::new();
    if path.extension().is_some_and(|extension| extension == "gz") {
        GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    } else {
        text = String::from_utf8(bytes).unwrap();
    }
    serde_json::from_str(&text).unwrap()
}

/// Lists of messages in a file: a list, an object that holds one, or a list of such objects.
pub fn runs(value: &Value) -> Vec<&[Value]> {
    let held = |value| {
        ["traj", "history", "messages"]
            .into_iter()
            .find_map(|key| Value::get(value, key)?.as_array())
    };
    match value {
        Value::Array(list) if list.first().is_some_and(|first| first["role"].is_string()) => vec![list],
        Value::Array(list) => list.iter().filter_map(held).map(Vec::as_slice).collect(),
        object => held(object).map(Vec::as_slice).into_iter().collect(),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub fn message(line: &Value) -> Message {
    let mut parts = Vec::new();
    let content = text(&line["content"]);
    let role = match line["role"].as_str().unwrap() {
        "system" => Role::System,
        "user" => Role::User,
        "tool" => {
            let call_id = line["tool_call_id"]
                .as_str()
                .or_else(|| line["tool_call_ids"][0].as_str())
                .unwrap();
            let result = ToolResult {
                call_id: call_id.to_owned(),
                name: text(&line["name"]),
                parts: vec![Part::text(content)],
                is_error: false,
            };
            return Message::new(Role::Tool, vec![Part::ToolResult(result)]);
        }
        _ => Role::Assistant,
    };
    parts.push(Part::text(content));
    for call in line["tool_calls"].as_array().into_iter().flatten() {
        let function = &call["function"];
        let (name, arguments) = (text(&function["name"]), text(&function["arguments"]));
        parts.push(Part::ToolCall(ToolCall {
            id: text(&call["id"]),
            name,
            arguments,
        }));
    }
    Message::new(role, parts)
}

/// How a prefix is divided into stored history and running turn.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Split {
    /// The last user message is pending, what follows is staged.
    RunningTurn,
    /// All of it is stored.
    Stored,
}

/// A way to build a run. Counts are estimated here: what is checked is the shape, and it is quick.
#[derive(Debug, Clone, Copy)]
struct Way {
    split: Split,
    window: u32,
    format: Format,
}

fn build_prefix(history: &[Entry], messages: &[Message], way: Way, marks: Watermarks) -> Built<'static> {
    let last_user = messages.iter().rposition(|message| message.role == Role::User);
    let turn = last_user
        .filter(|_| way.split == Split::RunningTurn)
        .unwrap_or(messages.len());
    let (pending, staged) = messages[turn..].split_at(usize::from(turn < messages.len()));
    let input = BuildInput {
        pending,
        staged,
        watermarks: marks,
        tokenizer: Tokenizer::Estimate,
        ..BuildInput::new(&history[..turn], way.window, way.format)
    };
    let built = build(&input).unwrap_or_else(|error| panic!("{way:?}: {error}"));
    Built {
        messages: Vec::new(),
        ..built
    }
}

/// Builds every prefix; returns how many, and how many had something shortened.
fn check_run(messages: &[Message], way: Way) -> (usize, usize) {
    let mut history = entries(messages.iter().cloned());
    for (entry, message) in history.iter_mut().zip(messages) {
        entry.tokens = count_message(message, Tokenizer::Estimate);
    }
    let mut before: Option<Built<'static>> = None;
    let mut shortened = 0;
    for end in 1..=messages.len() {
        let marks = before
            .as_ref()
            .map_or_else(Watermarks::default, |built| built.watermarks);
        let built = build_prefix(&history, &messages[..end], way, marks);
        shortened += usize::from(built.trimmed + built.cleared > 0);
        assert!(built.watermarks.soft >= marks.soft && built.watermarks.hard >= marks.hard);
        // An open call at the end reads as unfinished until its result is there; such a build is not sent.
        let is_sent = messages[end - 1].role != Role::Assistant;
        if let Some(before) = before
            .as_ref()
            .filter(|before| is_sent && before.watermarks == built.watermarks)
        {
            let same = built.bytes.starts_with(open_end(&before.bytes));
            assert!(same, "{way:?}: the prefix changed without a reason at {end}");
        }
        if is_sent || before.is_none() {
            before = Some(built);
        }
    }
    (messages.len(), shortened)
}

/// Which runs of a file are built: every `step`th from `first` on, each in the next of all formats. So each
/// format meets every kind of run, and a test takes seconds.
#[derive(Debug, Clone, Copy)]
struct Sample {
    first: usize,
    step: usize,
}

fn check_files(files: &[&str], windows: &[u32], split: Split, sample: Sample) {
    for file in files {
        let Some(path) = shared(&format!("data/transcripts/{file}")) else {
            continue;
        };
        let value = read(&path);
        let (mut builds, mut shortened) = (0, 0);
        let chosen = runs(&value).into_iter().skip(sample.first).step_by(sample.step);
        for (at, run) in chosen.enumerate() {
            let messages: Vec<Message> = run.iter().map(message).collect();
            for (turn, &window) in windows.iter().enumerate() {
                let format = Format::ALL[(at + turn) % Format::ALL.len()];
                let way = Way {
                    split,
                    window,
                    format,
                };
                let (more, short) = check_run(&messages, way);
                builds += more;
                shortened += short;
            }
        }
        assert!(builds > 0, "{file} has no messages");
        println!(
            "{file}: {sample:?}: {builds} builds in all formats, {shortened} with something shortened, 0 invalid"
        );
    }
}

const AIRLINE: &[&str] = &["tau-bench/gpt-4o-airline.json.gz"];
const ENGINEER: &[&str] = &[
    "swe-agent/function_calling_simple.traj",
    "swe-agent/replay__marshmallow-code__marshmallow-1867__function_calling__install-1/marshmallow-code__marshmallow-1867.traj",
];

#[test]
fn every_prefix_of_a_service_agents_talks_is_valid() {
    check_files(
        AIRLINE,
        &[5_000],
        Split::RunningTurn,
        Sample { first: 0, step: 2 },
    );
}

#[test]
fn every_prefix_of_a_service_agents_other_talks_is_valid() {
    check_files(
        AIRLINE,
        &[5_000],
        Split::RunningTurn,
        Sample { first: 1, step: 2 },
    );
}

// Nothing is shortened in a large window, so a part of the talks says as much as all of them.
#[test]
fn every_prefix_of_a_service_agents_talks_is_valid_in_a_large_window() {
    check_files(
        AIRLINE,
        &[128_000],
        Split::RunningTurn,
        Sample { first: 0, step: 4 },
    );
}

#[test]
fn every_prefix_of_a_coding_agents_loops_is_valid() {
    // Seven windows meet seven formats.
    let windows = [2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 200_000];
    let all = Sample { first: 0, step: 1 };
    check_files(ENGINEER, &windows, Split::RunningTurn, all);
    check_files(ENGINEER, &windows, Split::Stored, all);
}
