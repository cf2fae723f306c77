//! The operator's client commands: one file per noun, all over the typed client.
//!
//! Owns what a person types and reads; must not know stores or services beyond the contract. To add a noun: a file
//! with its verbs, and a variant of [`ClientCommand`].

mod accounts;
mod agents;
mod context;
mod entries;
mod jobs;
mod keys;
mod memories;
mod output;
mod paging;
mod queue;
mod send;
mod sessions;
mod tenants;

use clap::Subcommand;
use colloquy_client::{Client, Error};
use output::Output;
use std::path::Path;
use std::time::Duration;
use tonic::Code;

/// Longest wait for a command that has an end.
const DEADLINE: Duration = Duration::from_secs(60);
/// A person waits: a server that is down should be told of soon, a restart still be ridden out.
const RETRY_FOR: Duration = Duration::from_secs(3);

/// How to reach a server.
#[derive(Debug, clap::Args)]
pub struct ClientOptions {
    /// gRPC URL of the server.
    #[arg(
        long,
        global = true,
        env = "COLLOQUY_URL",
        default_value = "http://127.0.0.1:7100"
    )]
    pub url: String,
    /// API key.
    #[arg(
        long,
        global = true,
        env = "COLLOQUY_KEY",
        hide_env_values = true,
        default_value = ""
    )]
    pub key: String,
    /// Print JSON for scripts: field names of the contract, times in RFC 3339.
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum ClientCommand {
    /// Create or list tenants (operator key).
    #[command(subcommand)]
    Tenants(tenants::Tenants),
    /// Create, list or revoke API keys.
    #[command(subcommand)]
    Keys(keys::Keys),
    /// Create, list or show agents and their policies.
    #[command(subcommand)]
    Agents(agents::Agents),
    /// Create or list channel accounts.
    #[command(subcommand)]
    Accounts(accounts::Accounts),
    /// Send a message, as a person would.
    Send(send::Args),
    /// List sessions, show one, or follow its entries.
    #[command(subcommand)]
    Sessions(sessions::Sessions),
    /// What runs and waits in a session, and what became of its messages.
    Queue(queue::Args),
    /// What a model would see of a session, and why; or what another policy would change.
    Context(context::Args),
    /// List, search or delete memories.
    #[command(subcommand)]
    Memories(memories::Memories),
    /// List or show background jobs.
    #[command(subcommand)]
    Jobs(jobs::Jobs),
}

impl ClientCommand {
    /// Whether it runs until it is interrupted.
    fn is_endless(&self) -> bool {
        matches!(self, Self::Sessions(sessions::Sessions::Tail { .. }))
    }
}

/// Runs a command against the server of the options.
///
/// # Errors
/// What the server answered, with what to do about it.
pub async fn run(command: ClientCommand, options: &ClientOptions) -> anyhow::Result<()> {
    if !options.url.starts_with("http://") && !options.url.starts_with("https://") {
        let url = &options.url;
        let hint = "give one like http://127.0.0.1:7100 with --url or COLLOQUY_URL";
        let message = format!("`{url}` is not the URL of a server: {hint}");
        return Err(Refused {
            message,
            exit_code: 2,
        }
        .into());
    }
    if options.url.starts_with("https://") {
        let message = "this program speaks plain HTTP/2: reach the server inside its network, or through a proxy that \
                       ends TLS on your side";
        return Err(usage(message));
    }
    let mut client = Client::connect(&options.url, &options.key).map_err(|e| explain(e.into(), options))?;
    client.retry.limit = RETRY_FOR;
    let out = Output { json: options.json };
    let endless = command.is_endless();
    let work = dispatch(&client, &out, command);
    let done = if endless {
        work.await
    } else {
        let late = || Refused {
            message: format!("no answer from {} within {} s", options.url, DEADLINE.as_secs()),
            exit_code: 3,
        };
        tokio::time::timeout(DEADLINE, work)
            .await
            .unwrap_or_else(|_| Err(late().into()))
    };
    done.map_err(|error| explain(error, options))
}

async fn dispatch(client: &Client, out: &Output, command: ClientCommand) -> anyhow::Result<()> {
    match command {
        ClientCommand::Tenants(verb) => tenants::run(client, out, verb).await,
        ClientCommand::Keys(verb) => keys::run(client, out, verb).await,
        ClientCommand::Agents(verb) => agents::run(client, out, verb).await,
        ClientCommand::Accounts(verb) => accounts::run(client, out, verb).await,
        ClientCommand::Send(args) => send::run(client, out, args).await,
        ClientCommand::Sessions(verb) => sessions::run(client, out, verb).await,
        ClientCommand::Queue(args) => queue::run(client, out, args).await,
        ClientCommand::Context(args) => context::run(client, out, args).await,
        ClientCommand::Memories(verb) => memories::run(client, out, verb).await,
        ClientCommand::Jobs(verb) => jobs::run(client, out, verb).await,
    }
}

/// A command that did not succeed: what a person can do about it, and the process's exit code.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    pub message: String,
    pub exit_code: u8,
}

/// The command cannot mean anything: the same again will not help.
fn usage(message: impl Into<String>) -> anyhow::Error {
    let message = message.into();
    Refused {
        message,
        exit_code: 2,
    }
    .into()
}

