//! The demo's agent: it does what the script says, by the means a real one has.

use super::ContextCounts;
use super::check::is_valid;
use super::script::ScriptTurn;
use super::timeline::Timeline;
use colloquy_client::{Answer, BuildOptions, BuiltContext, Failure, TurnHandle, v1};
use colloquy_types::message::{Message, Role};
use colloquy_types::{EntryBody, SessionKey};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Tokens of the model's window that the demo pretends to have.
pub const WINDOW_TOKENS: u32 = 48_000;

/// What is asked of the agent now, by chat.
pub type Parts = Arc<Mutex<HashMap<i64, ScriptTurn>>>;

/// Counts of everything the agent did.
#[derive(Clone, Default)]
pub struct Tally(Arc<Mutex<(u64, ContextCounts)>>);

impl Tally {
    fn lock(&self) -> MutexGuard<'_, (u64, ContextCounts)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn context(&self, built: &BuiltContext, valid: bool) {
        let counts = &mut self.lock().1;
        counts.built += 1;
        counts.tokens_in += u64::from(built.header.tokens_in);
        counts.tokens_out += u64::from(built.header.tokens_out);
        counts.trimmed += u64::from(built.header.trimmed);
        counts.cleared += u64::from(built.header.cleared);
        counts.repaired += u64::from(built.header.repaired);
        counts.invalid += u64::from(!valid);
    }

    /// Turns answered, and the sums over all contexts.
    pub fn sums(&self) -> (u64, ContextCounts) {
        self.lock().clone()
    }
}

/// Answers one turn as the script says.
///
/// # Errors
/// When the turn is not in the script, or a call fails for good.
pub async fn answer(
    turn: Arc<TurnHandle>,
    parts: Parts,
    tally: Tally,
    timeline: Timeline,
) -> Result<Answer, Failure> {
    let key = SessionKey::parse(&turn.turn.session_key).map_err(|error| Failure::Fail(error.to_string()))?;
    let chat = key
        .chat()
        .and_then(|chat| chat.parse::<i64>().ok())
        .unwrap_or_default();
    let part = parts
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get(&chat)
        .cloned();
    let part = part.ok_or_else(|| Failure::Fail("the script has no turn for this chat".into()))?;
    let calls = part
        .entries
        .iter()
        .filter(|message| message.tool_calls().next().is_some())
        .count();
    let who = part.sender_name.clone();
    timeline.event(
        "turn",
        &who,
        format!(
            "attempt {}, fence {}, {calls} tool calls",
            turn.turn.attempt, turn.turn.fence
        ),
    );
    let mut options = options(chat);
    let query = turn.text();
    if !query.trim().is_empty() {
        options.recall_block = turn.recall(&query).await?.block;
    }
    let last = part.entries.len().saturating_sub(1);
    for (index, message) in part.entries.iter().enumerate() {
        if message.role == Role::Assistant {
            let built = turn.build_context(&options).await?;
            tally.context(&built, is_valid(options.format, &built.body));
            show_context(&timeline, &who, &built);
        }
        if index < last {
            turn.stage(vec![body(message)]).await?;
        }
    }
    tally.lock().0 += 1;
    Ok(final_answer(&part))
}

fn options(chat: i64) -> BuildOptions {
    // Both shapes are exercised; a session keeps to one.
    let format = if chat % 2 == 0 {
        v1::ContextFormat::OpenaiChat
    } else {
        v1::ContextFormat::Anthropic
    };
    BuildOptions {
        format,
        window_tokens: WINDOW_TOKENS,
        overhead_tokens: 900,
        ..BuildOptions::default()
    }
}

fn body(message: &Message) -> v1::EntryBody {
    EntryBody::Message(message.clone()).into()
}

/// The last message is committed; its text is the reply.
fn final_answer(part: &ScriptTurn) -> Answer {
    let Some(last) = part.entries.last() else {
        return Answer::default();
    };
    let text = part.reply();
    let reply = if text.trim().is_empty() {
        Vec::new()
    } else {
        vec![v1::Part {
            part: Some(v1::part::Part::Text(text)),
        }]
    };
    Answer {
        entries: vec![body(last)],
        reply,
        ..Answer::default()
    }
}

fn show_context(timeline: &Timeline, who: &str, built: &BuiltContext) {
    let header = &built.header;
    let mut did = Vec::new();
    for (count, word) in [
        (header.trimmed, "trimmed"),
        (header.cleared, "cleared"),
        (header.repaired, "repaired"),
    ] {
        if count > 0 {
            did.push(format!("{count} {word}"));
        }
    }
    let did = if did.is_empty() {
        "as it is".to_owned()
    } else {
        did.join(", ")
    };
    let decision = header
        .decision()
        .as_str_name()
        .trim_start_matches("CONTEXT_DECISION_")
        .to_lowercase();
    timeline.event(
        "context",
        who,
        format!(
            "{} messages, {} → {} tokens, {did}; {decision}",
            header.messages, header.tokens_in, header.tokens_out
        ),
    );
}
