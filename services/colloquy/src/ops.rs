//! Verbs for operating a process: migrate, wait-for, healthcheck, config.

use crate::app::ConfigFile;
use crate::check::check;
use crate::cli::Refused;
use crate::config::Config;
use crate::wiring;
use anyhow::{Context, bail};
use clap::Subcommand;
use colloquy_service_kit::config::ConfigError;
use colloquy_types::{Error, Reason};
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::Instant;

#[derive(Debug, clap::Args)]
pub struct ConfigArgs {
    #[command(flatten)]
    file: ConfigFile,
}

#[derive(Debug, clap::Args)]
pub struct WaitArgs {
    #[command(flatten)]
    file: ConfigFile,
    /// Give up after this many seconds, with exit code 3.
    #[arg(long, default_value_t = 60)]
    timeout: u64,
}

#[derive(Debug, clap::Args)]
pub struct HealthArgs {
    /// The process's admin address.
    #[arg(long, env = "COLLOQUY_ADMIN_URL", default_value = "http://127.0.0.1:7190")]
    admin_url: String,
}

#[derive(Debug, Subcommand)]
pub enum ConfigVerb {
    /// Read the settings and say what is wrong with them.
    Check(ConfigArgs),
    /// Print the effective settings, secrets blanked.
    Print(ConfigArgs),
    /// Print every setting with its default.
    Reference,
}

/// The documented exit code of an error.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    if error.is::<ConfigError>() {
        return 2;
    }
    if let Some(refused) = error.downcast_ref::<Refused>() {
        return refused.exit_code;
    }
    match error.downcast_ref::<Error>().map(|error| error.reason) {
        Some(Reason::InvalidField) => 2,
        Some(Reason::Dependency | Reason::Deadline) => 3,
        _ => 1,
    }
}

pub async fn migrate(args: &ConfigArgs) -> anyhow::Result<ExitCode> {
    let config = Config::load(args.file.config.as_deref())?;
    say!("bringing the schema up to date; other processes that migrate wait for this one");
    wiring::migrate(&config).await?;
    say!("the schema is up to date");
    Ok(ExitCode::SUCCESS)
}

pub async fn wait_for(args: &WaitArgs) -> anyhow::Result<ExitCode> {
    let config = Config::load(args.file.config.as_deref())?;
    let end = Instant::now() + Duration::from_secs(args.timeout);
    reached("database", end, |wait| wiring::stores(&config, wait)).await?;
    reached("coordination", end, |wait| wiring::coord(&config, wait)).await?;
    reached("bus", end, |wait| wiring::bus(&config, wait)).await?;
    Ok(ExitCode::SUCCESS)
}

/// Says what is waited for, and when it has come.
async fn reached<T, F>(what: &str, end: Instant, dependency: impl FnOnce(Duration) -> F) -> anyhow::Result<()>
where
    F: Future<Output = colloquy_types::Result<T>>,
{
    say!("waiting for the {what}");
    let start = Instant::now();
    // All the time that is left: a process of its own waits less long.
    let dependency = dependency(end.saturating_duration_since(start));
    match tokio::time::timeout_at(end, dependency).await {
        Ok(done) => done.map(|_| ())?,
        Err(_) => return Err(Error::unavailable(format!("the {what} did not answer in time")).into()),
    }
    say!("the {what} answers after {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

pub async fn healthcheck(args: &HealthArgs) -> anyhow::Result<ExitCode> {
    let url = format!("{}/readyz", args.admin_url.trim_end_matches('/'));
    let (host, path) = url
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once('/'))
        .context("use http://host:port")?;
    let answer = tokio::time::timeout(Duration::from_secs(3), get(host, path))
        .await
        .map_err(|_| Error::unavailable(format!("{url}: no answer in 3 s")))?;
    let answer = answer.map_err(|error| {
        Error::unavailable(format!(
            "cannot reach {url}: {error} (`server.admin_listen`; `dev` has none)"
        ))
    })?;
    if !answer.starts_with("HTTP/1.1 200") {
        bail!("not ready: {}", answer.lines().next().unwrap_or_default());
    }
    say!("ready");
    Ok(ExitCode::SUCCESS)
}

/// One plain GET; a probe needs no HTTP client.
async fn get(host: &str, path: &str) -> std::io::Result<String> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(host).await?;
    let request = format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

pub fn config(verb: &ConfigVerb) -> anyhow::Result<ExitCode> {
    match verb {
        ConfigVerb::Check(args) => {
            let config = Config::load(args.file.config.as_deref())?;
            check(&config)?;
            say!("the settings are good");
        }
        ConfigVerb::Print(args) => say!(
            "{}",
            Config::load(args.file.config.as_deref())?.redacted()?.trim_end()
        ),
        ConfigVerb::Reference => say!("{}", Config::default().redacted()?.trim_end()),
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_wait_lasts_as_long_as_was_asked_for() {
        let mut config = Config::default();
        // Nothing listens on port 1.
        config.redis.url = "redis://127.0.0.1:1".into();
        let (start, limit) = (Instant::now(), Duration::from_secs(300));
        let waited = reached("coordination", start + limit, |wait| wiring::coord(&config, wait)).await;
        assert_eq!(exit_code(&waited.unwrap_err()), 3);
        let waited = start.elapsed();
        assert!(
            waited > limit - Duration::from_secs(5) && waited <= limit + Duration::from_secs(1),
            "{waited:?}"
        );
    }
}
