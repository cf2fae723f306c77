//! The three presets, named after the systems whose numbers they carry.

use super::{
    Commands, Compaction, Context, Daily, Delivery, Drop, HistoryMode, Memory, Model, ModelName, OnUnknown,
    Policy, Prune, Queue, Reset, Resume, Retention, Subagents,
};
use crate::error::{Error, Result};
use crate::key::DmScope;
use crate::message::Limits;
use crate::queue::QueueMode;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    #[default]
    Goclaw,
    GoclawLite,
    Openclaw,
}

impl Profile {
    pub const ALL: [Self; 3] = [Self::Goclaw, Self::GoclawLite, Self::Openclaw];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Goclaw => "goclaw",
            Self::GoclawLite => "goclaw-lite",
            Self::Openclaw => "openclaw",
        }
    }

    /// The empty string is the default profile.
    ///
    /// # Errors
    /// `INVALID_FIELD` on `profile` for any other word.
    pub fn parse(text: &str) -> Result<Self> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let unknown = || {
            Error::invalid(
                "profile",
                format!("`{text}` is none of goclaw, goclaw-lite, openclaw"),
            )
        };
        Self::ALL
            .into_iter()
            .find(|profile| profile.as_str() == text)
            .ok_or_else(unknown)
    }

    /// The preset.
    pub fn policy(self) -> Policy {
        match self {
            Self::Goclaw => goclaw(),
            Self::GoclawLite => goclaw_lite(),
            Self::Openclaw => openclaw(),
        }
    }
}

fn goclaw() -> Policy {
    Policy {
        profile: Profile::Goclaw,
        dm_scope: DmScope::PerChannelPeer,
        model: Model {
            provider: String::new(),
            name: String::new(),
            window_tokens: 200_000,
            max_output_tokens: 0,
        },
        queue: Queue {
            mode: QueueMode::Queue,
            debounce_ms: 800,
            capacity: 10,
            drop: Drop::Old,
            max_concurrent: 1,
            single_from_ratio: 0.6,
            lease_ms: 60_000,
            max_attempts: 3,
            max_turn_ms: 1_800_000,
            retry_ms: 1_000,
            resume: Resume::Restart,
        },
        reset: Reset {
            daily: None,
            idle: None,
            triggers: vec!["/new".into(), "/reset".into()],
            by_chat_kind: BTreeMap::new(),
            by_channel: BTreeMap::new(),
        },
        context: Context {
            history_mode: HistoryMode::Full,
            limit_turns: 0,
            reserve_tokens: None,
            prune: Prune {
                enabled: true,
                soft_ratio: 0.3,
                hard_ratio: 0.5,
                soft_chars: 4_000,
                keep_head_chars: 1_500,
                keep_tail_chars: 1_500,
                min_prunable_chars: 0,
                protect_assistants: 3,
                cache_ttl_ms: None,
                min_gain: 0.0,
            },
        },
        compaction: Compaction {
            enabled: true,
            max_messages: 50,
            max_ratio: 0.75,
            by_reserve: false,
            reserve_floor: 0,
            max_bytes: 0,
            keep_messages: 4,
            keep_ratio: 0.3,
            keep_tokens: 0,
            flush_ahead_tokens: 0,
            flush_timeout_ms: 90_000,
            summarise_timeout_ms: 120_000,
            model: ModelName::default(),
            notice: false,
        },
        memory: Memory {
            enabled: true,
            extract_delay_ms: 30_000,
            recall_limit: 6,
            recall_tokens: 1_000,
            candidate_factor: 4,
            lexical_weight: 0.3,
            vector_weight: 0.7,
            min_score: 0.35,
            half_life_days: 30.0,
            mmr: 0.7,
        },
        delivery: Delivery {
            on_unknown: OnUnknown::Resend,
            rules: Vec::new(),
            allow: true,
            silent_prefix: false,
        },
        subagents: Subagents {
            max_depth: 1,
            max_children: 5,
        },
        commands: Commands { enabled: true },
        limits: Limits::default(),
        retention: Retention {
            days: 0,
            sessions: 0,
            event_days: 7,
        },
    }
}

fn goclaw_lite() -> Policy {
    let mut policy = goclaw();
    policy.profile = Profile::GoclawLite;
    policy.queue.capacity = 100;
    policy.queue.drop = Drop::New;
    policy.context.history_mode = HistoryMode::CallsOnly;
    policy
}

fn openclaw() -> Policy {
    let mut policy = goclaw();
    policy.profile = Profile::Openclaw;
    policy.queue.mode = QueueMode::Collect;
    policy.queue.debounce_ms = 1_000;
    policy.queue.capacity = 20;
    policy.queue.drop = Drop::Summarize;
    policy.reset.daily = Some(Daily {
        at_hour: 4,
        time_zone: "UTC".into(),
    });
    policy.context.prune.min_prunable_chars = 50_000;
    policy.context.prune.cache_ttl_ms = Some(300_000);
    policy.context.reserve_tokens = Some(16_384);
    policy.compaction.max_messages = 0;
    policy.compaction.max_ratio = 0.0;
    policy.compaction.by_reserve = true;
    policy.compaction.reserve_floor = 20_000;
    policy.compaction.keep_tokens = 20_000;
    policy.compaction.keep_messages = 0;
    policy.compaction.keep_ratio = 0.0;
    policy.compaction.flush_ahead_tokens = 4_000;
    policy.compaction.summarise_timeout_ms = 180_000;
    policy.delivery.silent_prefix = true;
    policy
}
