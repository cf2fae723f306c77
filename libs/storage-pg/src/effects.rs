//! What an accepted message does to the queue, effect by effect.

use crate::block::Line;
use crate::fault::Fault;
use crate::queue_state::{self, TurnRow};
use crate::{Tx, json, session};
use colloquy_storage::AcceptInput;
use colloquy_types::queue::{Effect, Lane, Outcome, QueueMode, TurnState};
use colloquy_types::{Error, SessionId, TranscriptId, TurnId, UnixMillis};

/// A message on its way into the queue, and what the effects so far have made of it.
pub(crate) struct Accepting<'a> {
    input: &'a AcceptInput,
    session: SessionId,
    /// The session's current branch; a reset moves it.
    current: Line,
    turn_transcript: Option<TranscriptId>,
    pub due: Option<UnixMillis>,
    pub outcome: Option<Outcome>,
    pub stopping: Vec<TurnId>,
}

impl<'a> Accepting<'a> {
    pub fn new(input: &'a AcceptInput, session: SessionId, current: Line) -> Self {
        let stopping = vec![];
        Self {
            input,
            session,
            current,
            turn_transcript: None,
            due: None,
            outcome: None,
            stopping,
        }
    }

    /// That of the message's turn, or the current one.
    pub fn transcript(&self) -> TranscriptId {
        self.turn_transcript.unwrap_or(self.current.transcript)
    }

    pub async fn apply(&mut self, tx: &mut Tx, effect: &Effect) -> Result<(), Fault> {
        let tenant = self.input.tenant;
        match effect {
            Effect::OpenTurn {
                turn,
                due,
                lane,
                mode,
            } => self.open(tx, *turn, *due, *lane, *mode).await,
            Effect::JoinTurn { turn, due } => self.join(tx, *turn, *due).await,
            Effect::CloseTurn { turn } => self.close(tx, *turn).await,
            Effect::MoveDue { turn, due } => self.move_due(tx, *turn, *due).await,
            Effect::EndTurn { turn, outcome } => done(
                queue_state::end_waiting(tx, tenant, *turn, *outcome).await?,
                "a turn to end does not wait",
            ),
            Effect::SummarizeTurn { turn, into, line } => self.summarize(tx, *turn, *into, line).await,
            Effect::StopTurn {
                turn,
                outcome,
                deadline,
            } => {
                if queue_state::stop_running(tx, tenant, *turn, *outcome, *deadline).await? {
                    self.stopping.push(*turn);
                }
                Ok(())
            }
            Effect::Steer { turn } => self.steer(tx, *turn).await,
            Effect::Reset { reason } => {
                self.current = session::start_transcript(tx, tenant, self.session, *reason).await?;
                Ok(())
            }
            Effect::Finish { outcome } => self.finish(tx, *outcome).await,
        }
    }

    async fn open(
        &mut self,
        tx: &mut Tx,
        turn: TurnId,
        due: UnixMillis,
        lane: Lane,
        mode: QueueMode,
    ) -> Result<(), Fault> {
        self.insert_turn(tx, turn, due, lane, mode).await?;
        let sql =
            "/* open_turn */ UPDATE sessions SET next_order = next_order + 1 WHERE tenant = $1 AND id = $2";
        sqlx::query(sql)
            .bind(self.input.tenant.0)
            .bind(self.session.0)
            .execute(tx.conn())
            .await?;
        self.bind(tx, turn, self.current.transcript, None).await?;
        self.due = Some(due);
        Ok(())
    }

    async fn insert_turn(
        &self,
        tx: &mut Tx,
        turn: TurnId,
        due: UnixMillis,
        lane: Lane,
        mode: QueueMode,
    ) -> Result<(), Fault> {
        let now = tx.now.0;
        let (input, limits) = (self.input, &self.input.limits);
        let sql = "/* open_turn */ INSERT INTO turns \
                   (tenant, id, session, transcript, branch, ord, state, lane, mode, merge_key, sender, opened, due, \
                   policy, lease_ms, max_attempts, max_turn_ms, max_concurrent, retry_ms, resume_continue, route) \
                   SELECT tenant, $1, id, $2, $3, next_order, 'waiting', $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17 \
                   FROM sessions WHERE tenant = $18 AND id = $19";
        let query = sqlx::query(sql)
            .bind(turn.0)
            .bind(self.current.transcript.0)
            .bind(self.current.branch.0);
        let query = query.bind(json::to_word(&lane)?).bind(json::to_word(&mode)?);
        let query = query
            .bind(json::to_bytes(&input.event.merge)?)
            .bind(&input.event.sender.id);
        let query = query.bind(now).bind(due.0).bind(&input.policy.0);
        let query = query
            .bind(limits.lease_ms)
            .bind(i64::from(limits.max_attempts))
            .bind(limits.max_turn_ms);
        let query = query
            .bind(i64::from(limits.max_concurrent))
            .bind(limits.retry_ms)
            .bind(limits.resume_continue);
        let query = query.bind(input.route.as_ref().map(json::to_bytes).transpose()?);
        query
            .bind(input.tenant.0)
            .bind(self.session.0)
            .execute(tx.conn())
            .await?;
        Ok(())
    }

