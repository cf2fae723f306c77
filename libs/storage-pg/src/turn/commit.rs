//! The commit: one block, its outcomes, its deliveries and jobs, in one transaction. One function does it, but for a turn
//! with lost attempts or open steers: those are put together here.

use super::staged;
use crate::block::{self, BranchRow, NewLine};
use crate::fault::Fault;
use crate::hot::{self, Call, Columns};
use crate::queue_state::{self, MessageRow, TurnRow};
use crate::session::{self, SessionRow};
use crate::{PgStore, Tx, delivery, job, json};
use colloquy_storage::{CommitInput, Committed, JobKind, NewDelivery, NewJob, Usage};
use colloquy_types::queue::{Outcome, TurnState};
use colloquy_types::{Error, JobId, Reason, Result, Seq, TurnId};
use serde::Deserialize;

/// What the function says.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Committed(Committed),
    Replayed(Committed),
    Rare,
    NotFound,
    Fenced,
    Cancelled,
    Mismatch,
}

/// In the place of a message's opening brace it makes the body of a message entry.
const MESSAGE_OPEN: &str = r#"{"type":"message","#;

impl PgStore {
    pub(super) async fn commit_turn(&self, input: &CommitInput) -> Result<Committed, Fault> {
        let answer = self.ask(call(input, self.instant())?).await?;
        Ok(match answer {
            Answer::Committed(committed) => committed,
            Answer::Replayed(committed) => Committed {
                replayed: true,
                ..committed
            },
            Answer::Rare => {
                let mut tx = self.write(input.tenant).await?;
                let committed = commit(&mut tx, input).await?;
                tx.commit().await?;
                committed
            }
            Answer::NotFound => return Err(Error::not_found("turn", input.turn).into()),
            Answer::Fenced => return Err(Error::fenced().into()),
            Answer::Cancelled => return Err(cancelled().into()),
            Answer::Mismatch => return Err(mismatch().into()),
        })
    }
}

fn call(input: &CommitInput, instant: Option<i64>) -> Result<Call<'_, Answer>> {
    let entries = Columns::of(&input.entries)?;
    let (soft, hard) = hot::marks(input.marks);
    let sql = "/* commit */ SELECT history.commit_turn($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, \
               $15, $16, $17, $18, $19, $20, $21::json, $22, $23, $24, $25, $26)";
    let call = sqlx::query_scalar(sql)
        .bind(input.tenant.0)
        .bind(instant)
        .bind(input.turn.0)
        .bind(input.fence.0)
        .bind(&input.content_hash)
        .bind(input.outcome.as_str())
        .bind(input.steer_through);
    let call = call
        .bind(MESSAGE_OPEN.as_bytes())
        .bind(entries.ids)
        .bind(entries.kinds)
        .bind(entries.bodies)
        .bind(entries.tokens)
        .bind(entries.tokenizers)
        .bind(soft)
        .bind(hard);
    let replies = &input.deliveries;
    let bodies = |of: fn(&NewDelivery) -> Result<Vec<u8>>| replies.iter().map(of).collect::<Result<Vec<_>>>();
    let call = call
        .bind(replies.iter().map(|reply| reply.id.0).collect::<Vec<_>>())
        .bind(
            replies
                .iter()
                .map(|reply| reply.route.account.as_str())
                .collect::<Vec<_>>(),
        )
        .bind(bodies(|reply| json::to_bytes(&reply.route))?)
        .bind(replies.iter().map(|reply| reply.part).collect::<Vec<_>>())
        .bind(bodies(|reply| json::to_bytes(&reply.parts))?);
    let usage = Usage {
        provider: json::plain(&input.usage.provider),
        model: json::plain(&input.usage.model),
        ..input.usage.clone()
    };
    let above = input.compact.as_ref();
    Ok(call
        .bind(json::to_string(&usage)?)
        .bind(input.extract.map(|job| job.0))
        .bind(input.extract_delay_ms)
        .bind(above.map(|above| above.job.0))
        .bind(above.map(|above| above.messages))
        .bind(above.map(|above| above.tokens)))
}

fn cancelled() -> Error {
    Error::new(
        Reason::Cancelled,
        "the turn is being stopped; release it, its commit is not accepted",
    )
}

fn mismatch() -> Error {
    Error::new(
        Reason::IdempotencyMismatch,
        "the turn was committed with other content",
    )
}

