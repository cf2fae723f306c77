//! The people's side: webhooks in, replies out, and a look at the lists afterwards.

use super::agent::{self, Parts, Tally, WINDOW_TOKENS};
use super::script::{Chat, Script, ScriptTurn};
use super::target::Target;
use super::timeline::{Timeline, excerpt};
use anyhow::{Context, bail};
use colloquy_client::{Client, Worker, v1};
use colloquy_types::Entry;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Conversations played beside each other.
const CONCURRENCY: usize = 8;
/// A turn that is not answered within this time fails the demo.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);
/// How long the last jobs may take.
const SETTLE_WITHIN: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(25);

/// A tenant of its own, with an agent, an account and keys.
#[derive(Clone)]
pub struct Driver {
    admin: Client,
    worker: Client,
    channel: Client,
    account: String,
    webhook: String,
    secret: String,
    agent: String,
    http: reqwest::Client,
    parts: Parts,
    updates: Arc<AtomicI64>,
    timeline: Timeline,
}

/// Something that runs until it is told to stop.
pub struct Background<T> {
    stop: CancellationToken,
    task: JoinHandle<T>,
}

impl Background<anyhow::Result<()>> {
    pub async fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        self.task.await?
    }
}

impl Background<u64> {
    /// Waits a moment for what is still on its way, then counts.
    pub async fn stop(self) -> u64 {
        tokio::time::sleep(Duration::from_millis(700)).await;
        self.stop.cancel();
        self.task.await.unwrap_or_default()
    }
}

impl Driver {
    pub async fn prepare(target: &Target, script: &Script, timeline: &Timeline) -> anyhow::Result<Self> {
        let operator = target.operator();
        let name = format!("demo {}", hex::encode(rand::random::<[u8; 4]>()));
        let create = v1::CreateTenantRequest { name };
        let created = operator.retry.call(|| {
            let (mut control, create) = (operator.control(), create.clone());
            async move { control.create_tenant(create).await }
        });
        let admin = operator.with_key(&created.await?.admin_key)?;
        let mut control = admin.control();
        // Short waits: a demo is watched. Everything else is the default profile.
        let overrides = json!({
            "model": {"window_tokens": WINDOW_TOKENS},
            "queue": {"debounce_ms": 150},
            "memory": {"extract_delay_ms": 200},
        });
        let policy = v1::Policy {
            profile: "goclaw".into(),
            overrides_json: overrides.to_string(),
        };
        let agent = v1::Agent {
            agent_id: script.agent.clone(),
            policy: Some(policy),
            ..Default::default()
        };
        control
            .put_agent(v1::PutAgentRequest { agent: Some(agent) })
            .await?;
        let account = v1::ChannelAccount {
            channel: "telegram".into(),
            agent: script.agent.clone(),
            name: "demo".into(),
            ..Default::default()
        };
        let put = control
            .put_channel_account(v1::PutChannelAccountRequest {
                account: Some(account),
            })
            .await?
            .into_inner();
        let account = put.account.context("no account")?;
        let key = |role: v1::Role, account: &str| v1::CreateApiKeyRequest {
            name: format!("demo {}", role.as_str_name()),
            roles: vec![role.into()],
            account: account.to_owned(),
            ..Default::default()
        };
        let worker = control
            .create_api_key(key(v1::Role::Agent, ""))
            .await?
            .into_inner()
            .secret;
        let channel = control
            .create_api_key(key(v1::Role::Channel, &account.account_id))
            .await?
            .into_inner()
            .secret;
        Ok(Self {
            worker: admin.with_key(&worker)?,
            channel: admin.with_key(&channel)?,
            admin,
            webhook: format!("{}{}", target.webhooks, put.webhook_path),
            account: account.account_id,
            secret: account.secret,
            agent: script.agent.clone(),
            http: http_client()?,
            parts: Parts::default(),
            updates: Arc::new(AtomicI64::new(1)),
            timeline: timeline.clone(),
        })
    }

