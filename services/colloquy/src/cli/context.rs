//! What a model would see of a session, and why.

use super::output::{Output, Row};
use super::overrides;
use super::sessions::find;
use super::usage;
use anyhow::Context;
use clap::ValueEnum;
use colloquy_client::{BuiltContext, Client, v1};
use colloquy_context::receipt::Diff;
use colloquy_context::{Receipt, diff, rows};
use serde_json::{Value, json};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  colloquy context agent:default:app:me --provider anthropic --window 200000\n  \
                  colloquy context ses_… --diff trn_…\n  \
                  colloquy context --policy '{\"context\":{\"limit_turns\":10}}' ses_… ses_…"
)]
pub struct Args {
    /// `ses_…` or canonical keys; several only with --policy.
    #[arg(required = true)]
    sessions: Vec<String>,
    /// Shape of the messages.
    #[arg(long, value_enum, default_value_t = Provider::Neutral)]
    provider: Provider,
    /// The model's window in tokens; the policy's by default.
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "TOKENS")]
    window: u32,
    /// The model's name: its past calls correct the counts.
    #[arg(long, default_value = "", hide_default_value = true)]
    model: String,
    /// Tokens of the system prompt and the tool schemas.
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "TOKENS")]
    overhead: u32,
    /// Compare with the last build of this turn.
    #[arg(long, value_name = "TURN", conflicts_with = "policy")]
    diff: Option<String>,
    /// Build with these fields of the policy changed, and say what that changes. Nothing is stored.
    #[arg(long, value_name = "FILE|JSON")]
    policy: Option<String>,
    /// Print the messages themselves, as the provider would get them.
    #[arg(long, conflicts_with_all = ["policy", "diff"])]
    body: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Provider {
    Neutral,
    Anthropic,
    Openai,
    OpenaiStrict,
    OpenaiResponses,
    Gemini,
    Mistral,
}

impl From<Provider> for v1::ContextFormat {
    fn from(provider: Provider) -> Self {
        match provider {
            Provider::Neutral => Self::Neutral,
            Provider::Anthropic => Self::Anthropic,
            Provider::Openai => Self::OpenaiChat,
            Provider::OpenaiStrict => Self::OpenaiChatStrict,
            Provider::OpenaiResponses => Self::OpenaiResponses,
            Provider::Gemini => Self::Gemini,
            Provider::Mistral => Self::Mistral,
        }
    }
}

pub async fn run(client: &Client, out: &Output, args: Args) -> anyhow::Result<()> {
    if let Some(policy) = &args.policy {
        return preview(client, out, &args, &overrides(policy)?).await;
    }
    let [session] = args.sessions.as_slice() else {
        return Err(usage("one session at a time, or several with --policy"));
    };
    if let Some(turn) = &args.diff {
        return compare(client, out, &args, session, turn).await;
    }
    let (found, built) = build(client, &args, session, "", 0).await?;
    let receipt = receipt(&built)?;
    if args.body {
        let body = serde_json::from_slice(&built.body)?;
        out.next(&body, &String::from_utf8_lossy(&built.body));
    } else {
        show(out, &built, &receipt)?;
        waiting(out, &found);
    }
    Ok(())
}

/// What waits is no entry yet.
fn waiting(out: &Output, session: &v1::Session) {
    if session.waiting > 0 {
        let count = session.waiting;
        out.note(&format!(
            "{count} more turns wait: what they say is not part of this."
        ));
    }
}

/// Against the last build of a turn, in that build's terms.
async fn compare(
    client: &Client,
    out: &Output,
    args: &Args,
    session: &str,
    turn: &str,
) -> anyhow::Result<()> {
    let asked = v1::GetReceiptRequest {
        turn_id: turn.to_owned(),
        build: 0,
    };
    let then = client.history().get_receipt(asked).await?.into_inner();
    let then: Receipt = serde_json::from_str(&then.receipt_json).context("the receipt cannot be read")?;
    let (_, built) = build(client, args, session, "", then.tokens.overhead).await?;
    let changed = diff(&then, &receipt(&built)?);
    if out.json {
        out.one(&serde_json::to_value(&changed)?, &[]);
    } else {
        show_diff(out, &changed);
    }
    Ok(())
}

/// A session and its context under the policy in force, or with fields of it changed.
async fn build(
    client: &Client,
    args: &Args,
    session: &str,
    policy: &str,
    overhead: u32,
) -> anyhow::Result<(v1::Session, BuiltContext)> {
    let found = find(client, session).await?;
    if found.head_seq == 0 {
        let waiting = found.waiting + found.running;
        return Err(usage(format!(
            "nothing has been answered in this session yet ({waiting} turns wait or run): there is no context to show"
        )));
    }
    let id = found.session_id.clone();
    let request = v1::BuildContextRequest {
        subject: Some(v1::build_context_request::Subject::SessionId(id)),
        overhead_tokens: overhead.max(args.overhead),
        window_tokens: args.window,
        format: v1::ContextFormat::from(args.provider).into(),
        model: args.model.clone(),
        policy_json: policy.to_owned(),
        ..Default::default()
    };
    Ok((found, client.build_context(&request).await?))
}

