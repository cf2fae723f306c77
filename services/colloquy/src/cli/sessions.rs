//! Sessions, their entries and queues.

use super::output::{Output, age, excerpt, instant, said, word};
use clap::Subcommand;
use colloquy_client::{Client, v1};
use serde_json::{Value, json};
use std::time::Duration;

/// How often `tail` looks.
const LOOK: Duration = Duration::from_millis(500);

#[derive(Debug, Subcommand)]
pub enum Sessions {
    /// Sessions, newest activity first.
    List {
        #[arg(long, default_value = "")]
        agent: String,
        #[arg(long, default_value = "")]
        channel: String,
        /// direct, group, cron, …
        #[arg(long, default_value = "")]
        kind: String,
        /// Start of the label.
        #[arg(long, default_value = "")]
        label: String,
        /// At most this many.
        #[arg(long, default_value_t = 50)]
        limit: u32,
    },
    /// One session and its last entries.
    #[command(after_help = "Example: colloquy sessions show agent:default:app:me")]
    Show {
        /// `ses_…` or a canonical key.
        session: String,
        /// Last entries to show.
        #[arg(long, default_value_t = 20)]
        entries: u32,
    },
    /// Print entries as they come, until Ctrl-C.
    Tail {
        /// `ses_…` or a canonical key.
        session: String,
    },
}

#[derive(Debug, clap::Args)]
pub struct QueueArgs {
    /// `ses_…` or a canonical key.
    session: String,
}

/// A session by id or key.
pub async fn find(client: &Client, text: &str) -> anyhow::Result<v1::Session> {
    use v1::get_session_request::Session;
    let asked = if text.starts_with("ses_") {
        Session::SessionId(text.to_owned())
    } else {
        Session::Key(text.to_owned())
    };
    let found = client
        .history()
        .get_session(v1::GetSessionRequest { session: Some(asked) })
        .await?;
    Ok(found.into_inner().session.unwrap_or_default())
}

pub async fn run(client: &Client, out: &Output, verb: Sessions) -> anyhow::Result<()> {
    match verb {
        Sessions::List {
            agent,
            channel,
            kind,
            label,
            limit,
        } => {
            let ask = v1::ListSessionsRequest {
                agent,
                channel,
                kind,
                label_prefix: label,
                page_size: limit,
                page_token: String::new(),
            };
            let sessions = client.history().list_sessions(ask).await?.into_inner().sessions;
            out.list(
                &[
                    "SESSION", "KEY", "ENTRIES", "TOKENS", "WAITING", "RUNNING", "ACTIVE",
                ],
                sessions.iter().map(row).collect(),
            );
        }
        Sessions::Show { session, entries } => show(client, out, &session, entries).await?,
        Sessions::Tail { session } => tail(client, out, &session).await?,
    }
    Ok(())
}

fn to_json(session: &v1::Session) -> Value {
    json!({
        "session_id": session.session_id, "key": session.key, "agent": session.agent, "channel": session.channel,
        "kind": session.kind, "label": session.label, "display_name": session.display_name,
        "transcript_id": session.transcript_id, "head_seq": session.head_seq, "epoch": session.epoch,
        "window_messages": session.window_messages, "window_tokens": session.window_tokens,
        "waiting": session.waiting, "running": session.running, "input_tokens": session.input_tokens,
        "output_tokens": session.output_tokens, "turns": session.turns, "compactions": session.compactions,
        "last_prompt_tokens": session.last_prompt_tokens, "context_window": session.context_window,
        "compaction_error": session.compaction_error, "created_at": instant(session.created_at.as_ref()),
        "updated_at": instant(session.updated_at.as_ref()),
    })
}

fn row(session: &v1::Session) -> (Value, Vec<String>) {
    let cells = vec![
        session.session_id.clone(),
        session.key.clone(),
        session.head_seq.to_string(),
        session.window_tokens.to_string(),
        session.waiting.to_string(),
        session.running.to_string(),
        age(session.updated_at.as_ref()),
    ];
    (to_json(session), cells)
}

async fn show(client: &Client, out: &Output, text: &str, entries: u32) -> anyhow::Result<()> {
    let session = find(client, text).await?;
    let ask = v1::ListEntriesRequest {
        session_id: session.session_id.clone(),
        from: Some(v1::list_entries_request::From::BeforeSeq(session.head_seq + 1)),
        page_size: entries.max(1),
        ..Default::default()
    };
    let mut listed = client.history().list_entries(ask).await?.into_inner().entries;
    listed.reverse();
    if out.json {
        let entries: Vec<Value> = listed.iter().map(|entry| line(entry).0).collect();
        let mut json = to_json(&session);
        json["entries"] = Value::Array(entries);
        println!("{json}");
        return Ok(());
    }
    let reported = session
        .last_prompt_tokens
        .map_or_else(|| "unknown".to_owned(), |tokens| tokens.to_string());
    out.one(
        &Value::Null,
        &[
            ("session", session.session_id.clone()),
            ("key", session.key.clone()),
            ("label", session.label.clone()),
            (
                "window",
                format!(
                    "{} messages, {} tokens (estimate)",
                    session.window_messages, session.window_tokens
                ),
            ),
            ("last prompt", format!("{reported} tokens")),
            (
                "used",
                format!(
                    "{} in, {} out, {} turns",
                    session.input_tokens, session.output_tokens, session.turns
                ),
            ),
            (
                "compactions",
                format!("{} {}", session.compactions, session.compaction_error),
            ),
            (
                "queue",
                format!("{} running, {} waiting", session.running, session.waiting),
            ),
            ("active", format!("{} ago", age(session.updated_at.as_ref()))),
        ],
    );
    println!();
    out.list(
        &["SEQ", "KIND", "TOKENS", "TEXT"],
        listed.iter().map(line).collect(),
    );
    Ok(())
}