async fn commit(tx: &mut Tx, input: &CommitInput) -> Result<Committed, Fault> {
    let turn = queue_state::load_turn(tx, input.tenant, input.turn).await?;
    if let Some(answer) = made_before(&turn, input)? {
        return Ok(answer);
    }
    let acked = acknowledged(tx, &turn, input.steer_through).await?;
    let branch = append_block(tx, input, &turn, acked).await?;
    record_outcomes(tx, input, &turn, acked).await?;
    let session = count(tx, input, &turn).await?;
    note_reported(tx, input, &turn).await?;
    delivery::insert(tx, &turn, &input.deliveries).await?;
    let compacting = write_jobs(tx, input, &turn, &session, &branch).await?;
    let committed = Committed {
        session: turn.session(),
        head: Seq(branch.head),
        window_messages: branch.window_messages,
        window_tokens: branch.window_tokens,
        input_tokens: session.input_tokens(),
        output_tokens: session.output_tokens(),
        compacting,
        next_due: None,
        replayed: false,
    };
    finish(tx, input, &turn, committed).await
}

/// The answer of the same commit made before; `Err` when this one may not be made.
fn made_before(turn: &TurnRow, input: &CommitInput) -> Result<Option<Committed>> {
    if turn.fence != input.fence.0 {
        return Err(Error::fenced());
    }
    match turn.state()? {
        TurnState::Running => Ok(None),
        TurnState::Stopping => Err(cancelled()),
        TurnState::Committed if turn.commit_hash.as_ref() == Some(&input.content_hash) => {
            let answer = turn.commit_answer.as_deref().unwrap_or_default();
            Ok(Some(Committed {
                replayed: true,
                ..json::from_bytes(answer)?
            }))
        }
        TurnState::Committed => Err(mismatch()),
        TurnState::Waiting | TurnState::Cancelled | TurnState::Failed => Err(Error::fenced()),
    }
}

/// Steers up to this number were taken in, by a renewal or by this commit.
async fn acknowledged(tx: &mut Tx, turn: &TurnRow, steer_through: i64) -> Result<i64, Fault> {
    let messages = queue_state::messages(tx, turn.tenant(), turn.turn()).await?;
    let steered = messages
        .iter()
        .filter_map(|message| message.steer)
        .max()
        .unwrap_or(0);
    Ok(turn.steer_acked.max(steer_through.min(steered)))
}

/// What the provider counted is the size of the last request.
async fn note_reported(tx: &mut Tx, input: &CommitInput, turn: &TurnRow) -> Result<(), Fault> {
    let sql = "/* note_reported */ SELECT history.note_reported($1, $2, $3)";
    let query = sqlx::query(sql).bind(turn.tenant).bind(turn.id);
    query.bind(input.usage.context_tokens).execute(tx.conn()).await?;
    Ok(())
}

async fn append_block(
    tx: &mut Tx,
    input: &CommitInput,
    turn: &TurnRow,
    acked: i64,
) -> Result<BranchRow, Fault> {
    let staged = staged::load(tx, turn).await?;
    let mut lines = staged::opening(tx, turn, acked, &staged).await?;
    lines.extend(staged::own_lines(turn, &staged)?);
    for entry in &input.entries {
        lines.push(NewLine::new(entry)?);
    }
    if let Some(marks) = input.marks {
        block::move_marks(tx, turn.line(), marks, Seq(turn.head_at_claim)).await?;
    }
    block::append(tx, turn.line(), Some(turn.turn()), &lines).await
}

async fn record_outcomes(tx: &mut Tx, input: &CommitInput, turn: &TurnRow, acked: i64) -> Result<(), Fault> {
    move_open_steers(tx, turn, acked).await?;
    let sql = "/* record_outcomes */ UPDATE inbox SET outcome = CASE WHEN steer IS NULL THEN $1 ELSE $2 END \
               WHERE tenant = $3 AND turn = $4 AND outcome IS NULL";
    let query = sqlx::query(sql)
        .bind(input.outcome.as_str())
        .bind(Outcome::Steered.as_str());
    query.bind(turn.tenant).bind(turn.id).execute(tx.conn()).await?;
    Ok(())
}

/// What was steered and not taken in becomes a turn of its own, in the place of the one that ends.
async fn move_open_steers(tx: &mut Tx, turn: &TurnRow, acked: i64) -> Result<(), Fault> {
    let messages = queue_state::messages(tx, turn.tenant(), turn.turn()).await?;
    let open: Vec<&MessageRow> = messages.iter().filter(|message| !message.is_own(acked)).collect();
    if open.is_empty() {
        return Ok(());
    }
    let (next, now) = (TurnId::new(), tx.now.0);
    let sql = "/* move_open_steers */ INSERT INTO turns \
               (tenant, id, session, transcript, branch, ord, state, lane, mode, merge_key, sender, opened, due, \
               closed, policy, lease_ms, max_attempts, max_turn_ms, max_concurrent, retry_ms, resume_continue, route) \
               SELECT tenant, $1, session, transcript, branch, ord, 'waiting', lane, mode, merge_key, NULL, $2, $2, \
               true, policy, lease_ms, max_attempts, max_turn_ms, max_concurrent, retry_ms, resume_continue, route \
               FROM turns WHERE tenant = $3 AND id = $4";
    let query = sqlx::query(sql)
        .bind(next.0)
        .bind(now)
        .bind(turn.tenant)
        .bind(turn.id);
    query.execute(tx.conn()).await?;
    let sql = "/* move_open_steers */ UPDATE inbox SET turn = $1, steer = NULL WHERE tenant = $2 AND turn = $3 \
               AND steer > $4";
    let query = sqlx::query(sql)
        .bind(next.0)
        .bind(turn.tenant)
        .bind(turn.id)
        .bind(acked);
    query.execute(tx.conn()).await?;
    Ok(())
}

