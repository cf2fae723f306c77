//! Recorded conversations in every format: prefixes, and windows of odd and even size.

use crate::project_ids::collect;
use crate::recorded::conversations;
use crate::support::items;
use colloquy_context::project::project;
use colloquy_context::repair::repair;
use colloquy_context::validate::validate;
use colloquy_context::{BuildError, Format, Item};
use colloquy_types::message::{Message, Part, Role};
use std::collections::HashSet;

/// Messages of the last-N windows: odd and even.
const WINDOWS: [usize; 6] = [5, 6, 7, 8, 39, 40];
/// About how many places of one conversation are looked at; a longer one is sampled evenly.
const PLACES: usize = 40;

#[derive(Debug, Default)]
struct Found {
    requests: usize,
    invalid: usize,
    orphans: usize,
    naive: usize,
    naive_orphans: usize,
}

fn repaired(messages: &[Message]) -> Vec<Item<'_>> {
    repair(items(messages, &|_| 1), &|_| 1).0
}

/// Results without a call before them, counted without the rules' help.
fn orphans(bytes: &[u8]) -> usize {
    let (mut called, mut answered) = (Vec::new(), Vec::new());
    collect(
        &serde_json::from_slice(bytes).unwrap(),
        "",
        &mut called,
        &mut answered,
    );
    let called: HashSet<String> = called.into_iter().collect();
    answered.iter().filter(|id| !called.contains(*id)).count()
}

fn look(messages: &[Message], found: &mut Found, counts_orphans: bool) {
    let view = repaired(messages);
    for format in Format::ALL {
        match project(format, &view) {
            Ok(projected) => {
                found.requests += 1;
                let violations = validate(format, &projected.bytes);
                if let Some(violation) = violations.first() {
                    println!("{format}: {violation}");
                    found.invalid += 1;
                }
                if counts_orphans {
                    found.orphans += orphans(&projected.bytes);
                }
            }
            Err(error) => assert_eq!(error, BuildError::NothingToSend),
        }
    }
}

/// Whether a window as it is, without repair, has a result whose call was cut off.
fn has_orphan(window: &[Message]) -> bool {
    let mut called = HashSet::new();
    window
        .iter()
        .flat_map(|message| &message.parts)
        .any(|part| match part {
            Part::ToolCall(call) => {
                called.insert(call.id.as_str());
                false
            }
            Part::ToolResult(result) => !called.contains(result.call_id.as_str()),
            _ => false,
        })
}

fn look_at_windows(messages: &[Message], end: usize, found: &mut Found) {
    for size in WINDOWS {
        let Some(start) = end.checked_sub(size).filter(|start| *start > 0) else {
            continue;
        };
        let window = &messages[start..end];
        look(window, found, true);
        if messages[end - 1].role == Role::User && size % 2 == 1 && size < 10 {
            found.naive += 1;
            found.naive_orphans += usize::from(has_orphan(window));
        }
    }
}

fn look_at_file(file: &str, conversations: &[Vec<Message>]) -> Found {
    let mut found = Found::default();
    // Of many conversations every eighth, of a long one about so many places.
    let every = if conversations.len() > 50 { 8 } else { 1 };
    for messages in conversations.iter().step_by(every) {
        let step = (messages.len() / PLACES).max(1);
        for end in (1..=messages.len()).rev().step_by(step) {
            look_at_windows(messages, end, &mut found);
            if step == 1 || (messages.len() - end) % (step * 13) == 0 {
                look(&messages[..end], &mut found, false);
            }
        }
    }
    let Found {
        requests,
        invalid,
        orphans,
        naive,
        naive_orphans,
    } = &found;
    println!(
        "{file}: {requests} requests, {invalid} invalid, {orphans} orphans; last-N windows as they are: {naive_orphans} of {naive} with an orphan"
    );
    found
}

fn check(is_chosen: impl Fn(&str) -> bool) {
    println!(
        "sampled: every eighth of many conversations, about {PLACES} places of a long one; windows of {WINDOWS:?}"
    );
    for (file, conversations) in conversations().into_iter().filter(|(file, _)| is_chosen(file)) {
        let found = look_at_file(file, &conversations);
        assert!(found.requests > 0, "{file} has no messages");
        assert_eq!((found.invalid, found.orphans), (0, 0), "{file}");
    }
}

#[test]
fn a_service_agents_talks_and_windows_of_them_are_valid_in_every_format() {
    check(|file| file.starts_with("tau-bench"));
}

#[test]
fn coding_agents_sessions_and_windows_of_them_are_valid_in_every_format() {
    check(|file| !file.starts_with("tau-bench"));
}

/// The share of user turns at which a window of the last N messages starts behind a call whose result it holds.
#[test]
fn naive_windows_orphan_results_and_repaired_ones_do_not() {
    let airline = conversations()
        .into_iter()
        .find(|(file, _)| file.starts_with("tau-bench"));
    let Some((file, conversations)) = airline else {
        return;
    };
    for size in 3..=10 {
        let (mut turns, mut cut, mut bad) = (0, 0, 0);
        for messages in &conversations {
            let ends = (1..=messages.len()).filter(|&end| messages[end - 1].role == Role::User);
            for end in ends {
                let start = end.saturating_sub(size);
                turns += 1;
                cut += usize::from(start > 0);
                bad += usize::from(has_orphan(&messages[start..end]));
            }
        }
        let share = |of: usize| bad as f64 * 100.0 / of as f64;
        println!(
            "{file}: last {size} messages: {bad} of {turns} user turns orphaned ({:.0} %), {:.0} % of those cut",
            share(turns),
            share(cut)
        );
    }
}