fn line(entry: &v1::Entry) -> (Value, Vec<String>) {
    use v1::entry_body::Body;
    let body = entry.body.as_ref().and_then(|body| body.body.as_ref());
    let (kind, text) = match body {
        Some(Body::Message(message)) => (word(message.role().as_str_name(), "MESSAGE_ROLE_"), said(message)),
        Some(Body::CustomMessage(custom)) => (
            custom.kind.clone(),
            custom.message.as_ref().map(said).unwrap_or_default(),
        ),
        Some(Body::Custom(custom)) => (custom.kind.clone(), custom.json.clone()),
        Some(Body::Compaction(compaction)) => ("compaction".into(), compaction.summary.clone()),
        Some(Body::BranchSummary(summary)) => ("branch summary".into(), summary.summary.clone()),
        Some(Body::Reset(reset)) => ("reset".into(), reset.reason.clone()),
        Some(Body::Interrupted(interrupted)) => ("interrupted".into(), interrupted.reason.clone()),
        Some(Body::Label(label)) => ("label".into(), label.label.clone()),
        Some(Body::ModelChange(change)) => ("model".into(), format!("{} {}", change.provider, change.model)),
        None => ("unknown".into(), String::new()),
    };
    let json = json!({"entry_id": entry.entry_id, "seq": entry.seq, "kind": kind, "tokens": entry.tokens,
        "turn_id": entry.turn_id, "text": text, "at": instant(entry.at.as_ref())});
    (
        json,
        vec![
            entry.seq.to_string(),
            kind,
            entry.tokens.to_string(),
            excerpt(&text, 100),
        ],
    )
}

async fn tail(client: &Client, out: &Output, text: &str) -> anyhow::Result<()> {
    let session = find(client, text).await?;
    let mut after = session.head_seq;
    out.note(&format!("following {} from entry {after}", session.key));
    loop {
        let ask = v1::ListEntriesRequest {
            session_id: session.session_id.clone(),
            from: Some(v1::list_entries_request::From::AfterSeq(after)),
            ..Default::default()
        };
        let listed = client.retry.call(|| {
            let (mut history, ask) = (client.history(), ask.clone());
            async move { history.list_entries(ask).await }
        });
        for entry in listed.await?.entries {
            after = entry.seq;
            let (json, cells) = line(&entry);
            if out.json {
                println!("{json}");
            } else {
                println!("{:>5}  {:<10} {:>7}  {}", cells[0], cells[1], cells[2], cells[3]);
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

pub async fn queue(client: &Client, out: &Output, args: &QueueArgs) -> anyhow::Result<()> {
    let session = find(client, &args.session).await?;
    let ask = v1::GetQueueRequest {
        session_id: session.session_id,
        outcomes: 20,
    };
    let queue = client.router().get_queue(ask).await?.into_inner();
    let turn = |turn: &v1::QueuedTurn| {
        let state = word(turn.state().as_str_name(), "TURN_STATE_");
        let json = json!({"turn_id": turn.turn_id, "state": state, "attempt": turn.attempt, "worker": turn.worker,
            "messages": turn.message_ids});
        (
            json,
            vec![
                turn.turn_id.clone(),
                state,
                turn.attempt.to_string(),
                turn.worker.clone(),
            ],
        )
    };
    if out.json {
        let rows = |turns: &[v1::QueuedTurn]| turns.iter().map(|t| turn(t).0).collect::<Vec<_>>();
        let outcomes: Vec<Value> = queue.outcomes.iter().map(|message| outcome(message).0).collect();
        println!(
            "{}",
            json!({"running": rows(&queue.running), "waiting": rows(&queue.waiting), "outcomes": outcomes})
        );
        return Ok(());
    }
    out.list(
        &["TURN", "STATE", "ATTEMPT", "WORKER"],
        queue.running.iter().chain(&queue.waiting).map(turn).collect(),
    );
    println!();
    out.list(
        &["MESSAGE", "OUTCOME", "TURN", "DETAIL"],
        queue.outcomes.iter().map(outcome).collect(),
    );
    Ok(())
}

fn outcome(message: &v1::MessageOutcome) -> (Value, Vec<String>) {
    let outcome = match message.outcome() {
        v1::Outcome::Unspecified => "open".to_owned(),
        outcome => word(outcome.as_str_name(), "OUTCOME_"),
    };
    let json = json!({"message_id": message.message_id, "turn_id": message.turn_id, "outcome": outcome,
        "detail": message.detail, "accepted_at": instant(message.accepted_at.as_ref())});
    (
        json,
        vec![
            message.message_id.clone(),
            outcome,
            message.turn_id.clone(),
            message.detail.clone(),
        ],
    )
}
