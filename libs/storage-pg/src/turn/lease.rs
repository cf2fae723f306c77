//! Holding a turn: who may write under which fence, and for how long.

use crate::fault::Fault;
use crate::hot::{self, Columns, Reply};
use crate::queue_state::{self, TurnRow};
use crate::{PgStore, Tx};
use colloquy_storage::{PolicyId, Renewal, StageInput, TurnView};
use colloquy_types::message::{Message, Route};
use colloquy_types::queue::{Outcome, TurnState};
use colloquy_types::{
    AgentId, BranchId, EntryBody, Epoch, Error, Fence, MessageId, Result, Seq, SessionId, TenantId,
    TranscriptId, TurnId,
};
use serde::Deserialize;
use uuid::Uuid;

/// The turn, if it is held under the fence: running or stopping. Else `FENCED`, `NOT_FOUND` for an unknown one.
pub(super) async fn held(
    tx: &mut Tx,
    tenant: TenantId,
    turn: TurnId,
    fence: Fence,
) -> Result<TurnRow, Fault> {
    let row = queue_state::load_turn(tx, tenant, turn).await?;
    let live = matches!(row.state()?, TurnState::Running | TurnState::Stopping);
    if row.fence != fence.0 || !live {
        return Err(Error::fenced().into());
    }
    Ok(row)
}

#[derive(Debug, Deserialize)]
struct Renewed {
    lease_left_ms: i64,
    state: TurnState,
    stop: Option<Outcome>,
    steer: Vec<(i64, Uuid, Message)>,
}

#[derive(Debug, Deserialize)]
struct Viewed {
    session: Uuid,
    key: String,
    agent: String,
    transcript: Uuid,
    branch: Uuid,
    epoch: Epoch,
    head: Seq,
    attempt: u32,
    state: TurnState,
    policy: String,
    route: Option<Route>,
    preface: String,
    messages: Vec<(Uuid, Message, u32)>,
    staged: Vec<(EntryBody, u32)>,
}

impl TryFrom<Viewed> for TurnView {
    type Error = Error;

    fn try_from(viewed: Viewed) -> Result<Self> {
        let messages = viewed.messages.into_iter();
        Ok(Self {
            session: SessionId(viewed.session),
            key: viewed.key,
            agent: AgentId::parse(&viewed.agent)?,
            transcript: TranscriptId(viewed.transcript),
            branch: BranchId(viewed.branch),
            epoch: viewed.epoch,
            head: viewed.head,
            attempt: viewed.attempt,
            state: viewed.state,
            policy: PolicyId(viewed.policy),
            route: viewed.route,
            preface: viewed.preface,
            messages: messages
                .map(|(id, message, tokens)| (MessageId(id), message, tokens))
                .collect(),
            staged: viewed.staged,
        })
    }
}

impl PgStore {
    pub(super) async fn renew_turn(
        &self,
        tenant: TenantId,
        turn: TurnId,
        fence: Fence,
        steer_through: i64,
    ) -> Result<Renewal, Fault> {
        let call = sqlx::query_scalar("/* renew */ SELECT history.renew($1, $2, $3, $4, $5)")
            .bind(tenant.0)
            .bind(self.instant())
            .bind(turn.0)
            .bind(fence.0)
            .bind(steer_through);
        let renewed: Renewed = self.ask::<Reply<Renewed>>(call).await?.or_refused(turn)?;
        let steer = renewed.steer.into_iter();
        Ok(Renewal {
            lease_left_ms: renewed.lease_left_ms,
            state: renewed.state,
            stop: renewed.stop,
            steer: steer
                .map(|(number, id, message)| (number, MessageId(id), message))
                .collect(),
        })
    }

    pub(super) async fn view_turn(
        &self,
        tenant: TenantId,
        turn: TurnId,
        fence: Fence,
    ) -> Result<TurnView, Fault> {
        let call = sqlx::query_scalar("/* view */ SELECT history.view($1, $2, $3, $4)")
            .bind(tenant.0)
            .bind(self.instant())
            .bind(turn.0)
            .bind(fence.0);
        let viewed: Viewed = self.ask::<Reply<Viewed>>(call).await?.or_refused(turn)?;
        Ok(viewed.try_into()?)
    }

    pub(super) async fn stage_entries(&self, input: &StageInput) -> Result<i64, Fault> {
        let entries = Columns::of(&input.entries)?;
        let (soft, hard) = hot::marks(input.marks);
        let sql = "/* stage */ SELECT history.stage($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
        let call = sqlx::query_scalar(sql)
            .bind(input.tenant.0)
            .bind(self.instant())
            .bind(input.turn.0)
            .bind(input.fence.0)
            .bind(input.first);
        let call = call
            .bind(entries.ids)
            .bind(entries.kinds)
            .bind(entries.bodies)
            .bind(entries.tokens)
            .bind(entries.tokenizers)
            .bind(soft)
            .bind(hard);
        Ok(self.ask::<Reply<i64>>(call).await?.or_refused(input.turn)?)
    }
}
