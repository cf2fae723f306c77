//! A tenant with an agent, people who write to it by webhook, and an agent that repeats what it hears.

use colloquy_client::{Answer, Client, Worker, v1};
use colloquy_types::message::Role;
use colloquy_types::{Entry, EntryBody};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A tenant and everything that is needed to talk to it.
#[derive(Clone)]
pub struct Tenant {
    pub id: String,
    pub admin: Client,
    pub admin_key: String,
    pub agent_key: String,
    pub account: String,
    pub secret: String,
    pub webhook: String,
    pub http: reqwest::Client,
    /// Turns that echo workers hold now, by session, over all workers of the tenant.
    held: Arc<Mutex<HashMap<String, usize>>>,
    most: Arc<AtomicUsize>,
}

impl Tenant {
    /// A tenant with the agent `default` under the overrides, and a Telegram account.
    pub async fn create(operator: &Client, http: &str, overrides: Value) -> Self {
        let name = format!("tenant {}", hex::encode(rand::random::<[u8; 8]>()));
        let created = operator.retry.call(|| {
            let (mut control, name) = (operator.control(), name.clone());
            async move { control.create_tenant(v1::CreateTenantRequest { name }).await }
        });
        let created = created.await.unwrap();
        let admin = operator.with_key(&created.admin_key).unwrap();
        let policy = v1::Policy {
            profile: String::new(),
            overrides_json: overrides.to_string(),
        };
        let agent = v1::Agent {
            agent_id: "default".into(),
            policy: Some(policy),
            ..Default::default()
        };
        admin
            .control()
            .put_agent(v1::PutAgentRequest { agent: Some(agent) })
            .await
            .unwrap();
        let account = v1::ChannelAccount {
            channel: "telegram".into(),
            agent: "default".into(),
            name: "bot".into(),
            ..Default::default()
        };
        let put = v1::PutChannelAccountRequest {
            account: Some(account),
        };
        let put = admin
            .control()
            .put_channel_account(put)
            .await
            .unwrap()
            .into_inner();
        let account = put.account.unwrap();
        let key = v1::CreateApiKeyRequest {
            name: "worker".into(),
            roles: vec![v1::Role::Agent.into()],
            ..Default::default()
        };
        let agent_key = admin
            .control()
            .create_api_key(key)
            .await
            .unwrap()
            .into_inner()
            .secret;
        colloquy_llm::install_tls();
        Self {
            id: created.tenant.unwrap().tenant_id,
            admin,
            admin_key: created.admin_key,
            agent_key,
            webhook: format!("{http}{}", put.webhook_path),
            account: account.account_id,
            secret: account.secret,
            held: Arc::default(),
            most: Arc::default(),
            http: reqwest::Client::builder()
                .timeout(Duration::from_secs(10))
                .build()
                .unwrap(),
        }
    }

    /// A client under the worker's key, by the connections of `client`.
    pub fn worker_client(&self, client: &Client) -> Client {
        client.with_key(&self.agent_key).unwrap()
    }

