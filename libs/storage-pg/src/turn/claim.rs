//! Taking the next turn of a session.

use crate::PgStore;
use crate::fault::Fault;
use crate::json;
use colloquy_storage::{ClaimRequest, Claimed, ClaimedTurn, PolicyId, TurnLimits};
use colloquy_types::message::{Message, Route};
use colloquy_types::queue::Lane;
use colloquy_types::{
    AgentId, BranchId, Fence, MessageId, Result, Seq, SessionId, TranscriptId, TurnId, UnixMillis,
};
use serde::Deserialize;
use uuid::Uuid;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Turn(Box<Taken>),
    Later(UnixMillis),
    Nothing,
}

#[derive(Debug, Deserialize)]
struct Taken {
    turn: Uuid,
    key: String,
    label: String,
    agent: String,
    transcript: Uuid,
    branch: Uuid,
    head: Seq,
    fence: i64,
    attempt: u32,
    lane: Lane,
    policy: String,
    limits: TurnLimits,
    route: Option<Route>,
    preface: String,
    messages: Vec<(Uuid, Message)>,
    lease_left_ms: i64,
}

impl PgStore {
    pub(super) async fn claim_next(&self, request: &ClaimRequest) -> Result<Claimed, Fault> {
        let agents: Vec<&str> = request.agents.iter().map(AgentId::as_str).collect();
        let call = sqlx::query_scalar("/* claim */ SELECT history.claim($1, $2, $3, $4, $5, $6, $7)")
            .bind(request.tenant.0)
            .bind(self.instant())
            .bind(request.session.0)
            .bind(json::plain(&request.worker))
            .bind(agents)
            .bind(request.offer_ms)
            .bind(request.lease_ms);
        Ok(match self.ask(call).await? {
            Answer::Turn(taken) => Claimed::Turn(Box::new(claimed(request.session, *taken)?)),
            Answer::Later(due) => Claimed::Later(due),
            Answer::Nothing => Claimed::Nothing,
        })
    }
}

fn claimed(session: SessionId, taken: Taken) -> Result<ClaimedTurn> {
    let messages = taken.messages.into_iter();
    Ok(ClaimedTurn {
        turn: TurnId(taken.turn),
        session,
        key: taken.key,
        label: taken.label,
        agent: AgentId::parse(&taken.agent)?,
        transcript: TranscriptId(taken.transcript),
        branch: BranchId(taken.branch),
        head: taken.head,
        fence: Fence(taken.fence),
        attempt: taken.attempt,
        lane: taken.lane,
        policy: PolicyId(taken.policy),
        limits: taken.limits,
        route: taken.route,
        preface: taken.preface,
        messages: messages.map(|(id, message)| (MessageId(id), message)).collect(),
        lease_left_ms: taken.lease_left_ms,
    })
}
