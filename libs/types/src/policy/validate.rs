//! Numbers that cannot work, each named by its path.

use super::{Policy, ResetRule};
use crate::error::{Error, Result};
use std::fmt::Display;
use std::ops::RangeInclusive;

fn within<T: PartialOrd + Display>(field: &str, value: &T, range: &RangeInclusive<T>) -> Result<()> {
    if range.contains(value) {
        return Ok(());
    }
    Err(Error::invalid(
        field,
        format!("{value} is not within {} to {}", range.start(), range.end()),
    ))
}

pub(super) fn check(policy: &Policy) -> Result<()> {
    within(
        "model.window_tokens",
        &policy.model.window_tokens,
        &(1_000..=10_000_000),
    )?;
    queue(policy)?;
    context(policy)?;
    compaction(policy)?;
    memory(policy)?;
    within("subagents.max_depth", &policy.subagents.max_depth, &(0..=5))?;
    within(
        "subagents.max_children",
        &policy.subagents.max_children,
        &(0..=100),
    )?;
    within("limits.parts", &policy.limits.parts, &(1..=10_000))?;
    within(
        "limits.message_bytes",
        &policy.limits.message_bytes,
        &(1_024..=8 << 20),
    )?;
    reset(policy)
}

/// What `reset.by_chat_kind` can name: types of chats and kinds of sessions.
const CHAT_KINDS: [&str; 18] = [
    "direct",
    "group",
    "other",
    "channel",
    "room",
    "person",
    "main",
    "subagent",
    "cron",
    "heartbeat",
    "hook",
    "webhook",
    "sop",
    "p2p",
    "admin",
    "team",
    "app",
    "api",
];

fn reset(policy: &Policy) -> Result<()> {
    let reset = &policy.reset;
    triggers(&reset.triggers)?;
    let unknown = |kind: &&String| !CHAT_KINDS.contains(&kind.as_str());
    if let Some(kind) = reset.by_chat_kind.keys().find(unknown) {
        let hint = super::merge::nearest(kind, &CHAT_KINDS);
        let message = format!("is no type of chat and no kind of session{hint}");
        return Err(Error::invalid(format!("reset.by_chat_kind.{kind}"), message));
    }
    rule(
        "reset",
        &ResetRule {
            daily: reset.daily.clone(),
            idle: reset.idle.clone(),
        },
    )?;
    for (name, map) in [
        ("by_chat_kind", &reset.by_chat_kind),
        ("by_channel", &reset.by_channel),
    ] {
        for (key, value) in map {
            rule(&format!("reset.{name}.{key}"), value)?;
        }
    }
    Ok(())
}

fn queue(policy: &Policy) -> Result<()> {
    let queue = &policy.queue;
    within("queue.debounce_ms", &queue.debounce_ms, &(0..=60_000))?;
    within("queue.capacity", &queue.capacity, &(1..=10_000))?;
    within("queue.max_concurrent", &queue.max_concurrent, &(1..=64))?;
    within("queue.single_from_ratio", &queue.single_from_ratio, &(0.0..=1.0))?;
    within("queue.lease_ms", &queue.lease_ms, &(1_000..=3_600_000))?;
    within("queue.max_attempts", &queue.max_attempts, &(1..=100))?;
    within("queue.max_turn_ms", &queue.max_turn_ms, &(1_000..=86_400_000))?;
    within("queue.retry_ms", &queue.retry_ms, &(0..=3_600_000))
}

fn context(policy: &Policy) -> Result<()> {
    let prune = &policy.context.prune;
    within("context.prune.soft_ratio", &prune.soft_ratio, &(0.0..=1.0))?;
    within(
        "context.prune.hard_ratio",
        &prune.hard_ratio,
        &(prune.soft_ratio..=1.0),
    )?;
    within("context.prune.min_gain", &prune.min_gain, &(0.0..=1.0))?;
    if let Some(ttl) = &prune.cache_ttl_ms {
        within("context.prune.cache_ttl_ms", ttl, &(0..=86_400_000))?;
    }
    let kept = u64::from(prune.keep_head_chars) + u64::from(prune.keep_tail_chars);
    if kept > u64::from(prune.soft_chars) {
        return Err(Error::invalid(
            "context.prune.soft_chars",
            "is less than what a trim keeps",
        ));
    }
    Ok(())
}

fn compaction(policy: &Policy) -> Result<()> {
    let compaction = &policy.compaction;
    within("compaction.max_ratio", &compaction.max_ratio, &(0.0..=1.0))?;
    within("compaction.keep_ratio", &compaction.keep_ratio, &(0.0..=0.9))?;
    within(
        "compaction.flush_timeout_ms",
        &compaction.flush_timeout_ms,
        &(0..=600_000),
    )?;
    within(
        "compaction.summarise_timeout_ms",
        &compaction.summarise_timeout_ms,
        &(1_000..=3_600_000),
    )
}

fn memory(policy: &Policy) -> Result<()> {
    let memory = &policy.memory;
    within(
        "memory.extract_delay_ms",
        &memory.extract_delay_ms,
        &(0..=86_400_000),
    )?;
    within("memory.recall_limit", &memory.recall_limit, &(1..=50))?;
    within("memory.candidate_factor", &memory.candidate_factor, &(1..=20))?;
    within("memory.lexical_weight", &memory.lexical_weight, &(0.0..=1.0))?;
    within("memory.vector_weight", &memory.vector_weight, &(0.0..=1.0))?;
    within("memory.min_score", &memory.min_score, &(0.0..=1.0))?;
    within("memory.mmr", &memory.mmr, &(0.0..=1.0))?;
    within(
        "memory.half_life_days",
        &memory.half_life_days,
        &(0.01..=36_500.0),
    )
}

fn triggers(triggers: &[String]) -> Result<()> {
    let no_word = |trigger: &String| trigger.is_empty() || trigger.contains(char::is_whitespace);
    match triggers.iter().position(no_word) {
        Some(index) => Err(Error::invalid(
            format!("reset.triggers[{index}]"),
            "must be one word",
        )),
        None => Ok(()),
    }
}

fn rule(path: &str, rule: &ResetRule) -> Result<()> {
    let Some(daily) = &rule.daily else { return Ok(()) };
    within(&format!("{path}.daily.at_hour"), &daily.at_hour, &(0..=23))?;
    jiff::tz::TimeZone::get(&daily.time_zone)
        .map(|_| ())
        .map_err(|_| Error::invalid(format!("{path}.daily.time_zone"), "is not an IANA time zone"))
}
