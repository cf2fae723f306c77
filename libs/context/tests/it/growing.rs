//! A conversation that grows turn by turn, built before every model call as a worker would, and stored as history
//! stores it.

use crate::support::{call, calls, result};
use colloquy_context::receipt::BreakReason;
use colloquy_context::{BuildInput, BuildOptions, Format, Receipt, Tokenizer, Watermarks, build, count_body};
use colloquy_types::entry::Compaction;
use colloquy_types::message::{Completion, Message, Part, Role, Thinking};
use colloquy_types::policy::HistoryMode;
use colloquy_types::{Entry, EntryBody, EntryId, JobId, Seq, TurnId, UnixMillis};
use proptest::prelude::*;
use std::collections::HashSet;

/// A model's message with calls, and what comes of them.
#[derive(Debug, Clone)]
pub struct Step {
    text: String,
    thinks: bool,
    /// Characters of each call's result; 0 = none arrives.
    results: Vec<usize>,
    is_aborted: bool,
    is_one_message: bool,
}

/// What follows a turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Then {
    Nothing,
    Compaction,
    LateResult,
}

#[derive(Debug, Clone)]
pub struct Turn {
    users: Vec<String>,
    preface: &'static str,
    recalled: &'static str,
    steps: Vec<Step>,
    answer: String,
    is_stopped: bool,
    then: Then,
}

/// How a conversation is built.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    pub window: u32,
    pub format: Format,
    pub options: BuildOptions,
}

/// A build that was sent.
#[derive(Debug, Clone)]
pub struct Sent {
    pub bytes: Vec<u8>,
    pub receipt: Receipt,
    /// What may have changed the bytes since the build before.
    pub excuses: HashSet<BreakReason>,
}

fn any_words() -> impl Strategy<Value = String> {
    prop_oneof![6 => "[a-z]{1,12}", 1 => "[語文字]{1,9}", 1 => Just("a \"quoted\\\" ]}\u{0} end]}\"".to_owned())]
}

fn any_step() -> impl Strategy<Value = Step> {
    let size = prop::sample::select(vec![0, 1, 40, 900, 5_000]);
    (
        any_words(),
        prop::bool::weighted(0.3),
        prop::collection::vec(size, 1..4),
        prop::bool::weighted(0.1),
        any::<bool>(),
    )
        .prop_map(|(text, thinks, results, is_aborted, is_one_message)| Step {
            text,
            thinks,
            results,
            is_aborted,
            is_one_message,
        })
}

fn any_turn() -> impl Strategy<Value = Turn> {
    let then =
        prop_oneof![6 => Just(Then::Nothing), 1 => Just(Then::Compaction), 1 => Just(Then::LateResult)];
    (
        prop::collection::vec(any_words(), 1..3),
        prop::sample::select(vec!["", "", "", "- one was dropped"]),
        prop::sample::select(vec!["", "a memory"]),
        prop::collection::vec(any_step(), 0..4),
        any_words(),
        prop::bool::weighted(0.15),
        then,
    )
        .prop_map(
            |(users, preface, recalled, steps, answer, is_stopped, then)| Turn {
                users,
                preface,
                recalled,
                steps,
                answer,
                is_stopped,
                then,
            },
        )
}

pub fn any_turns() -> impl Strategy<Value = Vec<Turn>> {
    prop::collection::vec(any_turn(), 1..7)
}

/// Every format that has a projection.
fn formats() -> Vec<Format> {
    let question = [Message::user("q")];
    let is_there = |format: &Format| {
        let input = BuildInput {
            pending: &question,
            ..BuildInput::new(&[], 1_000, *format)
        };
        build(&input).is_ok()
    };
    Format::ALL.into_iter().filter(is_there).collect()
}

pub fn any_way() -> impl Strategy<Value = Way> {
    (
        prop::sample::select(vec![700_u32, 3_000, 12_000, 200_000]),
        prop::sample::select(formats()),
        any::<bool>(),
        prop::sample::select(vec![0_u32, 0, 0, 2]),
        prop::bool::weighted(0.2),
    )
        .prop_map(|(window, format, openclaw, limit_turns, calls_only)| Way {
            window,
            format,
            options: BuildOptions {
                limit_turns,
                history_mode: if calls_only {
                    HistoryMode::CallsOnly
                } else {
                    HistoryMode::Full
                },
                ..if openclaw {
                    BuildOptions::openclaw()
                } else {
                    BuildOptions::goclaw()
                }
            },
        })
}

/// A session in the hands of one worker.
pub struct Talk {
    way: Way,
    pub entries: Vec<Entry>,
    pub sent: Vec<Sent>,
    compaction: Option<usize>,
    marks: Watermarks,
    /// Since the build before.
    excuses: HashSet<BreakReason>,
}

/// The running turn.
struct Running<'t> {
    id: TurnId,
    turn: &'t Turn,
    pending: Vec<Message>,
    staged: Vec<Message>,
}

pub fn play(turns: &[Turn], way: Way) -> Talk {
    let mut talk = Talk {
        way,
        entries: Vec::new(),
        sent: Vec::new(),
        compaction: None,
        marks: Watermarks::default(),
        excuses: HashSet::new(),
    };
    turns.iter().for_each(|turn| talk.run(turn));
    talk
}

