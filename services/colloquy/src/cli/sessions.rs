//! Sessions.

use super::output::{Output, Row, age, instant};
use super::{entries, paging};
use clap::Subcommand;
use colloquy_client::{Client, v1};
use colloquy_proto::convert::timestamp;
use colloquy_types::{Clock, SystemClock, UnixMillis};
use serde_json::{Value, json};

#[derive(Debug, Subcommand)]
pub enum Sessions {
    /// Sessions, newest activity first.
    #[command(after_help = "Example: colloquy sessions list --agent default --kind direct --json")]
    List(ListArgs),
    /// One session and its last entries.
    #[command(after_help = "Example: colloquy sessions show agent:default:app:me --entries 50")]
    Show {
        /// `ses_…` or a canonical key.
        session: String,
        /// Last entries to show, 1 to 500.
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=500))]
        entries: u32,
    },
    /// Print entries as they come, until Ctrl-C.
    #[command(after_help = "Example: colloquy sessions tail agent:default:app:me")]
    Tail {
        /// `ses_…` or a canonical key.
        session: String,
    },
}

#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Only of this agent.
    #[arg(long, default_value = "", hide_default_value = true)]
    agent: String,
    /// Only of this channel.
    #[arg(long, default_value = "", hide_default_value = true)]
    channel: String,
    /// Only of this kind: direct, group, cron, …
    #[arg(long, default_value = "", hide_default_value = true)]
    kind: String,
    /// Only with a label that starts like this.
    #[arg(long, default_value = "", hide_default_value = true)]
    label: String,
    /// Only direct chats with this person, by their id on the channel.
    #[arg(long, default_value = "", hide_default_value = true)]
    person: String,
    /// Only with activity within this many hours.
    #[arg(long, value_name = "HOURS")]
    active_within: Option<u32>,
    /// At most this many.
    #[arg(long, default_value_t = 50)]
    limit: u32,
}

/// A session by id or key.
///
/// # Errors
/// `NOT_FOUND`; `INVALID_FIELD` when it is neither.
pub async fn find(client: &Client, text: &str) -> anyhow::Result<v1::Session> {
    use v1::get_session_request::Session;
    let asked = if text.starts_with("ses_") {
        Session::SessionId(text.to_owned())
    } else {
        Session::Key(text.to_owned())
    };
    let ask = v1::GetSessionRequest { session: Some(asked) };
    let found = client.history().get_session(ask).await?;
    Ok(found.into_inner().session.unwrap_or_default())
}

pub async fn run(client: &Client, out: &Output, verb: Sessions) -> anyhow::Result<()> {
    match verb {
        Sessions::List(args) => list(client, out, args).await,
        Sessions::Show { session, entries } => show(client, out, &session, entries).await,
        Sessions::Tail { session } => entries::tail(client, out, &find(client, &session).await?).await,
    }
}

async fn list(client: &Client, out: &Output, args: ListArgs) -> anyhow::Result<()> {
    let active_since = args.active_within.map(|hours| {
        let since = SystemClock.now().0 - i64::from(hours) * 3_600_000;
        timestamp(UnixMillis(since))
    });
    let (sessions, more) = paging::up_to(args.limit, |page_size, page_token| {
        let ask = v1::ListSessionsRequest {
            agent: args.agent.clone(),
            channel: args.channel.clone(),
            kind: args.kind.clone(),
            label_prefix: args.label.clone(),
            page_size,
            page_token,
            person: args.person.clone(),
            active_since,
        };
        let mut history = client.history();
        async move {
            let page = history.list_sessions(ask).await?.into_inner();
            Ok((page.sessions, page.next_page_token))
        }
    })
    .await?;
    out.list(
        &[
            "SESSION", "KEY", "ENTRIES", "TOKENS", "WAITING", "RUNNING", "ACTIVE",
        ],
        sessions.iter().map(row).collect(),
    );
    out.cut(more);
    Ok(())
}

async fn show(client: &Client, out: &Output, text: &str, count: u32) -> anyhow::Result<()> {
    let session = find(client, text).await?;
    let rows = entries::last(client, &session, count).await?;
    let mut json = json(&session);
    json["entries"] = rows.iter().map(|(json, _)| json.clone()).collect();
    out.one(&json, &fields(&session));
    if !out.json {
        out.note("");
        out.list(&entries::HEADER, rows);
    }
    Ok(())
}

/// What people want to know of one session.
fn fields(session: &v1::Session) -> Vec<(&'static str, String)> {
    let (messages, tokens) = (session.window_messages, session.window_tokens);
    let last_prompt = match (session.last_prompt_tokens, session.context_window) {
        (Some(tokens), Some(window)) => format!("{tokens} of {window} tokens"),
        (Some(tokens), None) => format!("{tokens} tokens"),
        (None, _) => String::new(),
    };
    vec![
        ("session", session.session_id.clone()),
        ("key", session.key.clone()),
        ("agent", session.agent.clone()),
        ("label", session.label.clone()),
        ("name", session.display_name.clone()),
        ("transcript", session.transcript_id.clone()),
        ("window", format!("{messages} messages, about {tokens} tokens")),
        ("last prompt", last_prompt),
        (
            "model",
            format!("{} {}", session.provider, session.model)
                .trim()
                .to_owned(),
        ),
        (
            "used",
            format!(
                "{} turns, {} tokens in, {} out",
                session.turns, session.input_tokens, session.output_tokens
            ),
        ),
        ("compactions", session.compactions.to_string()),
        ("compaction failed", session.compaction_error.clone()),
        (
            "queue",
            format!("{} running, {} waiting", session.running, session.waiting),
        ),
        ("created", format!("{} ago", age(session.created_at.as_ref()))),
        ("active", format!("{} ago", age(session.updated_at.as_ref()))),
    ]
}

fn json(session: &v1::Session) -> Value {
    json!({
        "session_id": session.session_id, "key": session.key, "agent": session.agent, "channel": session.channel,
        "kind": session.kind, "label": session.label, "display_name": session.display_name,
        "transcript_id": session.transcript_id, "branch_id": session.branch_id, "epoch": session.epoch,
        "head_seq": session.head_seq, "window_messages": session.window_messages,
        "window_tokens": session.window_tokens, "waiting": session.waiting, "running": session.running,
        "input_tokens": session.input_tokens, "output_tokens": session.output_tokens, "turns": session.turns,
        "compactions": session.compactions, "last_prompt_tokens": session.last_prompt_tokens,
        "context_window": session.context_window, "model": session.model, "provider": session.provider,
        "compaction_error": session.compaction_error, "created_at": instant(session.created_at.as_ref()),
        "updated_at": instant(session.updated_at.as_ref()),
        "last_user_activity_at": instant(session.last_user_activity_at.as_ref()),
    })
}

fn row(session: &v1::Session) -> Row {
    let cells = vec![
        session.session_id.clone(),
        session.key.clone(),
        session.head_seq.to_string(),
        session.window_tokens.to_string(),
        session.waiting.to_string(),
        session.running.to_string(),
        age(session.updated_at.as_ref()),
    ];
    (json(session), cells)
}