    /// Posts an update as it is; status and body.
    pub async fn post_raw(&self, body: impl Into<reqwest::Body>) -> (u16, Value) {
        let call = self
            .http
            .post(&self.webhook)
            .header("x-telegram-bot-api-secret-token", &self.secret);
        let answer = call.body(body).send().await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.json().await.unwrap_or_default())
    }

    /// Posts until it is accepted, as Telegram does.
    pub async fn say(&self, chat: i64, message_id: i64, text: &str) -> Value {
        let body = update(chat, message_id, text).to_string();
        for _ in 0..600 {
            let call = self
                .http
                .post(&self.webhook)
                .header("x-telegram-bot-api-secret-token", &self.secret);
            if let Ok(answer) = call.body(body.clone()).send().await
                && answer.status().is_success()
                && let Ok(answer) = answer.json::<Value>().await
            {
                assert_eq!(answer["ok"], true, "{answer}");
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the webhook does not accept");
    }

    pub async fn session(&self, chat: i64) -> Option<v1::Session> {
        let key = format!("agent:default:telegram:direct:{chat}");
        let ask = v1::GetSessionRequest {
            session: Some(v1::get_session_request::Session::Key(key)),
        };
        let found = self.admin.retry.call(|| {
            let (mut history, ask) = (self.admin.history(), ask.clone());
            async move { history.get_session(ask).await }
        });
        match found.await {
            Ok(found) => found.session,
            Err(error) if error.is("NOT_FOUND") => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// All entries of the session of a chat.
    pub async fn entries(&self, chat: i64) -> Vec<Entry> {
        let Some(session) = self.session(chat).await else {
            return Vec::new();
        };
        let (mut entries, mut after) = (Vec::new(), 0);
        loop {
            let ask = v1::ListEntriesRequest {
                session_id: session.session_id.clone(),
                from: Some(v1::list_entries_request::From::AfterSeq(after)),
                page_size: 500,
                ..Default::default()
            };
            let page = self.admin.history().list_entries(ask).await.unwrap().into_inner();
            for entry in page.entries {
                after = entry.seq;
                entries.push(Entry::try_from(entry).unwrap());
            }
            if !page.more {
                return entries;
            }
        }
    }

    /// Role and text of every message of the chat, in order.
    pub async fn talk(&self, chat: i64) -> Vec<(Role, String)> {
        let message = |entry: Entry| match entry.body {
            EntryBody::Message(message) => Some((message.role, message.text())),
            _ => None,
        };
        self.entries(chat).await.into_iter().filter_map(message).collect()
    }

    /// Waits until nothing of the chat waits or runs.
    pub async fn settled(&self, chat: i64, limit: Duration) {
        let waited = tokio::time::timeout(limit, async {
            loop {
                if let Some(session) = self.session(chat).await
                    && session.waiting + session.running == 0
                {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        if waited.await.is_err() {
            panic!(
                "chat {chat} has open turns after {limit:?}: {:?}",
                self.session(chat).await
            );
        }
    }

    /// An adapter of the tenant's account, over whatever breaks.
    pub fn start_adapter(&self) -> Adapter {
        let (stop, received) = (CancellationToken::new(), Arc::<Mutex<Received>>::default());
        let (client, account) = (self.admin.clone(), self.account.clone());
        let (stopped, taken) = (stop.clone(), received.clone());
        let task = tokio::spawn(async move {
            while !stopped.is_cancelled() {
                tokio::select! {
                    () = stopped.cancelled() => {}
                    _ = take_deliveries(&client, &account, &taken) => {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                }
            }
        });
        Adapter { stop, received, task }
    }

    /// A worker that answers `echo: <what it heard>`; how many turns of one session it held at once is counted.
    pub fn start_echo(&self, client: &Client, pause: Duration) -> Echo {
        let stop = CancellationToken::new();
        let worker = Worker::new(self.worker_client(client), "echo")
            .concurrency(8)
            .stop_with(stop.clone());
        let (held, most) = (self.held.clone(), self.most.clone());
        let most_here = most.clone();
        let run = worker.run(move |turn| {
            let (held, most) = (held.clone(), most_here.clone());
            async move {
                let session = turn.turn.session_id.clone();
                let now = {
                    let mut held = held.lock().unwrap();
                    let count = held.entry(session.clone()).or_default();
                    *count += 1;
                    *count
                };
                most.fetch_max(now, Ordering::SeqCst);
                tokio::time::sleep(pause).await;
                *held.lock().unwrap().get_mut(&session).unwrap() -= 1;
                Ok(Answer::text(format!("echo: {}", turn.text())))
            }
        });
        Echo {
            stop,
            most,
            task: tokio::spawn(async move { run.await.unwrap() }),
        }
    }
}

/// What a channel's adapter got, each delivery once: it deduplicates by the delivery's id.
#[derive(Default)]
pub struct Received {
    seen: HashSet<String>,
    /// Texts by chat, in the order of their first arrival.
    texts: HashMap<String, Vec<String>>,
    /// Offers of a delivery that had come before.
    pub resent: usize,
}

/// A running adapter.
pub struct Adapter {
    stop: CancellationToken,
    pub received: Arc<Mutex<Received>>,
    task: JoinHandle<()>,
}

impl Adapter {
    /// Waits until every answer of the chat's transcript has been delivered, once and in order.
    pub async fn check(&self, chat: i64, talk: &[(Role, String)], limit: Duration) {
        let answers: Vec<String> = talk
            .iter()
            .filter(|(role, _)| *role != Role::User)
            .map(|(_, text)| text.clone())
            .collect();
        let delivered = || {
            let received = self.received.lock().unwrap();
            received.texts.get(&chat.to_string()).cloned().unwrap_or_default()
        };
        let _ = tokio::time::timeout(limit, async {
            while delivered().len() < answers.len() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
        .await;
        assert_eq!(
            delivered(),
            answers,
            "chat {chat}: delivered is what was answered"
        );
    }

    /// How often a delivery came again.
    pub async fn stop(self) -> usize {
        self.stop.cancel();
        self.task.await.unwrap();
        self.received.lock().unwrap().resent
    }
}

/// Takes what is offered until the stream breaks.
async fn take_deliveries(
    client: &Client,
    account: &str,
    received: &Mutex<Received>,
) -> Result<(), tonic::Status> {
    let ask = v1::StreamDeliveriesRequest {
        account: account.to_owned(),
    };
    let mut stream = client.ingress().stream_deliveries(ask).await?.into_inner();
    while let Some(response) = stream.message().await? {
        let delivery = response.delivery.unwrap_or_default();
        let parts = delivery.parts.iter().filter_map(|part| match &part.part {
            Some(v1::part::Part::Text(text)) => Some(text.as_str()),
            _ => None,
        });
        let text = parts.collect::<String>();
        {
            let mut received = received.lock().unwrap();
            if received.seen.insert(delivery.delivery_id.clone()) {
                let chat = delivery.route.unwrap_or_default().chat;
                received.texts.entry(chat).or_default().push(text);
            } else {
                received.resent += 1;
            }
        }
        let ack = v1::AckDeliveryRequest {
            delivery_id: delivery.delivery_id,
            result: v1::DeliveryResult::Delivered.into(),
            ..Default::default()
        };
        client.ingress().ack_delivery(ack).await?;
    }
    Ok(())
}

/// A running echo worker.
pub struct Echo {
    stop: CancellationToken,
    /// Most turns of one session held at the same time.
    pub most: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Echo {
    pub async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

/// A Telegram update with a text in a private chat.
pub fn update(chat: i64, message_id: i64, text: &str) -> Value {
    json!({
        "update_id": message_id,
        "message": {
            "message_id": message_id,
            "date": 1_780_000_000,
            "text": text,
            "chat": {"id": chat, "type": "private"},
            "from": {"id": chat, "is_bot": false, "first_name": format!("person {chat}")},
        },
    })
}

/// Every text once and in order, each answered once: the answers repeat exactly what they follow.
pub fn check_echoes(chat: i64, said: &[String], talk: &[(Role, String)]) {
    let mut heard: Vec<String> = Vec::new();
    let mut open: Vec<String> = Vec::new();
    for (role, text) in talk {
        match role {
            Role::User => {
                heard.push(text.clone());
                open.push(text.clone());
            }
            _ => {
                assert_eq!(
                    *text,
                    format!("echo: {}", open.join("\n")),
                    "chat {chat}: {talk:?}"
                );
                open.clear();
            }
        }
    }
    assert!(open.is_empty(), "chat {chat}: not answered: {open:?}");
    assert_eq!(heard, said, "chat {chat}: lost, doubled or moved");
}
