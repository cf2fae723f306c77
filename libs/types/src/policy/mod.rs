//! Policies: how an agent's sessions behave, with every number in one place.
//!
//! A [`Policy`] is effective: every field has a value. It is made from a [`Profile`] and JSON objects merged over
//! it field by field, the most specific last. Unknown fields and impossible numbers are refused with their path.

mod merge;
mod profile;
mod validate;

pub use merge::{Explained, Origin};
pub use profile::Profile;

use crate::error::Result;
use crate::key::{DmScope, SessionKey};
use crate::message::Limits;
use crate::queue::QueueMode;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An effective policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    pub profile: Profile,
    pub dm_scope: DmScope,
    pub model: Model,
    pub queue: Queue,
    pub reset: Reset,
    pub context: Context,
    pub compaction: Compaction,
    pub memory: Memory,
    pub delivery: Delivery,
    pub subagents: Subagents,
    pub commands: Commands,
    pub limits: Limits,
    pub retention: Retention,
}

/// The model that the agent's worker calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Empty = the worker's choice.
    pub provider: String,
    /// Empty = the worker's choice.
    pub name: String,
    /// Window in tokens, 1,000 to 10,000,000; what triggers and ratios are measured against.
    pub window_tokens: u32,
    /// Longest answer in tokens, for the worker; 0 = the model's own limit.
    pub max_output_tokens: u32,
}

/// What happens when the queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Drop {
    /// The oldest waiting turn goes.
    Old,
    /// The newcomer is refused.
    New,
    /// One-line summaries replace the overflow.
    Summarize,
}

/// What the next attempt sees of a lost one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resume {
    /// Nothing; it is stored as one `interrupted` entry.
    Restart,
    /// Everything; it becomes part of the block.
    Continue,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    pub mode: QueueMode,
    /// Quiet time in milliseconds before a turn starts, 0 to 60,000; the longest wait is five times this.
    pub debounce_ms: i64,
    /// Waiting turns (messages under `collect` and `followup`), 1 to 10,000.
    pub capacity: u32,
    pub drop: Drop,
    /// Turns of one session at the same time, 1 to 64.
    pub max_concurrent: u32,
    /// Share of the window in use from which only one turn runs at a time, 0 to 1.
    pub single_from_ratio: f64,
    /// 1,000 to 3,600,000.
    pub lease_ms: i64,
    /// 1 to 100.
    pub max_attempts: u32,
    /// From the claim; renewals do not go beyond, 1,000 to 86,400,000.
    pub max_turn_ms: i64,
    /// Pause before a lost or released turn is offered again, 0 to 3,600,000.
    pub retry_ms: i64,
    pub resume: Resume,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Daily {
    /// 0 to 23, local to `time_zone`.
    pub at_hour: u8,
    /// IANA name, for instance `Europe/Berlin`.
    pub time_zone: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Idle {
    /// A message strictly later than this after the last one resets; 0 = off.
    pub minutes: u32,
}

/// When a session starts over; whichever expires first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResetRule {
    pub daily: Option<Daily>,
    pub idle: Option<Idle>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reset {
    pub daily: Option<Daily>,
    pub idle: Option<Idle>,
    /// Commands that reset, for instance `/new`.
    pub triggers: Vec<String>,
    /// Instead of the above for a type of chat (`direct`, `group`, `other`) or, more specific, a kind (`channel`,
    /// `room`, `cron`, …), field by field.
    pub by_chat_kind: BTreeMap<String, ResetRule>,
    /// Instead of both for a channel, field by field.
    pub by_channel: BTreeMap<String, ResetRule>,
}

impl Reset {
    /// The rule for a session, most specific field by field.
    pub fn rule(&self, key: &SessionKey) -> ResetRule {
        let mut rule = ResetRule {
            daily: self.daily.clone(),
            idle: self.idle.clone(),
        };
        let overrides = [
            self.by_chat_kind.get(key.chat_type().as_str()),
            self.by_chat_kind.get(key.kind()),
            key.channel().and_then(|name| self.by_channel.get(name)),
        ];
        for other in overrides.into_iter().flatten() {
            rule.daily = other.daily.clone().or(rule.daily);
            rule.idle = other.idle.clone().or(rule.idle);
        }
        rule
    }
}

/// What a model sees of earlier turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HistoryMode {
    Full,
    /// Tool results of earlier turns are left out; each reply names the calls behind it.
    CallsOnly,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Context {
    pub history_mode: HistoryMode,
    /// Last N user turns; 0 = no limit.
    pub limit_turns: u32,
    /// Kept free for the answer; `None` = min(16,384, 20 % of the window). Never more than half the window.
    pub reserve_tokens: Option<u32>,
    pub prune: Prune,
}

/// Shortening of old tool results, in the view only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prune {
    pub enabled: bool,
    /// Share of the window from which long results are trimmed, 0 to 1.
    pub soft_ratio: f64,
    /// Share from which the oldest are cleared, `soft_ratio` to 1.
    pub hard_ratio: f64,
    /// Results longer than this many characters are trimmed.
    pub soft_chars: u32,
    pub keep_head_chars: u32,
    pub keep_tail_chars: u32,
    /// No hard clear while the prunable results have fewer characters together.
    pub min_prunable_chars: u32,
    /// The last N assistant messages and what follows the first of them are left alone.
    pub protect_assistants: u32,
    /// Prune below the hard ratio only when the provider's cache is cold; `None` = always.
    pub cache_ttl_ms: Option<i64>,
    /// A watermark moves only when that frees this share of the window, 0 to 1.
    pub min_gain: f64,
}