/// What a person can do about the answer.
fn explain(error: anyhow::Error, options: &ClientOptions) -> anyhow::Error {
    let status = error.downcast_ref::<tonic::Status>().cloned().map(Error::from);
    let Some(known) = status.as_ref().or_else(|| error.downcast_ref::<Error>()) else {
        return error;
    };
    let cut_off = known.code == Code::Unknown && known.message.contains("transport");
    let (url, said) = (&options.url, &known.message);
    let unreached = || format!("cannot reach {url}: is `colloquy dev` running? ({said})");
    let (exit_code, message) = match known.reason.as_str() {
        "BAD_CREDENTIAL" if options.key.is_empty() => {
            (2, "no API key: pass --key or set COLLOQUY_KEY".to_owned())
        }
        "BAD_CREDENTIAL" => (
            2,
            "the API key is unknown or revoked: check --key or COLLOQUY_KEY".to_owned(),
        ),
        "MISSING_ROLE" if said.contains("operator") => (
            2,
            format!(
                "{said}: give the server's `auth.operator_key` with --key (`dev` keeps its own in keys.json)"
            ),
        ),
        "MISSING_ROLE" => (2, format!("the key may not do this: {said}")),
        "DEPENDENCY" => (
            3,
            format!("{url} answers, but something it needs does not: {said}"),
        ),
        "UNAVAILABLE" => (3, unreached()),
        _ if cut_off => (3, unreached()),
        _ if known.code == Code::Cancelled && !known.named => {
            (2, format!("{url} is not a gRPC address: {said}"))
        }
        reason => {
            let code = match known.code {
                Code::InvalidArgument => 2,
                Code::DeadlineExceeded => 3,
                _ => 1,
            };
            // `session ses_… does not exist` names its kind already.
            let field = known
                .field
                .iter()
                .filter(|field| !said.starts_with(field.as_str()));
            let field = field.map(|field| format!(" ({field})")).collect::<String>();
            (code, format!("{reason}{field}: {said}"))
        }
    };
    Refused { message, exit_code }.into()
}

/// Overrides of a policy: a JSON object as it stands, else the name of a file that holds one. Empty = none.
fn overrides(text: &str) -> anyhow::Result<String> {
    let json = if text.is_empty() || text.trim_start().starts_with('{') {
        text.to_owned()
    } else {
        let file = Path::new(text.strip_prefix('@').unwrap_or(text));
        std::fs::read_to_string(file).map_err(|error| {
            let file = file.display();
            usage(format!(
                "settings of a policy are a JSON object or a file: cannot read {file}: {error}"
            ))
        })?
    };
    if !json.is_empty() {
        serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&json)
            .map_err(|error| usage(format!("settings of a policy are not a JSON object: {error}")))?;
    }
    Ok(json)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic::Status;

    fn options(key: &str) -> ClientOptions {
        ClientOptions {
            url: "http://127.0.0.1:7100".into(),
            key: key.into(),
            json: false,
        }
    }

    #[test]
    fn a_server_that_is_not_there_is_said_with_what_to_do() {
        for status in [Status::unavailable("refused"), Status::unknown("transport error")] {
            let said = explain(status.into(), &options("k")).to_string();
            assert!(
                said.starts_with("cannot reach http://127.0.0.1:7100: is `colloquy dev` running?"),
                "{said}"
            );
        }
    }

    #[test]
    fn the_exit_code_says_whose_fault_it_is() {
        for (status, code) in [
            (Status::unavailable("refused"), 3),
            (Status::deadline_exceeded("late"), 3),
            (Status::invalid_argument("agent"), 2),
            (Status::not_found("no such session"), 1),
        ] {
            let refused = explain(status.into(), &options("k"));
            assert_eq!(
                refused.downcast_ref::<Refused>().unwrap().exit_code,
                code,
                "{refused}"
            );
        }
    }

    #[test]
    fn other_errors_keep_their_reason() {
        let said = explain(Status::not_found("no such session").into(), &options("k")).to_string();
        assert_eq!(said, "NOT_FOUND: no such session");
    }

    #[test]
    fn a_kind_that_the_message_names_is_not_said_twice() {
        let mut error = Error::from(Status::not_found("session ses_1 does not exist"));
        error.field = Some("session".into());
        let said = explain(error.into(), &options("k")).to_string();
        assert_eq!(said, "NOT_FOUND: session ses_1 does not exist");
        let mut error = Error::from(Status::invalid_argument("is blank"));
        error.field = Some("query".into());
        let said = explain(error.into(), &options("k")).to_string();
        assert!(said.ends_with(" (query): is blank"), "{said}");
    }

    #[test]
    fn what_can_be_made_can_be_created_and_listed() {
        use clap::Parser;
        let create: &[&[&str]] = &[
            &["tenants", "create", "Harbour Bikes"],
            &["keys", "create", "worker", "--role", "agent"],
            &["agents", "create", "default"],
            &[
                "accounts",
                "create",
                "bot",
                "--channel",
                "telegram",
                "--agent",
                "default",
            ],
        ];
        for words in create {
            let list = [words[0], "list"];
            for line in [words, &list[..]] {
                let line = [&["colloquy"], line].concat();
                crate::app::App::try_parse_from(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
            }
        }
    }

    #[test]
    fn overrides_are_json_or_a_file() {
        assert_eq!(overrides("").unwrap(), "");
        assert_eq!(overrides(r#"{"a":1}"#).unwrap(), r#"{"a":1}"#);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), r#"{"b":2}"#).unwrap();
        let path = file.path().display().to_string();
        assert_eq!(overrides(&path).unwrap(), r#"{"b":2}"#);
        assert_eq!(overrides(&format!("@{path}")).unwrap(), r#"{"b":2}"#);
        assert!(overrides("{nope").is_err());
        assert!(overrides("/no/such/file").is_err());
    }
}