impl Talk {
    fn run(&mut self, turn: &Turn) {
        let mut running = Running {
            id: TurnId::new(),
            turn,
            pending: turn.users.iter().map(Message::user).collect(),
            staged: Vec::new(),
        };
        self.send(&running);
        for step in &turn.steps {
            running.staged.extend(step.messages());
            self.send(&running);
            // A request that ends in the model's own words may be marked so, and they may be joined with the next.
            if step.is_aborted {
                self.excuses.insert(BreakReason::RunningTurn);
            }
        }
        self.end(running);
        match turn.then {
            Then::Nothing => {}
            Then::Compaction => self.compact(),
            Then::LateResult => {
                self.append(
                    EntryBody::Message(Message::new(Role::Tool, vec![result("c0", "late")])),
                    None,
                );
                self.excuses.insert(BreakReason::LateResult);
            }
        }
    }

    fn send(&mut self, running: &Running<'_>) {
        let previous = self.sent.last().map(|sent| &sent.receipt);
        let input = BuildInput {
            compaction: self.compaction.map(|at| &self.entries[at]),
            turn: Some(running.id),
            preface: running.turn.preface,
            pending: &running.pending,
            staged: &running.staged,
            recalled: running.turn.recalled,
            options: self.way.options,
            watermarks: self.marks,
            tokenizer: Tokenizer::Estimate,
            previous,
            ..BuildInput::new(&self.entries, self.way.window, self.way.format)
        };
        let built = build(&input).unwrap();
        let mut excuses = std::mem::take(&mut self.excuses);
        if built.watermarks != self.marks {
            excuses.insert(BreakReason::Watermark);
        }
        self.marks = built.watermarks;
        let stored = serde_json::to_string(&built.receipt).unwrap();
        self.sent.push(Sent {
            receipt: serde_json::from_str(&stored).unwrap(),
            bytes: built.bytes,
            excuses,
        });
    }

    /// The turn becomes entries; what a later build shows otherwise is noted.
    fn end(&mut self, running: Running<'_>) {
        let turn = running.turn;
        let mut excuses = HashSet::new();
        let notes = [
            (BreakReason::Recall, !turn.recalled.is_empty()),
            (
                BreakReason::RunningTurn,
                turn.is_stopped || !turn.preface.is_empty(),
            ),
            (BreakReason::Thinking, turn.steps.iter().any(|step| step.thinks)),
            (
                BreakReason::CallsOnly,
                self.way.options.history_mode == HistoryMode::CallsOnly,
            ),
            (BreakReason::Limit, self.way.options.limit_turns > 0),
        ];
        excuses.extend(
            notes
                .into_iter()
                .filter(|(_, holds)| *holds)
                .map(|(reason, _)| reason),
        );
        self.excuses.extend(excuses);
        for message in running.pending {
            self.append(EntryBody::Message(message), Some(running.id));
        }
        if turn.is_stopped {
            let body = EntryBody::Interrupted {
                reason: "CANCELLED_STOP".to_owned(),
                attempt: 1,
                staged: running.staged,
            };
            self.append(body, Some(running.id));
            return;
        }
        for message in running.staged {
            self.append(EntryBody::Message(message), Some(running.id));
        }
        self.append(
            EntryBody::Message(Message::assistant(&turn.answer)),
            Some(running.id),
        );
    }

    /// Everything but the last two turns is summarized.
    fn compact(&mut self) {
        let is_user =
            |entry: &&Entry| matches!(&entry.body, EntryBody::Message(message) if message.role == Role::User);
        let Some(kept) = self.entries.iter().filter(is_user).rev().nth(2) else {
            return;
        };
        let compaction = Compaction {
            summary: format!("all before {}", kept.seq.0),
            first_kept: kept.seq,
            tokens_before: 100,
            tokens_after: 10,
            model: String::new(),
            job: JobId::new(),
            degraded: false,
        };
        self.append(EntryBody::Compaction(compaction), None);
        self.compaction = Some(self.entries.len() - 1);
        self.marks = Watermarks::default();
        self.excuses.insert(BreakReason::Compaction);
    }

    fn append(&mut self, body: EntryBody, turn: Option<TurnId>) {
        self.entries.push(Entry {
            id: EntryId::new(),
            seq: Seq(self.entries.len() as i64 + 1),
            tokens: count_body(&body, Tokenizer::Estimate),
            body,
            turn,
            tokenizer: Tokenizer::Estimate.name().to_owned(),
            at: UnixMillis(0),
        });
    }
}

impl Step {
    fn messages(&self) -> Vec<Message> {
        let mut parts = Vec::new();
        if self.thinks {
            parts.push(Part::Thinking(Thinking {
                text: "hm".to_owned(),
                signature: Some("sig".to_owned()),
                provider: Some("anthropic".to_owned()),
                redacted: false,
            }));
        }
        parts.push(Part::text(&self.text));
        let ids = (0..self.results.len()).map(|at| format!("c{at}"));
        parts.extend(ids.map(|id| call(&id, "f", "{\"a\":[\"]},\"]}")));
        let mut message = calls(parts);
        if self.is_aborted {
            message.completion = Completion::Aborted;
        }
        let arrived = self.results.iter().enumerate().filter(|(_, size)| **size > 0);
        let results: Vec<Part> = arrived
            .map(|(at, size)| result(&format!("c{at}"), &"r".repeat(*size)))
            .collect();
        let mut messages = vec![message];
        if self.is_one_message && !results.is_empty() {
            messages.push(Message::new(Role::Tool, results));
        } else {
            messages.extend(
                results
                    .into_iter()
                    .map(|result| Message::new(Role::Tool, vec![result])),
            );
        }
        messages
    }
}