/// A model by name; empty = that of the session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelName {
    pub provider: String,
    pub name: String,
}

/// What the `openclaw` and `goclaw` triggers measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compaction {
    pub enabled: bool,
    /// More message entries in the window than this; 0 = not by count.
    pub max_messages: u32,
    /// More tokens than this share of the window; 0 = not by share.
    pub max_ratio: f64,
    /// More tokens than the window less the reserve (at least `reserve_floor`, at most half the window).
    pub by_reserve: bool,
    pub reserve_floor: u32,
    /// More bytes in the transcript than this; 0 = not by size.
    pub max_bytes: u64,
    /// Messages kept verbatim at least.
    pub keep_messages: u32,
    /// Share of the messages kept verbatim at least, rounded up.
    pub keep_ratio: f64,
    /// Tokens kept verbatim; 0 = by messages.
    pub keep_tokens: u32,
    /// Tokens before the trigger at which memories are flushed, at most 10 % of the trigger; 0 = with the compaction.
    pub flush_ahead_tokens: u32,
    pub flush_timeout_ms: i64,
    pub summarise_timeout_ms: i64,
    /// The model that writes summaries.
    pub model: ModelName,
    /// Tell the user when a compaction happened.
    pub notice: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    pub enabled: bool,
    /// Read turns for memories after this quiet time, in milliseconds.
    pub extract_delay_ms: i64,
    /// Results of a recall.
    pub recall_limit: u32,
    pub recall_tokens: u32,
    /// Candidates that are ranked for each result, 1 to 20.
    pub candidate_factor: u32,
    /// Weight of the words in a fused score, 0 to 1; 1 where there are no vectors.
    pub lexical_weight: f64,
    /// Weight of the vectors in a fused score, 0 to 1.
    pub vector_weight: f64,
    /// Results below this score are left out, 0 to 1.
    pub min_score: f64,
    pub half_life_days: f64,
    /// Balance of relevance and diversity, 0 to 1.
    pub mmr: f64,
}