    async fn join(&mut self, tx: &mut Tx, turn: TurnId, due: UnixMillis) -> Result<(), Fault> {
        let row = self.waiting(tx, turn).await?;
        let sql = "/* join_turn */ UPDATE turns SET due = $1, sender = CASE WHEN sender = $2 THEN sender END \
                   WHERE tenant = $3 AND id = $4";
        let query = sqlx::query(sql).bind(due.0).bind(&self.input.event.sender.id);
        query
            .bind(self.input.tenant.0)
            .bind(turn.0)
            .execute(tx.conn())
            .await?;
        self.bind(tx, turn, row.line().transcript, None).await?;
        self.due = Some(due);
        Ok(())
    }

    async fn close(&self, tx: &mut Tx, turn: TurnId) -> Result<(), Fault> {
        let sql = "/* close_turn */ UPDATE turns SET closed = true WHERE tenant = $1 AND id = $2 AND state = 'waiting'";
        let query = sqlx::query(sql).bind(self.input.tenant.0).bind(turn.0);
        done(
            query.execute(tx.conn()).await?.rows_affected() > 0,
            "a turn to close does not wait",
        )
    }

    async fn move_due(&self, tx: &mut Tx, turn: TurnId, due: UnixMillis) -> Result<(), Fault> {
        let sql =
            "/* move_due */ UPDATE turns SET due = $1 WHERE tenant = $2 AND id = $3 AND state = 'waiting'";
        let query = sqlx::query(sql)
            .bind(due.0)
            .bind(self.input.tenant.0)
            .bind(turn.0);
        done(
            query.execute(tx.conn()).await?.rows_affected() > 0,
            "a turn to move does not wait",
        )
    }

    /// What leads the dropped turn goes along: its lines are older than its own.
    async fn summarize(&self, tx: &mut Tx, turn: TurnId, into: TurnId, line: &str) -> Result<(), Fault> {
        let tenant = self.input.tenant;
        let (dropped, next) = (self.waiting(tx, turn).await?, self.waiting(tx, into).await?);
        let lines = [next.preface.as_str(), dropped.preface.as_str(), line];
        let preface: Vec<&str> = lines.into_iter().filter(|line| !line.is_empty()).collect();
        let sql = "/* summarize_turn */ UPDATE turns SET preface = $1 WHERE tenant = $2 AND id = $3";
        sqlx::query(sql)
            .bind(preface.join("\n"))
            .bind(tenant.0)
            .bind(into.0)
            .execute(tx.conn())
            .await?;
        done(
            queue_state::end_waiting(tx, tenant, turn, Outcome::Summarized).await?,
            "a turn to summarize does not wait",
        )
    }

    async fn steer(&mut self, tx: &mut Tx, turn: TurnId) -> Result<(), Fault> {
        let row = queue_state::load_turn(tx, self.input.tenant, turn).await?;
        done(
            row.session() == self.session && row.state()? == TurnState::Running,
            "a turn to steer into does not run",
        )?;
        let sql = "/* steer */ SELECT coalesce(max(steer), 0) + 1 FROM inbox WHERE tenant = $1 AND turn = $2";
        let query = sqlx::query_scalar(sql).bind(self.input.tenant.0).bind(turn.0);
        let number: i64 = query.fetch_one(tx.conn()).await?;
        self.bind(tx, turn, row.line().transcript, Some(number)).await
    }

    async fn finish(&mut self, tx: &mut Tx, outcome: Outcome) -> Result<(), Fault> {
        let sql = "/* finish */ UPDATE inbox SET outcome = $1 WHERE tenant = $2 AND id = $3";
        let query = sqlx::query(sql).bind(outcome.as_str()).bind(self.input.tenant.0);
        query.bind(self.input.message_id.0).execute(tx.conn()).await?;
        self.outcome = Some(outcome);
        Ok(())
    }

    async fn bind(
        &mut self,
        tx: &mut Tx,
        turn: TurnId,
        transcript: TranscriptId,
        steer: Option<i64>,
    ) -> Result<(), Fault> {
        let sql = "/* bind_message */ UPDATE inbox SET turn = $1, steer = $2 WHERE tenant = $3 AND id = $4";
        let query = sqlx::query(sql)
            .bind(turn.0)
            .bind(steer)
            .bind(self.input.tenant.0);
        query.bind(self.input.message_id.0).execute(tx.conn()).await?;
        self.turn_transcript = Some(transcript);
        Ok(())
    }

    async fn waiting(&self, tx: &mut Tx, turn: TurnId) -> Result<TurnRow, Fault> {
        let row = queue_state::load_turn(tx, self.input.tenant, turn).await?;
        done(
            row.session() == self.session && row.state()? == TurnState::Waiting,
            "a turn of the plan does not wait",
        )?;
        Ok(row)
    }
}

/// A plan is made on the state it is applied to, so a miss is the decision's mistake.
fn done(happened: bool, otherwise: &str) -> Result<(), Fault> {
    if happened {
        Ok(())
    } else {
        Err(Error::internal(otherwise).into())
    }
}