    pub fn start_worker(&self, tally: Tally) -> Background<anyhow::Result<()>> {
        let stop = CancellationToken::new();
        let worker = Worker::new(self.worker.clone(), "demo")
            .concurrency(CONCURRENCY)
            .stop_with(stop.clone());
        let (parts, timeline) = (self.parts.clone(), self.timeline.clone());
        let run = worker.run(move |turn| agent::answer(turn, parts.clone(), tally.clone(), timeline.clone()));
        let task = tokio::spawn(async move { run.await.map_err(anyhow::Error::from) });
        Background { stop, task }
    }

    /// Takes replies and acknowledges them; counts each delivery once.
    pub fn start_deliveries(&self) -> Background<u64> {
        let (driver, stop) = (self.clone(), CancellationToken::new());
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let mut seen = HashSet::new();
            while !stopped.is_cancelled() {
                tokio::select! {
                    () = stopped.cancelled() => break,
                    taken = driver.deliveries(&mut seen) => if taken.is_err() {
                        tokio::time::sleep(LOOK).await;
                    },
                }
            }
            seen.len() as u64
        });
        Background { stop, task }
    }

    async fn deliveries(&self, seen: &mut HashSet<String>) -> Result<(), colloquy_client::Error> {
        let ask = v1::StreamDeliveriesRequest {
            account: self.account.clone(),
        };
        let mut stream = self.channel.ingress().stream_deliveries(ask).await?.into_inner();
        while let Some(response) = stream.message().await? {
            let Some(delivery) = response.delivery else {
                continue;
            };
            // Counted before the acknowledgement: one that comes again is the same one.
            if seen.insert(delivery.delivery_id.clone()) {
                let texts = delivery.parts.iter().filter_map(|part| match &part.part {
                    Some(v1::part::Part::Text(text)) => Some(text.as_str()),
                    _ => None,
                });
                let text = texts.collect::<Vec<_>>().join(" ");
                let chat = delivery.route.map(|route| route.chat).unwrap_or_default();
                self.timeline
                    .event("delivered", format!("chat {chat}"), excerpt(&text, 80));
            }
            let ack = v1::AckDeliveryRequest {
                delivery_id: delivery.delivery_id,
                result: v1::DeliveryResult::Delivered.into(),
                ..Default::default()
            };
            self.channel.ingress().ack_delivery(ack).await?;
        }
        Ok(())
    }

    /// Plays everything; returns the accepted messages.
    pub async fn play(&self, script: &Script) -> anyhow::Result<u64> {
        self.timeline.title("Playing");
        let accepted = Arc::new(AtomicU64::new(0));
        if let Some(order) = &script.order {
            for (conversation, turn) in order {
                self.turn(&script.conversations[*conversation][*turn], &accepted)
                    .await?;
            }
            return Ok(accepted.load(Ordering::SeqCst));
        }
        let hands = Arc::new(tokio::sync::Semaphore::new(CONCURRENCY));
        let mut playing = tokio::task::JoinSet::new();
        for turns in script.conversations.clone() {
            let (driver, accepted, hand) = (
                self.clone(),
                accepted.clone(),
                hands.clone().acquire_owned().await?,
            );
            playing.spawn(async move {
                let _hand = hand;
                for turn in &turns {
                    driver.turn(turn, &accepted).await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(done) = playing.join_next().await {
            done??;
        }
        Ok(accepted.load(Ordering::SeqCst))
    }

    async fn turn(&self, turn: &ScriptTurn, accepted: &AtomicU64) -> anyhow::Result<()> {
        self.parts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(turn.chat.id, turn.clone());
        let mut last = (String::new(), String::new());
        for text in &turn.texts {
            last = self.post(turn, text).await?;
            accepted.fetch_add(1, Ordering::SeqCst);
            self.timeline
                .event("accepted", &turn.sender_name, excerpt(text, 80));
        }
        let (session, message) = last;
        let outcome = tokio::time::timeout(ANSWER_WITHIN, self.outcome(&session, &message)).await;
        let outcome =
            outcome.with_context(|| format!("no answer to “{}”", excerpt(&turn.texts[0], 60)))??;
        self.timeline.event(
            "committed",
            &turn.sender_name,
            format!("{} entries, {outcome}", turn.texts.len() + turn.entries.len()),
        );
        if outcome != "ANSWERED" {
            bail!("the message ended as {outcome}");
        }
        Ok(())
    }

    /// Posts a Telegram update until it is accepted, as Telegram would.
    async fn post(&self, turn: &ScriptTurn, text: &str) -> anyhow::Result<(String, String)> {
        let number = self.updates.fetch_add(1, Ordering::SeqCst);
        let kind = if turn.chat.group { "supergroup" } else { "private" };
        let update = json!({
            "update_id": number,
            "message": {
                "message_id": number,
                "date": 1_780_000_000 + number,
                "text": text,
                "chat": {"id": turn.chat.id, "type": kind},
                "from": {"id": turn.sender_id, "is_bot": false, "first_name": turn.sender_name},
            },
        });
        for _ in 0..60 {
            let call = self
                .http
                .post(&self.webhook)
                .header("x-telegram-bot-api-secret-token", &self.secret);
            match call.json(&update).send().await {
                Ok(answer) if answer.status().is_success() => {
                    let body: Value = answer.json().await?;
                    if body["ok"] != true {
                        bail!("refused: {body}");
                    }
                    let text = |field: &str| body[field].as_str().unwrap_or_default().to_owned();
                    return Ok((text("session_id"), text("message_id")));
                }
                Ok(answer) if answer.status().is_client_error() => {
                    bail!(
                        "the webhook answered {}: {}",
                        answer.status(),
                        answer.text().await?
                    );
                }
                _ => tokio::time::sleep(Duration::from_millis(200)).await,
            }
        }
        bail!("the webhook does not accept")
    }

    /// Waits until the message has an end.
    async fn outcome(&self, session: &str, message: &str) -> anyhow::Result<String> {
        loop {
            let ask = v1::GetQueueRequest {
                session_id: session.to_owned(),
                outcomes: 20,
            };
            let queue = self.admin.retry.call(|| {
                let (mut router, ask) = (self.admin.router(), ask.clone());
                async move { router.get_queue(ask).await }
            });
            let found = queue
                .await?
                .outcomes
                .into_iter()
                .find(|outcome| outcome.message_id == message);
            if let Some(outcome) = found.filter(|outcome| outcome.outcome() != v1::Outcome::Unspecified) {
                return Ok(outcome
                    .outcome()
                    .as_str_name()
                    .trim_start_matches("OUTCOME_")
                    .to_owned());
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until no job is left to do, and shows what they did.
    pub async fn settle(&self, script: &Script) -> anyhow::Result<()> {
        self.timeline.title("Background work");
        let end = tokio::time::Instant::now() + SETTLE_WITHIN;
        loop {
            let jobs = self.jobs().await?;
            let ended = |job: &&v1::Job| {
                matches!(
                    job.state(),
                    v1::JobState::Done | v1::JobState::Cancelled | v1::JobState::Dead
                )
            };
            if jobs.iter().all(|job| ended(&job)) {
                self.show_jobs(script, &jobs).await?;
                return Ok(());
            }
            if tokio::time::Instant::now() > end {
                let open: Vec<String> = jobs
                    .iter()
                    .filter(|job| !ended(job))
                    .map(|job| {
                        format!(
                            "{} {} {}",
                            job.kind().as_str_name(),
                            job.state().as_str_name(),
                            job.error
                        )
                    })
                    .collect();
                bail!("jobs are still open: {}", open.join("; "));
            }
            tokio::time::sleep(LOOK * 4).await;
        }
    }

    async fn jobs(&self) -> anyhow::Result<Vec<v1::Job>> {
        let (mut jobs, mut page_token) = (Vec::new(), String::new());
        loop {
            let ask = v1::ListJobsRequest {
                page_size: 500,
                page_token,
                ..Default::default()
            };
            let page = self.admin.compactor().list_jobs(ask).await?.into_inner();
            jobs.extend(page.jobs);
            if page.next_page_token.is_empty() {
                return Ok(jobs);
            }
            page_token = page.next_page_token;
        }
    }

    async fn show_jobs(&self, script: &Script, jobs: &[v1::Job]) -> anyhow::Result<()> {
        for job in jobs.iter().rev() {
            let result: Value = serde_json::from_str(&job.result_json).unwrap_or_default();
            match job.kind() {
                v1::JobKind::Compaction if result["tokens_before"].is_number() => self.timeline.event(
                    "compacted",
                    &script.agent,
                    format!(
                        "{} messages, window {} → {} tokens by {}",
                        result["messages"], result["tokens_before"], result["tokens_after"], result["model"]
                    ),
                ),
                v1::JobKind::MemoryExtract if result["added"].as_u64().unwrap_or(0) > 0 => {
                    self.timeline
                        .event("remembered", &script.agent, format!("{} facts", result["added"]));
                }
                _ => {}
            }
        }
        for turns in &script.conversations {
            let session = self.session(&turns[0].chat).await?;
            let ask = v1::ListMemoriesRequest {
                session_id: session.session_id,
                page_size: 500,
                ..Default::default()
            };
            for memory in self
                .admin
                .memory()
                .list_memories(ask)
                .await?
                .into_inner()
                .memories
            {
                self.timeline.event(
                    "memory",
                    memory
                        .kind()
                        .as_str_name()
                        .trim_start_matches("MEMORY_KIND_")
                        .to_lowercase(),
                    excerpt(&memory.text, 90),
                );
            }
        }
        Ok(())
    }

    /// Asks what the script wants recalled.
    pub async fn recall(&self, script: &Script) -> anyhow::Result<()> {
        let Some((chat, query, expect)) = &script.recall else {
            return Ok(());
        };
        self.timeline.title("Recall");
        let session = self
            .session(&Chat {
                id: *chat,
                group: false,
            })
            .await?;
        let ask = v1::RecallRequest {
            session_id: session.session_id,
            query: query.clone(),
            ..Default::default()
        };
        let found = self.admin.memory().recall(ask).await?.into_inner();
        let best = found
            .results
            .first()
            .and_then(|result| result.memory.as_ref().map(|m| (result.score, m.text.clone())));
        match best {
            Some((score, text)) if text.contains(expect) => {
                self.timeline.event(
                    "recalled",
                    format!("score {score:.2}"),
                    format!("“{query}” → {text}"),
                );
                Ok(())
            }
            other => bail!("“{query}” recalled {other:?}, expected “{expect}”"),
        }
    }

    pub async fn session(&self, chat: &Chat) -> anyhow::Result<v1::Session> {
        let kind = if chat.group { "group" } else { "direct" };
        let key = format!("agent:{}:telegram:{kind}:{}", self.agent, chat.id);
        let ask = v1::GetSessionRequest {
            session: Some(v1::get_session_request::Session::Key(key)),
        };
        self.admin
            .history()
            .get_session(ask)
            .await?
            .into_inner()
            .session
            .context("no session")
    }

    pub async fn memories(&self, session_id: &str) -> anyhow::Result<u64> {
        let ask = v1::ListMemoriesRequest {
            session_id: session_id.to_owned(),
            page_size: 500,
            ..Default::default()
        };
        Ok(self
            .admin
            .memory()
            .list_memories(ask)
            .await?
            .into_inner()
            .memories
            .len() as u64)
    }

    /// Every entry of the session's transcript.
    pub async fn entries(&self, session_id: &str) -> anyhow::Result<Vec<Entry>> {
        let (mut entries, mut after) = (Vec::new(), 0);
        loop {
            let ask = v1::ListEntriesRequest {
                session_id: session_id.to_owned(),
                from: Some(v1::list_entries_request::From::AfterSeq(after)),
                page_size: 500,
                ..Default::default()
            };
            let page = self.admin.history().list_entries(ask).await?.into_inner();
            for entry in page.entries {
                after = entry.seq;
                entries.push(Entry::try_from(entry)?);
            }
            if !page.more {
                return Ok(entries);
            }
        }
    }
}

/// Plain HTTP only: the webhooks are on this machine.
fn http_client() -> anyhow::Result<reqwest::Client> {
    colloquy_llm::install_tls();
    Ok(reqwest::Client::builder()
        .timeout(Duration::from_secs(20))
        .build()?)
}