/// What to do when it is unknown whether a delivery arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnUnknown {
    Resend,
    Hold,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SendRule {
    /// Every field given must match.
    #[serde(default)]
    pub channel: Option<String>,
    #[serde(default)]
    pub chat_kind: Option<String>,
    #[serde(default)]
    pub key_prefix: Option<String>,
    pub allow: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delivery {
    pub on_unknown: OnUnknown,
    /// Any matching deny wins.
    pub rules: Vec<SendRule>,
    /// When no rule matches.
    pub allow: bool,
    /// `openclaw`: a reply that starts with the silent token as a whole word is silent too.
    pub silent_prefix: bool,
}

impl Delivery {
    /// Whether replies of the session may go out.
    pub fn allows(&self, key: &str, channel: Option<&str>, chat_kind: &str) -> bool {
        let matches = |rule: &&SendRule| {
            rule.channel.as_deref().is_none_or(|name| Some(name) == channel)
                && rule.chat_kind.as_deref().is_none_or(|kind| kind == chat_kind)
                && rule
                    .key_prefix
                    .as_deref()
                    .is_none_or(|prefix| key.starts_with(prefix))
        };
        let mut matching = self.rules.iter().filter(matches).peekable();
        if matching.peek().is_none() {
            self.allow
        } else {
            matching.all(|rule| rule.allow)
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subagents {
    /// 0 to 5.
    pub max_depth: u32,
    pub max_children: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commands {
    /// Whether `/new`, `/stop` and the like are understood; else they are ordinary text.
    pub enabled: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retention {
    /// Days without activity after which a session goes; 0 = never.
    pub days: u32,
    /// Sessions kept per agent; 0 = all.
    pub sessions: u32,
    /// Days without activity after which the session of a single event goes; 0 = never.
    pub event_days: u32,
}

impl Policy {
    /// The profile with each of `overrides` merged over it in order.
    ///
    /// # Errors
    /// `INVALID_FIELD` with the path of an unknown field, a value of the wrong type, or an impossible number.
    pub fn resolve(profile: Profile, overrides: &[&str]) -> Result<Self> {
        merge::resolve(profile, overrides)
    }

    /// This policy with the fields of a JSON object changed.
    ///
    /// # Errors
    /// Those of [`resolve`](Self::resolve).
    pub fn with(&self, overrides: &str) -> Result<Self> {
        merge::change(self, overrides)
    }

    /// As [`resolve`](Self::resolve), with the layer that each value came from. `layers` are named for the answer
    /// (`agent`, `channel`, `session`), the most specific last.
    ///
    /// # Errors
    /// Those of [`resolve`](Self::resolve).
    pub fn explain(profile: Profile, layers: &[(&str, &str)]) -> Result<Explained> {
        merge::explain(profile, layers)
    }

    /// The JSON that is stored and hashed.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a policy has string keys only")
    }

    /// # Errors
    /// `INVALID_FIELD` when the text is not an effective policy.
    pub fn from_json(json: &str) -> Result<Self> {
        merge::parse(json)
    }

    /// Tokens kept free for the answer in a window: the policy's, or min(16,384, 20 %), never over half.
    pub fn reserve(&self, window_tokens: u32) -> u32 {
        let reserve = self
            .context
            .reserve_tokens
            .unwrap_or_else(|| 16_384.min(window_tokens / 5));
        reserve.min(window_tokens / 2)
    }

    /// Tokens of the window above which compaction is due; `None` when nothing triggers by tokens.
    pub fn compaction_threshold(&self, window_tokens: u32) -> Option<u32> {
        let ratio = self.compaction.max_ratio;
        // The cast cuts fractions off, which is what "more than" needs.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let by_ratio = (ratio > 0.0).then(|| (f64::from(window_tokens) * ratio) as u32);
        let reserve = self
            .reserve(window_tokens)
            .max(self.compaction.reserve_floor)
            .min(window_tokens / 2);
        let by_reserve = self.compaction.by_reserve.then(|| window_tokens - reserve);
        [by_ratio, by_reserve].into_iter().flatten().min()
    }
}
