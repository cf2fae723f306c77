//! `colloquy demo`: a conversation through a whole server, by the real webhook and a real gRPC worker.
//!
//! The counts at the end are read back from the server and compared with what was said, never assumed.

mod agent;
mod check;
mod driver;
mod lists;
mod play;
mod script;
mod settle;
mod target;
mod timeline;

use crate::demo::agent::Tally;
use crate::demo::driver::Driver;
use crate::demo::script::Script;
use crate::demo::target::{Stores, Target};
use crate::demo::timeline::Timeline;
use anyhow::Context;
use colloquy_service_kit::shutdown::signal;
use colloquy_service_kit::telemetry::{self, TelemetryConfig};
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Needs nothing but this binary.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  colloquy demo\n  colloquy demo --transcript chats.json.gz --json\n  \
                        colloquy demo --stores postgres=postgres://postgres@127.0.0.1/demo,redis=redis://127.0.0.1,nats=nats://127.0.0.1"
)]
pub struct Args {
    /// Play a chat transcript in OpenAI's format instead: a JSON list of messages, or a list of objects with such a
    /// list under `traj` or `messages` (one session each); plain or gzip.
    #[arg(long, value_name = "FILE")]
    transcript: Option<PathBuf>,
    /// Real servers, one process per service: postgres=URL,redis=URL,nats=URL. The Postgres user owns the database.
    #[arg(long, value_name = "LIST")]
    stores: Option<Stores>,
    /// Write what was read back, one JSON object per message: two runs of one transcript give the same file.
    #[arg(long, value_name = "FILE")]
    entries: Option<PathBuf>,
    /// Log filter.
    #[arg(long, default_value = "error")]
    log: String,
}

/// What the demo counted; `invalid`, `lost`, `duplicated` and `out_of_order` are found by comparing what was read back
/// and delivered with what was said.
#[derive(Debug, Default, Serialize)]
pub struct Summary {
    pub accepted: u64,
    pub turns: u64,
    pub committed: i64,
    pub entries: u64,
    pub deliveries: u64,
    pub compactions: i64,
    pub memories: u64,
    pub context: ContextCounts,
    pub lost: u64,
    pub duplicated: u64,
    pub out_of_order: u64,
    pub elapsed_ms: u128,
}

/// Sums over all builds.
#[derive(Debug, Default, Clone, Serialize)]
pub struct ContextCounts {
    pub built: u64,
    pub tokens_in: u64,
    pub tokens_out: u64,
    pub trimmed: u64,
    pub cleared: u64,
    pub repaired: u64,
    pub invalid: u64,
}

impl Summary {
    fn is_clean(&self) -> bool {
        self.lost + self.duplicated + self.out_of_order + self.context.invalid == 0
    }
}

pub async fn run(args: Args, json: bool) -> anyhow::Result<ExitCode> {
    unless_stopped(whole(args, json)).await
}

/// A signal drops the work where it stands, and with it the processes that it started, which would outlive this one.
async fn unless_stopped(work: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    tokio::select! {
        // First, so that the handlers are there before any process is.
        biased;
        name = signal() => {
            eprintln!("{}: stopped in the middle of it", name?);
            Ok(ExitCode::from(4))
        }
        done = work => done,
    }
}

async fn whole(args: Args, json: bool) -> anyhow::Result<ExitCode> {
    telemetry::init(&TelemetryConfig {
        log: args.log.clone(),
        ..TelemetryConfig::default()
    });
    let script = match &args.transcript {
        Some(file) => {
            Script::from_transcript(file).with_context(|| format!("cannot play {}", file.display()))?
        }
        None => Script::bundled()?,
    };
    let timeline = Timeline::new(!json);
    if script.left_out > 0 {
        let count = script.left_out;
        eprintln!(
            "{count} messages are left out: of the system, without text, or in front of the first of a user"
        );
    }
    let started = Instant::now();
    let target = Target::start(args.stores.as_ref(), &args.log, &timeline).await?;
    let played = play(&target, &script, &timeline).await;
    target.stop().await;
    let (mut summary, entries) = played?;
    if let Some(file) = &args.entries {
        let lines: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
        std::fs::write(file, lines).with_context(|| format!("cannot write {}", file.display()))?;
    }
    summary.elapsed_ms = started.elapsed().as_millis();
    if json {
        say!("{}", serde_json::to_string(&summary)?);
    } else {
        timeline.summary(&summary);
    }
    Ok(if summary.is_clean() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Plays the script; the counts, and the messages as they were read back.
async fn play(
    target: &Target,
    script: &Script,
    timeline: &Timeline,
) -> anyhow::Result<(Summary, Vec<Value>)> {
    let (driver, tally) = (Driver::prepare(target, script, timeline).await?, Tally::default());
    let worker = driver.start_worker(tally.clone());
    let deliveries = driver.start_deliveries();
    let accepted = driver.play(script).await?;
    let mut summary = Summary {
        accepted,
        ..Summary::default()
    };
    driver.settle(script).await?;
    driver.recall(script).await?;
    let entries = check::read_back(&driver, script, &mut summary).await?;
    let expected = script
        .conversations
        .iter()
        .map(|turns| check::replies(turns).len());
    let delivered = deliveries.stop(expected.sum()).await;
    check::compare_replies(script, &delivered, &mut summary);
    worker.stop().await?;
    (summary.turns, summary.context) = tally.sums();
    Ok((summary, entries))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::time::Duration;

    /// The process's state, `None` when it is gone.
    fn state(process: u32) -> Option<char> {
        let line = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        line.rsplit(')').next()?.trim_start().chars().next()
    }

    #[tokio::test]
    async fn a_signal_ends_the_processes_that_were_started() {
        let (send, started) = tokio::sync::oneshot::channel();
        let work = async move {
            let mut child = target::command(Path::new("/bin/sleep"), &[]).arg("600").spawn()?;
            send.send(child.id().context("it runs")?).ok();
            let own = std::process::id().to_string();
            std::process::Command::new("kill")
                .args(["-TERM", &own])
                .status()?;
            child.wait().await?;
            Ok(ExitCode::SUCCESS)
        };
        let code = tokio::time::timeout(Duration::from_secs(60), unless_stopped(work)).await;
        assert_eq!(
            format!("{:?}", code.unwrap().unwrap()),
            format!("{:?}", ExitCode::from(4))
        );
        let process = started.await.unwrap();
        let ended = async {
            while !matches!(state(process), None | Some('Z')) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), ended)
            .await
            .expect("it is ended");
    }

    #[test]
    fn settings_of_the_shell_reach_no_process() {
        // What is in this process's environment under the product's prefix, if anything, and nothing else.
        let command = target::command(Path::new("/bin/true"), &[("COLLOQUY_X".into(), "1".into())]);
        let changes: Vec<_> = command.as_std().get_envs().collect();
        let removed: Vec<_> = changes
            .iter()
            .filter(|(_, value)| value.is_none())
            .map(|(name, _)| *name)
            .collect();
        let own = colloquy_service_kit::config::own_variables();
        assert_eq!(removed.len(), own.len());
        assert!(own.iter().all(|name| removed.contains(&name.as_os_str())));
    }
}
