//! `colloquy send`.

use super::output::{Output, word};
use super::usage;
use colloquy_client::{Client, v1};
use colloquy_proto::convert::duration_ms;
use serde_json::json;

/// Accepted means stored; the answer comes from a worker.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  colloquy send 'hello' --session-key agent:default:app:me\n  \
                        colloquy send 'hello' --account acc_… --chat 42"
)]
pub struct Args {
    /// What to say.
    text: String,
    /// Canonical session key.
    #[arg(long, conflicts_with = "account")]
    session_key: Option<String>,
    /// Channel account id.
    #[arg(long, requires = "chat")]
    account: Option<String>,
    /// The chat on the account's channel.
    #[arg(long, requires = "account")]
    chat: Option<String>,
    /// Type of the chat.
    #[arg(long, default_value = "direct", value_parser = ["direct", "group", "channel", "room"])]
    kind: String,
    /// Who writes.
    #[arg(long, default_value = "cli")]
    sender: String,
    /// Sending again with the same key is one message; a fresh one when left out.
    #[arg(long)]
    idempotency_key: Option<String>,
}

pub async fn run(client: &Client, out: &Output, args: Args) -> anyhow::Result<()> {
    let request = request(args)?;
    // Safe to repeat: the key makes it one message.
    let submitted = client.retry.call(|| {
        let (mut ingress, request) = (client.ingress(), request.clone());
        async move { ingress.submit(request).await }
    });
    print(out, submitted.await?.accepted.unwrap_or_default());
    Ok(())
}

fn request(args: Args) -> anyhow::Result<v1::SubmitRequest> {
    use v1::submit_request::Target;
    let target = match (args.session_key, args.account) {
        (Some(key), _) => Target::SessionKey(key),
        (None, Some(account)) => Target::Route(v1::SubmitTarget {
            account,
            chat_kind: args.kind,
            chat: args.chat.unwrap_or_default(),
            ..Default::default()
        }),
        (None, None) => {
            return Err(usage(
                "say where to: --session-key KEY, or --account ACCOUNT --chat CHAT",
            ));
        }
    };
    let text = v1::Part {
        part: Some(v1::part::Part::Text(args.text)),
    };
    let message = v1::Message {
        role: v1::MessageRole::User.into(),
        parts: vec![text],
        ..Default::default()
    };
    let fresh = || hex::encode(rand::random::<[u8; 16]>());
    Ok(v1::SubmitRequest {
        target: Some(target),
        sender: Some(v1::Author {
            id: args.sender,
            name: String::new(),
        }),
        message: Some(message),
        idempotency_key: args.idempotency_key.unwrap_or_else(fresh),
        ..Default::default()
    })
}

fn print(out: &Output, accepted: v1::AcceptResult) {
    let placement = word(accepted.placement().as_str_name(), "PLACEMENT_");
    let outcome = match accepted.outcome() {
        v1::Outcome::Unspecified => String::new(),
        outcome => word(outcome.as_str_name(), "OUTCOME_"),
    };
    let due_ms = accepted.due_in.as_ref().map_or(0, duration_ms);
    let json = json!({"message_id": accepted.message_id, "session_id": accepted.session_id,
        "turn_id": accepted.turn_id, "placement": placement, "position": accepted.position, "due_in_ms": due_ms,
        "outcome": outcome});
    let due = if due_ms > 0 {
        format!("{due_ms} ms")
    } else {
        String::new()
    };
    out.one(
        &json,
        &[
            ("message", accepted.message_id),
            ("session", accepted.session_id),
            ("turn", accepted.turn_id),
            ("placement", placement),
            ("turns before it", accepted.position.to_string()),
            ("may start in", due),
            ("outcome", outcome),
        ],
    );
}
