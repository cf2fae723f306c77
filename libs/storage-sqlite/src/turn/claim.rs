//! Taking the next turn of a session.

use crate::Tx;
use crate::block;
use crate::fault::Fault;
use crate::json;
use crate::queue_state::{self, TurnRow};
use crate::session::{self, SessionRow};
use colloquy_storage::{ClaimRequest, Claimed, ClaimedTurn, PolicyId, TurnLimits};
use colloquy_types::{AgentId, BranchId, Fence, Result, Seq, TranscriptId, UnixMillis};

pub(super) async fn claim(tx: &mut Tx, request: &ClaimRequest) -> Result<Claimed, Fault> {
    let Some(session) = session::get(tx, request.tenant, request.session).await? else {
        return Ok(Claimed::Nothing);
    };
    let agent = AgentId::parse(&session.agent)?;
    if !request.agents.is_empty() && !request.agents.contains(&agent) {
        return Ok(Claimed::Nothing);
    }
    let (waiting, running) = queue_state::live_turns(tx, request.tenant, request.session).await?;
    let Some(first) = waiting.into_iter().next() else {
        return Ok(Claimed::Nothing);
    };
    if running.len() >= first.max_concurrent as usize {
        return Ok(Claimed::Nothing);
    }
    if first.due > tx.now.0 {
        return Ok(Claimed::Later(UnixMillis(first.due)));
    }
    Ok(Claimed::Turn(Box::new(
        take(tx, request, session, agent, first).await?,
    )))
}

async fn take(
    tx: &mut Tx,
    request: &ClaimRequest,
    session: SessionRow,
    agent: AgentId,
    row: TurnRow,
) -> Result<ClaimedTurn, Fault> {
    let offer = Offer {
        head: block::load(tx, row.line()).await?.head,
        fence: session.fence + 1,
        attempt: row.attempt + 1,
        offer_ms: request.offer_ms.min(row.max_turn_ms),
    };
    mark_claimed(tx, &row, request, &offer).await?;
    let messages = queue_state::messages(tx, row.tenant(), row.turn()).await?;
    let own = messages.iter().filter(|message| message.is_own(row.steer_acked));
    Ok(ClaimedTurn {
        turn: row.turn(),
        session: row.session(),
        label: session.label().to_owned(),
        key: session.key,
        agent,
        transcript: TranscriptId(row.transcript),
        branch: BranchId(row.branch),
        head: Seq(offer.head),
        fence: Fence(offer.fence),
        attempt: offer.attempt,
        lane: json::from_word(&row.lane)?,
        policy: PolicyId(row.policy.clone()),
        limits: TurnLimits {
            lease_ms: request.lease_ms.unwrap_or(row.lease_ms),
            ..row.limits()
        },
        route: row.route()?,
        messages: own
            .map(|message| Ok((message.id(), message.message()?)))
            .collect::<Result<_>>()?,
        preface: row.preface,
        lease_left_ms: offer.offer_ms,
    })
}

/// What a claim draws.
struct Offer {
    head: i64,
    fence: i64,
    attempt: u32,
    offer_ms: i64,
}

async fn mark_claimed(
    tx: &mut Tx,
    row: &TurnRow,
    request: &ClaimRequest,
    offer: &Offer,
) -> Result<(), Fault> {
    let now = tx.now;
    let sql = "/* claim */ UPDATE turns SET state = 'running', closed = 1, attempt = ?, fence = ?, worker = ?, \
               claimed = ?, expires = ?, confirmed = 0, head_at_claim = ?, asked_lease_ms = ? WHERE tenant = ? AND id = ?";
    let query = sqlx::query(sql)
        .bind(offer.attempt)
        .bind(offer.fence)
        .bind(&request.worker)
        .bind(now.0);
    let query = query
        .bind(now.plus(offer.offer_ms).0)
        .bind(offer.head)
        .bind(request.lease_ms)
        .bind(row.tenant)
        .bind(row.id);
    query.execute(tx.conn()).await?;
    let sql = "/* claim */ UPDATE sessions SET fence = ?, version = version + 1 WHERE tenant = ? AND id = ?";
    sqlx::query(sql)
        .bind(offer.fence)
        .bind(row.tenant)
        .bind(row.session)
        .execute(tx.conn())
        .await?;
    Ok(())
}
