//! Rows ⇄ wire.

use colloquy_proto::convert::{duration, timestamp};
use colloquy_proto::v1;
use colloquy_storage::{
    Acceptance, InboxRow, Job, JobKind, JobState, PageRequest, QueuedTurn, Session, Usage,
};
use colloquy_types::message::Message;
use colloquy_types::{MessageId, UnixMillis};

pub fn page(size: u32, token: String) -> PageRequest {
    PageRequest {
        size,
        token: (!token.is_empty()).then_some(token),
    }
}

pub fn session(session: Session) -> v1::Session {
    let counters = session.counters;
    v1::Session {
        session_id: session.id.to_string(),
        agent: session.key.agent().to_string(),
        channel: session.key.channel().unwrap_or_default().to_owned(),
        kind: session.key.kind().to_owned(),
        key: session.key.canonical(),
        label: session.label,
        display_name: session.display_name,
        transcript_id: session.transcript.to_string(),
        branch_id: session.branch.to_string(),
        epoch: session.epoch.0,
        head_seq: session.head.0,
        window_messages: session.window_messages,
        window_tokens: session.window_tokens,
        waiting: session.waiting,
        running: session.running,
        input_tokens: counters.input_tokens,
        output_tokens: counters.output_tokens,
        turns: counters.turns,
        compactions: counters.compactions,
        last_prompt_tokens: counters.last_prompt_tokens,
        context_window: counters.context_window,
        model: session.model,
        provider: session.provider,
        compaction_error: session.compaction_error.unwrap_or_default(),
        created_at: Some(timestamp(session.created)),
        updated_at: Some(timestamp(session.updated)),
        last_user_activity_at: session.last_user_activity.map(timestamp),
    }
}

pub fn accepted(acceptance: &Acceptance, duplicate: bool) -> v1::AcceptResult {
    let placement = if duplicate {
        v1::Placement::Duplicate
    } else {
        acceptance.placement.into()
    };
    let due_in = acceptance
        .due
        .map(|due| duration(due.since(acceptance.now).max(0)));
    v1::AcceptResult {
        message_id: acceptance.message.to_string(),
        session_id: acceptance.session.to_string(),
        turn_id: acceptance.turn.map(|turn| turn.to_string()).unwrap_or_default(),
        placement: placement.into(),
        position: acceptance.position,
        due_in,
        outcome: acceptance
            .outcome
            .map_or(v1::Outcome::Unspecified, Into::into)
            .into(),
    }
}

pub fn turn_message(id: MessageId, message: Message) -> v1::TurnMessage {
    v1::TurnMessage {
        message_id: id.to_string(),
        message: Some(message.into()),
    }
}

pub fn queued_turn(turn: QueuedTurn) -> v1::QueuedTurn {
    v1::QueuedTurn {
        turn_id: turn.turn.to_string(),
        state: v1::TurnState::from(turn.state).into(),
        lane: v1::Lane::from(turn.lane).into(),
        due_at: Some(timestamp(turn.due)),
        attempt: turn.attempt,
        fence: turn.fence.0,
        worker: turn.worker,
        message_ids: turn.messages.iter().map(ToString::to_string).collect(),
    }
}

pub fn outcome(row: InboxRow) -> v1::MessageOutcome {
    v1::MessageOutcome {
        message_id: row.message_id.to_string(),
        turn_id: row.turn.map(|turn| turn.to_string()).unwrap_or_default(),
        accepted_at: Some(timestamp(row.accepted)),
        outcome: row.outcome.map_or(v1::Outcome::Unspecified, Into::into).into(),
        detail: row.detail,
    }
}

pub fn usage(usage: v1::Usage) -> Usage {
    Usage {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cache_read_tokens: usage.cache_read_tokens,
        cache_write_tokens: usage.cache_write_tokens,
        context_tokens: usage.context_tokens,
        window_tokens: usage.window_tokens,
        provider: usage.provider.replace('\0', ""),
        model: usage.model.replace('\0', ""),
    }
}

pub fn job_kind(kind: v1::JobKind) -> Option<JobKind> {
    match kind {
        v1::JobKind::Unspecified => None,
        v1::JobKind::Compaction => Some(JobKind::Compaction),
        v1::JobKind::MemoryExtract => Some(JobKind::MemoryExtract),
    }
}

pub fn job_state(state: v1::JobState) -> Option<JobState> {
    Some(match state {
        v1::JobState::Unspecified => return None,
        v1::JobState::Queued => JobState::Queued,
        v1::JobState::Published => JobState::Published,
        v1::JobState::Running => JobState::Running,
        v1::JobState::Done => JobState::Done,
        v1::JobState::Cancelled => JobState::Cancelled,
        v1::JobState::Dead => JobState::Dead,
    })
}

pub fn wire_job_state(state: JobState) -> v1::JobState {
    match state {
        JobState::Queued => v1::JobState::Queued,
        JobState::Published => v1::JobState::Published,
        JobState::Running => v1::JobState::Running,
        JobState::Done => v1::JobState::Done,
        JobState::Cancelled => v1::JobState::Cancelled,
        JobState::Dead => v1::JobState::Dead,
    }
}

pub fn job(job: Job) -> v1::Job {
    let kind = match job.kind {
        JobKind::Compaction => v1::JobKind::Compaction,
        JobKind::MemoryExtract => v1::JobKind::MemoryExtract,
    };
    v1::Job {
        job_id: job.id.to_string(),
        kind: kind.into(),
        session_id: job.session.to_string(),
        transcript_id: job.transcript.to_string(),
        branch_id: job.branch.to_string(),
        state: wire_job_state(job.state).into(),
        attempts: job.attempts,
        publish_no: job.publish_no,
        due_at: Some(timestamp(job.due)),
        payload_json: job.payload_json,
        result_json: job.result_json,
        error: job.error,
        created_at: Some(timestamp(job.created)),
        updated_at: Some(timestamp(job.updated)),
    }
}

/// Time until an instant, never negative.
pub fn until(due: UnixMillis, now: UnixMillis) -> prost_types::Duration {
    duration(due.since(now).max(0))
}