fn receipt(built: &BuiltContext) -> anyhow::Result<Receipt> {
    serde_json::from_str(&built.header.receipt_json).context("the receipt cannot be read")
}

fn show(out: &Output, built: &BuiltContext, receipt: &Receipt) -> anyhow::Result<()> {
    let header = &built.header;
    let decision = decision(header);
    if out.json {
        let json = json!({"decision": decision, "window_tokens": header.window_tokens,
            "reserve_tokens": header.reserve_tokens, "expected_tokens": header.expected_tokens,
            "tokens_in": header.tokens_in, "tokens_out": header.tokens_out, "messages": header.messages,
            "sha256": header.sha256, "rows": serde_json::to_value(rows(receipt))?,
            "repairs": serde_json::to_value(&receipt.repairs)?});
        out.one(&json, &[]);
        return Ok(());
    }
    let tokens = format!(
        "{} of {}, {} kept free for the answer",
        header.expected_tokens, header.window_tokens, header.reserve_tokens
    );
    out.one(
        &Value::Null,
        &[
            ("decision", decision),
            ("tokens", tokens),
            (
                "messages",
                format!("{}, {} bytes", header.messages, header.body_bytes),
            ),
        ],
    );
    out.note("");
    let row = |row: colloquy_context::receipt::Row| {
        let tokens = if row.is_shown {
            row.tokens.to_string()
        } else {
            format!("({})", row.tokens)
        };
        let cells = vec![
            row.segment,
            row.entries.to_string(),
            row.action.to_owned(),
            tokens,
            row.reason,
        ];
        (Value::Null, cells)
    };
    let header = ["SEGMENT", "ENTRIES", "ACTION", "TOKENS", "REASON"];
    let rows: Vec<_> = rows(receipt)
        .into_iter()
        .filter(|row| row.entries > 0 || row.tokens > 0)
        .collect();
    let left_out = rows.iter().any(|row| !row.is_shown);
    out.list(&header, rows.into_iter().map(row).collect());
    if left_out {
        out.note("");
        out.note("Tokens in brackets are not sent.");
    }
    Ok(())
}

fn decision(header: &v1::ContextHeader) -> String {
    header
        .decision()
        .as_str_name()
        .trim_start_matches("CONTEXT_DECISION_")
        .to_owned()
}

fn show_diff(out: &Output, diff: &Diff) {
    let part = |change: &colloquy_context::receipt::TokenChange| {
        let more = i64::from(change.after) - i64::from(change.before);
        let cells = vec![
            change.part.to_owned(),
            change.before.to_string(),
            change.after.to_string(),
            format!("{more:+}"),
        ];
        (Value::Null, cells)
    };
    out.list(
        &["PART", "BEFORE", "AFTER", "TOKENS"],
        diff.tokens
            .iter()
            .filter(|change| change.before + change.after > 0)
            .map(part)
            .collect(),
    );
    out.note("");
    let name = |action: Option<colloquy_context::receipt::Action>| {
        action.map_or("-", |action| action.name()).to_owned()
    };
    let changes = diff.blocks.iter().flat_map(|block| &block.changes);
    let changed: Vec<Row> = changes
        .map(|change| {
            let range = format!("{}-{}", change.from.0, change.through.0);
            (Value::Null, vec![range, name(change.before), name(change.after)])
        })
        .collect();
    if diff.is_same_bytes {
        out.note("The messages are the same, byte for byte.");
    } else if changed.is_empty() {
        out.note("The same entries are treated the same.");
    } else {
        out.list(&["ENTRIES", "BEFORE", "AFTER"], changed);
    }
}

/// What another policy would change, session by session.
async fn preview(client: &Client, out: &Output, args: &Args, policy: &str) -> anyhow::Result<()> {
    let (mut rows, mut total) = (Vec::new(), 0);
    let mut last = None;
    for session in &args.sessions {
        let (found, now) = build(client, args, session, "", 0).await?;
        let (_, then) = build(client, args, session, policy, 0).await?;
        let id = found.session_id;
        let changed = diff(&receipt(&now)?, &receipt(&then)?);
        total += changed.tokens_added();
        let (before, after) = (&now.header, &then.header);
        let cells = vec![
            id.clone(),
            decision(before),
            decision(after),
            before.expected_tokens.to_string(),
            after.expected_tokens.to_string(),
            format!("{:+}", changed.tokens_added()),
            format!(
                "{} → {}",
                before.trimmed + before.cleared,
                after.trimmed + after.cleared
            ),
        ];
        let json = json!({"session_id": id, "decision_before": decision(before), "decision_after": decision(after),
            "expected_tokens_before": before.expected_tokens, "expected_tokens_after": after.expected_tokens,
            "diff": serde_json::to_value(&changed)?});
        rows.push((json, cells));
        last = Some(changed);
    }
    let one = rows.len() == 1;
    let header = [
        "SESSION",
        "DECISION",
        "WITH IT",
        "TOKENS",
        "WITH IT",
        "CHANGE",
        "SHORTENED",
    ];
    out.list(&header, rows);
    out.note("");
    match last {
        Some(changed) if one && !out.json => show_diff(out, &changed),
        _ => out.note(&format!("{total:+} tokens in all")),
    }
    Ok(())
}