/// Adds to the session's counters, unless a reset has zeroed them for another transcript since.
async fn count(tx: &mut Tx, input: &CommitInput, turn: &TurnRow) -> Result<SessionRow, Fault> {
    let usage: &Usage = &input.usage;
    let reported = |number: i64| (number > 0).then_some(number);
    let named = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    let sql = "/* count */ UPDATE sessions SET turns = turns + 1, input_tokens = input_tokens + $1, \
               output_tokens = output_tokens + $2, last_prompt_tokens = coalesce($3, last_prompt_tokens), \
               context_window = coalesce($4, context_window), provider = coalesce($5, provider), \
               model = coalesce($6, model) WHERE tenant = $7 AND id = $8 AND transcript = $9";
    let query = sqlx::query(sql)
        .bind(usage.input_tokens)
        .bind(usage.output_tokens);
    let query = query
        .bind(reported(usage.context_tokens))
        .bind(reported(usage.window_tokens));
    let query = query.bind(named(&usage.provider)).bind(named(&usage.model));
    query
        .bind(turn.tenant)
        .bind(turn.session)
        .bind(turn.transcript)
        .execute(tx.conn())
        .await?;
    session::touch(tx, turn.tenant(), turn.session()).await?;
    session::load(tx, turn.tenant(), turn.session()).await
}

/// Whether a compaction job was written or is under way.
async fn write_jobs(
    tx: &mut Tx,
    input: &CommitInput,
    turn: &TurnRow,
    session: &SessionRow,
    branch: &BranchRow,
) -> Result<bool, Fault> {
    if let Some(id) = input.extract {
        let job = new_job(turn, JobKind::MemoryExtract, id, input.extract_delay_ms);
        job::enqueue(tx, turn.tenant(), &job).await?;
    }
    let current = session.transcript == turn.transcript;
    let needed = input.compact.filter(|above| {
        current && (branch.window_messages > above.messages || branch.window_tokens > above.tokens)
    });
    if let Some(above) = needed {
        job::enqueue(
            tx,
            turn.tenant(),
            &new_job(turn, JobKind::Compaction, above.job, 0),
        )
        .await?;
    }
    let active = job::active(tx, turn.tenant(), turn.session(), JobKind::Compaction).await?;
    Ok(active.is_some())
}

fn new_job(turn: &TurnRow, kind: JobKind, id: JobId, delay_ms: i64) -> NewJob {
    let line = turn.line();
    NewJob {
        id,
        kind,
        session: turn.session(),
        transcript: line.transcript,
        branch: line.branch,
        delay_ms,
        payload_json: "{}".to_owned(),
    }
}

async fn finish(
    tx: &mut Tx,
    input: &CommitInput,
    turn: &TurnRow,
    committed: Committed,
) -> Result<Committed, Fault> {
    let now = tx.now.0;
    let next_due = queue_state::next_due(tx, turn.tenant(), turn.session()).await?;
    let committed = Committed {
        next_due,
        ..committed
    };
    let sql = "/* finish_commit */ UPDATE turns SET state = 'committed', expires = NULL, commit_hash = $1, \
               commit_answer = $2, ended = $3 WHERE tenant = $4 AND id = $5";
    let query = sqlx::query(sql)
        .bind(&input.content_hash)
        .bind(json::to_bytes(&committed)?)
        .bind(now);
    query.bind(turn.tenant).bind(turn.id).execute(tx.conn()).await?;
    queue_state::drop_staged(tx, turn.tenant(), turn.turn()).await?;
    Ok(committed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use colloquy_types::{EntryBody, Message};

    #[test]
    fn the_opening_makes_an_entry_of_a_message() {
        let message = Message::user("hi");
        let entry = [MESSAGE_OPEN.as_bytes(), &json::to_bytes(&message).unwrap()[1..]].concat();
        assert_eq!(
            json::from_bytes::<EntryBody>(&entry).unwrap(),
            EntryBody::Message(message)
        );
    }
}
