//! Extractive summaries: what may least be lost first, the newest before the oldest, never longer than asked.

use super::identifiers::identifiers;
use super::rules::kind_of;
use super::sections::{Section, Sections};
use super::sentences::statements;
use crate::size::{cut, tenths};
use crate::tasks::{CandidateKind, SummaryRequest};
use std::collections::HashSet;

/// Size of an excerpt of one message, and of a statement, in tenths of a token.
const EXCERPT: usize = 550;
const STATEMENT: usize = 900;
/// What the titles, dashes and line ends take.
const FRAME: usize = 500;
const LAST_REQUEST: &str = "Last request: ";
const KEEP_IN_VIEW: &str = "Keep in view: ";
/// How a rendered line of someone who is no person begins.
const NOT_PEOPLE: [&str; 3] = ["assistant: ", "tool: ", "system: "];

/// The summary of the previous one and the chunk.
pub fn summary(request: &SummaryRequest) -> String {
    let whole = request.max_tokens as usize * 10;
    let mut left = whole.saturating_sub(FRAME.min(whole / 4));
    let previous = Sections::parse(&request.previous);
    let mut text = Sections::default();

    // What the audit asks for comes first: required identifiers, then the last request.
    let mut ids = Budgeted::new(left * 3 / 5);
    ids.take_all(request.identifiers.iter().map(String::as_str));
    left -= ids.used.min(left);
    let open = open_requests(request, &previous, left);
    left -= size(&open).min(left);
    *text.of_mut(Section::Open) = open;

    ids.most = ids.used + left / 3;
    let before = ids.used;
    ids.take_all(request.chunk.iter().rev().flat_map(|line| identifiers(line)));
    let carried = previous.of(Section::Identifiers).iter().rev();
    ids.take_all(carried.flat_map(|line| line.split(", ")));
    left -= (ids.used - before).min(left);
    if !ids.kept.is_empty() {
        text.of_mut(Section::Identifiers).push(ids.kept.join(", "));
    }

    let told = statements_by_section(&request.chunk);
    for (section, share) in [(Section::Decisions, 5), (Section::Facts, 4), (Section::Next, 8)] {
        let lines = previous.of(section).iter().chain(told.of(section));
        let kept = newest(lines, left / share, STATEMENT);
        left -= size(&kept).min(left);
        *text.of_mut(section) = kept;
    }
    *text.of_mut(Section::State) = state(request, &previous, left);
    bounded(text.render(), whole)
}

/// The shares above keep a summary of usual size within its bounds; titles alone can be more than a tiny one.
fn bounded(text: String, most: usize) -> String {
    if tenths(&text) <= most {
        return text;
    }
    let mut used = 0;
    text.chars()
        .take_while(|character| {
            used += tenths(character.encode_utf8(&mut [0; 4]));
            used <= most
        })
        .collect()
}

/// Identifiers that fit, each once and whole.
struct Budgeted<'a> {
    most: usize,
    used: usize,
    kept: Vec<&'a str>,
    seen: HashSet<&'a str>,
}

impl<'a> Budgeted<'a> {
    fn new(most: usize) -> Self {
        Self {
            most,
            used: 0,
            kept: Vec::new(),
            seen: HashSet::new(),
        }
    }

    fn take_all(&mut self, ids: impl Iterator<Item = &'a str>) {
        for id in ids.filter(|id| !id.is_empty()) {
            // Random letters make more tokens than words do.
            let size = id.len() * 7 + 9;
            if self.used + size <= self.most && self.seen.insert(id) {
                self.used += size;
                self.kept.push(id);
            }
        }
    }
}

/// The last request, what to keep in view, and earlier goals.
fn open_requests(request: &SummaryRequest, previous: &Sections, left: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let carried = |begin: &str| {
        let line = previous
            .of(Section::Open)
            .iter()
            .find_map(|line| line.strip_prefix(begin));
        line.unwrap_or_default().to_owned()
    };
    let last = if request.last_request.trim().is_empty() {
        let spoken = request.chunk.iter().rev().find_map(|line| by_people(line));
        spoken.map_or_else(|| carried(LAST_REQUEST), str::to_owned)
    } else {
        request.last_request.clone()
    };
    if !last.trim().is_empty() {
        lines.push(format!("{LAST_REQUEST}{}", cut(&last, left * 2 / 5)));
    }
    let view = if request.instructions.trim().is_empty() {
        carried(KEEP_IN_VIEW)
    } else {
        request.instructions.clone()
    };
    if !view.trim().is_empty() {
        lines.push(format!("{KEEP_IN_VIEW}{}", cut(&view, left / 10)));
    }
    let goals = previous
        .of(Section::Open)
        .iter()
        .filter(|line| !line.starts_with(LAST_REQUEST) && !line.starts_with(KEEP_IN_VIEW));
    lines.extend(newest(goals, left / 10, STATEMENT));
    lines
}

/// What a person said, without the name.
fn by_people(line: &str) -> Option<&str> {
    if NOT_PEOPLE.iter().any(|begin| line.starts_with(begin)) {
        return None;
    }
    Some(line.split_once(": ").map_or(line, |(_, said)| said))
}

/// What people stated, sorted by the rules that also find memories.
fn statements_by_section(chunk: &[String]) -> Sections {
    let mut found = Sections::default();
    for said in chunk.iter().filter_map(|line| by_people(line)) {
        for sentence in statements(said) {
            let section = match kind_of(sentence) {
                Some((CandidateKind::Decision, _)) => Section::Decisions,
                Some((CandidateKind::Task, _)) => Section::Next,
                Some(_) => Section::Facts,
                None => continue,
            };
            found.of_mut(section).push(sentence.to_owned());
        }
    }
    found
}

/// Excerpts of what was said, behind what was carried from before; at most a third for the latter unless there is room.
fn state(request: &SummaryRequest, previous: &Sections, left: usize) -> Vec<String> {
    // What people and the agent said tells more than what tools printed.
    let spoken = request.chunk.iter().filter(|line| !line.starts_with("tool: "));
    let earlier = previous.of(Section::State);
    let reserved = left / 3;
    let said = newest(spoken, left - reserved.min(size(earlier)), EXCERPT);
    let mut lines = newest(earlier.iter(), left.saturating_sub(size(&said)), EXCERPT);
    lines.retain(|line| !said.contains(line));
    lines.extend(said);
    lines
}

/// The newest lines that fit together, in their order, each once and cut to `longest`.
fn newest<'a>(
    lines: impl DoubleEndedIterator<Item = &'a String>,
    most: usize,
    longest: usize,
) -> Vec<String> {
    let mut used = 0;
    let mut seen = HashSet::new();
    let mut kept: Vec<String> = lines
        .rev()
        .map(|line| cut(line, longest))
        .filter(|line| !line.is_empty() && seen.insert(line.clone()))
        .take_while(|line| {
            used += line_size(line);
            used <= most
        })
        .collect();
    kept.reverse();
    kept
}

fn size(lines: &[String]) -> usize {
    lines.iter().map(|line| line_size(line)).sum()
}

/// With its dash and line end.
fn line_size(line: &str) -> usize {
    tenths(line) + 15
}
