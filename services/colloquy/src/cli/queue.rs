//! A session's queue.

use super::output::{Output, Row, instant, when, word};
use super::sessions::find;
use colloquy_client::{Client, v1};
use serde_json::{Value, json};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: colloquy queue agent:default:app:me")]
pub struct Args {
    /// `ses_…` or a canonical key.
    session: String,
    /// How many of the last messages to show, 1 to 500.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=500))]
    outcomes: u32,
}

pub async fn run(client: &Client, out: &Output, args: Args) -> anyhow::Result<()> {
    let ask = v1::GetQueueRequest {
        session_id: find(client, &args.session).await?.session_id,
        outcomes: args.outcomes,
    };
    let queue = client.router().get_queue(ask).await?.into_inner();
    let running: Vec<Row> = queue.running.iter().map(turn).collect();
    let waiting: Vec<Row> = queue.waiting.iter().map(turn).collect();
    let outcomes: Vec<Row> = queue.outcomes.iter().map(outcome).collect();
    if out.json {
        let json =
            json!({"running": values(&running), "waiting": values(&waiting), "outcomes": values(&outcomes)});
        out.one(&json, &[]);
        return Ok(());
    }
    out.list(
        &["TURN", "STATE", "LANE", "DUE", "ATTEMPT", "WORKER", "MESSAGES"],
        running.into_iter().chain(waiting).collect(),
    );
    out.note("");
    out.list(&["MESSAGE", "ACCEPTED", "OUTCOME", "TURN", "DETAIL"], outcomes);
    Ok(())
}

fn values(rows: &[Row]) -> Vec<&Value> {
    rows.iter().map(|(json, _)| json).collect()
}

fn turn(turn: &v1::QueuedTurn) -> Row {
    let state = word(turn.state().as_str_name(), "TURN_STATE_");
    let lane = word(turn.lane().as_str_name(), "LANE_");
    let json = json!({"turn_id": turn.turn_id, "state": state, "lane": lane,
        "due_at": instant(turn.due_at.as_ref()), "attempt": turn.attempt, "fence": turn.fence,
        "worker": turn.worker, "message_ids": turn.message_ids});
    let cells = vec![
        turn.turn_id.clone(),
        state,
        lane,
        when(turn.due_at.as_ref()),
        turn.attempt.to_string(),
        turn.worker.clone(),
        turn.message_ids.len().to_string(),
    ];
    (json, cells)
}

fn outcome(message: &v1::MessageOutcome) -> Row {
    let outcome = match message.outcome() {
        v1::Outcome::Unspecified => "open".to_owned(),
        outcome => word(outcome.as_str_name(), "OUTCOME_"),
    };
    let json = json!({"message_id": message.message_id, "turn_id": message.turn_id, "outcome": outcome,
        "detail": message.detail, "accepted_at": instant(message.accepted_at.as_ref())});
    let cells = vec![
        message.message_id.clone(),
        when(message.accepted_at.as_ref()),
        outcome,
        message.turn_id.clone(),
        message.detail.clone(),
    ];
    (json, cells)
}
