//! The windows that are built.

use crate::recorded;
use colloquy_context::{BuildInput, Format, Tokenizer, count_body};
use colloquy_types::entry::Compaction;
use colloquy_types::message::{Author, Completion, Message, Part, Role, ToolCall};
use colloquy_types::{Entry, EntryBody, EntryId, JobId, Seq, UnixMillis};

/// A transcript and the window it is built for.
pub struct Scenario {
    pub name: &'static str,
    pub window: u32,
    tokenizer: Tokenizer,
    entries: Vec<Entry>,
    compaction: Option<usize>,
}

impl Scenario {
    pub fn new(name: &'static str, window: u32, messages: Vec<Message>, tokenizer: Tokenizer) -> Self {
        Self {
            name,
            window,
            tokenizer,
            entries: entries(messages, tokenizer),
            compaction: None,
        }
    }

    pub fn input(&self, format: Format) -> BuildInput<'_> {
        BuildInput {
            compaction: self.compaction.map(|at| &self.entries[at]),
            recalled: "The person prefers short answers.",
            tokenizer: self.tokenizer,
            ..BuildInput::new(&self.entries, self.window, format)
        }
    }

    /// As it was recorded: entries in order, the newest compaction in force.
    pub fn recorded(name: &'static str, window: u32, bodies: Vec<EntryBody>, tokenizer: Tokenizer) -> Self {
        let entries: Vec<Entry> = (1..)
            .zip(bodies)
            .map(|(seq, body)| entry(seq, body, tokenizer))
            .collect();
        let is_compaction = |entry: &Entry| matches!(entry.body, EntryBody::Compaction(_));
        Self {
            name,
            window,
            tokenizer,
            compaction: entries.iter().rposition(is_compaction),
            entries,
        }
    }

    /// The messages of the window.
    fn live(&self) -> impl Iterator<Item = &Entry> {
        let first = self.compaction.map_or(Seq(1), |at| match &self.entries[at].body {
            EntryBody::Compaction(compaction) => compaction.first_kept,
            _ => Seq(1),
        });
        let kept = self.entries.iter().filter(move |entry| entry.seq >= first);
        kept.filter(|entry| entry.body.message().is_some())
    }

    pub fn messages(&self) -> usize {
        self.live().count()
    }

    pub fn tokens(&self) -> u32 {
        self.live().map(|entry| entry.tokens).sum()
    }
}

/// Every scenario that is reported, one after the other.
pub fn all(tokenizer: Tokenizer) -> impl Iterator<Item = Scenario> {
    let made: [fn(Tokenizer) -> Option<Scenario>; 4] = [
        |tokenizer| {
            Some(Scenario {
                name: "whole",
                ..window(1_000, 0, tokenizer)
            })
        },
        |tokenizer| Some(pruned_and_broken(tokenizer)),
        recorded::own_window,
        recorded::whole,
    ];
    made.into_iter().filter_map(move |make| make(tokenizer))
}

/// `messages` of about 200 tokens each behind a summary of `summarized` others. Nothing is to be pruned.
pub fn window(messages: usize, summarized: usize, tokenizer: Tokenizer) -> Scenario {
    let before = (0..summarized).map(|_| Message::user("earlier"));
    let mut entries = entries(before.collect(), Tokenizer::Estimate);
    let compaction = (summarized > 0).then(|| {
        let seq = Seq(entries.len() as i64 + 1);
        let body = EntryBody::Compaction(Compaction {
            summary: prose(1_600),
            first_kept: Seq(seq.0 + 1),
            tokens_before: 100_000,
            tokens_after: 400,
            model: "m".to_owned(),
            job: JobId::new(),
            degraded: false,
        });
        entries.push(entry(seq.0, body, tokenizer));
        entries.len() - 1
    });
    let first = entries.len() as i64 + 1;
    let live = (first..).zip(conversation(messages, 1_000));
    entries.extend(live.map(|(seq, message)| entry(seq, EntryBody::Message(message), tokenizer)));
    Scenario {
        name: "window",
        window: u32::MAX,
        tokenizer,
        entries,
        compaction,
    }
}

/// 40 % of the messages are results, a quarter of them long, and most get shortened; 5 % of the pairs are broken.
fn pruned_and_broken(tokenizer: Tokenizer) -> Scenario {
    let mut messages: Vec<Message> = conversation(1_250, 500);
    messages.retain(|message| message.role != Role::Assistant || message.tool_calls().next().is_some());
    messages.truncate(1_000);
    let results = messages.iter_mut().filter(|message| message.role == Role::Tool);
    for (number, message) in results.enumerate() {
        let bytes = if number % 4 == 0 { 4_400 } else { 900 };
        if let Part::ToolResult(result) = &mut message.parts[0] {
            result.parts = vec![Part::text(prose(bytes))];
        }
    }
    let calls = (0..messages.len() - 2).filter(|&at| messages[at].tool_calls().next().is_some());
    for (number, at) in calls.collect::<Vec<_>>().into_iter().step_by(20).enumerate() {
        match number % 4 {
            0 => messages[at].completion = Completion::Aborted,
            1 => messages.swap(at + 1, at + 2),
            2 => messages[at + 1] = Message::assistant("The tool did not answer."),
            _ => messages[at].parts = vec![Part::text("The call is lost.")],
        }
    }
    Scenario::new("pruned and broken", 150_000, messages, tokenizer)
}

/// Turns of a request, two calls with their results each, and an answer; texts of about `bytes`.
fn conversation(messages: usize, bytes: usize) -> Vec<Message> {
    let mut list = Vec::with_capacity(messages + 5);
    while list.len() < messages {
        let turn = list.len();
        list.push(Message::user(prose(bytes / 2)));
        for step in 0..2 {
            let (id, text) = (format!("toolu_01AbCdEfGh{turn:06}{step}"), prose(bytes / 4));
            list.push(call(&id, text));
            let mut result = Message::tool_result(&id, "read", prose(bytes));
            result.author = Author {
                id: "read".to_owned(),
                name: String::new(),
            };
            list.push(result);
        }
        list.push(Message::assistant(prose(bytes)));
    }
    list.truncate(messages);
    list
}

fn call(id: &str, text: String) -> Message {
    let call = ToolCall {
        id: id.to_owned(),
        name: "read".to_owned(),
        arguments: r#"{"path":"src/very/long/path/to/a/file.rs","lines":[1,200],"why":"the \"main\" loop"}"#
            .to_owned(),
    };
    Message::new(Role::Assistant, vec![Part::text(text), Part::ToolCall(call)])
}

/// Text as agents see it: words, code, and quotes and line breaks that JSON escapes.
pub fn prose(bytes: usize) -> String {
    const SAMPLE: &str = "The scheduler waits until every worker has \"confirmed\" its lease.\n\tlet next = queue.pop_front();\n\
                          Errors are retried after 250 ms; see https://example.com/docs/queue#retry for more.\n";
    let mut text = SAMPLE.repeat(bytes / SAMPLE.len() + 1);
    text.truncate(bytes);
    text
}

fn entries(messages: Vec<Message>, tokenizer: Tokenizer) -> Vec<Entry> {
    let bodies = (1..).zip(messages);
    bodies
        .map(|(seq, message)| entry(seq, EntryBody::Message(message), tokenizer))
        .collect()
}

fn entry(seq: i64, body: EntryBody, tokenizer: Tokenizer) -> Entry {
    Entry {
        id: EntryId::new(),
        seq: Seq(seq),
        tokens: count_body(&body, tokenizer),
        body,
        turn: None,
        tokenizer: tokenizer.name().to_owned(),
        at: UnixMillis(seq),
    }
}
