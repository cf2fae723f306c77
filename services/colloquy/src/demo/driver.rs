//! A tenant to play in, its worker, and the channel's end of the replies.

use super::agent::{self, Parts, Tally, WINDOW_TOKENS};
use super::script::Script;
use super::target::Target;
use super::timeline::{Timeline, excerpt};
use anyhow::Context;
use colloquy_client::{Client, Worker, v1};
use serde_json::json;
use std::collections::HashSet;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Conversations played beside each other.
pub(super) const CONCURRENCY: usize = 8;
/// How long the last replies may take.
const DELIVER_WITHIN: Duration = Duration::from_secs(20);
/// Pause between two looks at a list.
pub(super) const LOOK: Duration = Duration::from_millis(25);

/// A tenant of its own, with an agent, an account and keys.
#[derive(Clone)]
pub struct Driver {
    pub(super) admin: Client,
    pub(super) worker: Client,
    pub(super) channel: Client,
    pub(super) account: String,
    pub(super) webhook: String,
    pub(super) secret: String,
    pub(super) agent: String,
    pub(super) http: reqwest::Client,
    pub(super) parts: Parts,
    pub(super) updates: Arc<AtomicI64>,
    pub(super) timeline: Timeline,
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

/// Replies that the adapter got, each delivery once, with their chats.
#[derive(Clone, Default)]
pub struct Replies(Arc<Mutex<Taken>>);

#[derive(Default)]
struct Taken {
    deliveries: HashSet<String>,
    /// Chat and text, in the order of their first arrival.
    replies: Vec<(String, String)>,
}

impl Replies {
    /// False for a delivery that had come before.
    fn take(&self, delivery: &str, chat: String, text: String) -> bool {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = taken.deliveries.insert(delivery.to_owned());
        if first {
            taken.replies.push((chat, text));
        }
        first
    }

    fn all(&self) -> Vec<(String, String)> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .replies
            .clone()
    }
}

/// The adapter's end: takes replies and acknowledges them.
pub struct Adapter {
    replies: Replies,
    background: Background<()>,
}

impl Adapter {
    /// Waits for as many as are expected, and no longer than they may take; then tells what came.
    pub async fn stop(self, expected: usize) -> Vec<(String, String)> {
        let end = tokio::time::Instant::now() + DELIVER_WITHIN;
        while self.replies.all().len() < expected && tokio::time::Instant::now() < end {
            tokio::time::sleep(LOOK).await;
        }
        self.background.stop.cancel();
        // It only ends by the cancellation.
        let _ = self.background.task.await;
        self.replies.all()
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
            // A transcript is played as it was written, words that would be commands included.
            "commands": {"enabled": false},
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

    /// Takes replies and acknowledges them until it is told to stop.
    pub fn start_deliveries(&self) -> Adapter {
        let (driver, stop, replies) = (self.clone(), CancellationToken::new(), Replies::default());
        let (stopped, taken) = (stop.clone(), replies.clone());
        let task = tokio::spawn(async move {
            while !stopped.is_cancelled() {
                tokio::select! {
                    () = stopped.cancelled() => break,
                    done = driver.deliveries(&taken) => if done.is_err() {
                        tokio::time::sleep(LOOK).await;
                    },
                }
            }
        });
        Adapter {
            replies,
            background: Background { stop, task },
        }
    }

    async fn deliveries(&self, replies: &Replies) -> Result<(), colloquy_client::Error> {
        let ask = v1::StreamDeliveriesRequest {
            account: self.account.clone(),
        };
        let mut stream = self.channel.ingress().stream_deliveries(ask).await?.into_inner();
        while let Some(response) = stream.message().await? {
            let Some(delivery) = response.delivery else {
                continue;
            };
            let texts = delivery.parts.iter().filter_map(|part| match &part.part {
                Some(v1::part::Part::Text(text)) => Some(text.as_str()),
                _ => None,
            });
            let text = texts.collect::<Vec<_>>().join("\n");
            let chat = delivery.route.map(|route| route.chat).unwrap_or_default();
            // Taken before the acknowledgement: one that comes again is the same one.
            if replies.take(&delivery.delivery_id, chat.clone(), text.clone()) {
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
}

/// Plain HTTP only: the webhooks are on this machine.
fn http_client() -> anyhow::Result<reqwest::Client> {
    colloquy_llm::install_tls();
    Ok(reqwest::Client::builder()
        .timeout(Duration::from_secs(20))
        .build()?)
}
