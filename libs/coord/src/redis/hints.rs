//! Hints between processes: one channel, read over one connection per process.

use super::unavailable;
use crate::Signal;
use crate::hub::{Hint, Hub};
use colloquy_types::Result;
use futures::StreamExt;
use redis::aio::{PubSubSink, PubSubStream};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How often a silent connection is asked whether it still lives.
const SILENCE: Duration = Duration::from_secs(15);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

const SIGNALS: [(Signal, &str); 5] = [
    (Signal::Cancel, "cancel"),
    (Signal::Steer, "steer"),
    (Signal::Reset, "reset"),
    (Signal::CompactionBefore, "compaction_before"),
    (Signal::CompactionAfter, "compaction_after"),
];

pub fn encode(hint: Hint) -> String {
    match hint {
        Hint::Scheduled(tenant) => format!("scheduled {tenant}"),
        Hint::Session(tenant, session) => format!("session {tenant} {session}"),
        Hint::Turn(tenant, turn, signal) => {
            let word = SIGNALS.iter().find(|(known, _)| *known == signal);
            let (_, word) = word.expect("every signal is in the list");
            format!("turn {tenant} {turn} {word}")
        }
    }
}

/// None for what another version says.
pub fn decode(text: &str) -> Option<Hint> {
    let mut words = text.split(' ');
    let (kind, tenant) = (words.next()?, words.next()?.parse().ok()?);
    match kind {
        "scheduled" => Some(Hint::Scheduled(tenant)),
        "session" => Some(Hint::Session(tenant, words.next()?.parse().ok()?)),
        "turn" => {
            let turn = words.next()?.parse().ok()?;
            let word = words.next()?;
            let (signal, _) = SIGNALS.iter().find(|(_, known)| *known == word)?;
            Some(Hint::Turn(tenant, turn, *signal))
        }
        _ => None,
    }
}

pub struct Listener {
    pub client: redis::Client,
    pub channel: String,
    pub limit: Duration,
    pub hub: Arc<Hub>,
}

type Connection = (PubSubSink, PubSubStream);

impl Listener {
    pub async fn connect(&self) -> Result<Connection> {
        let connect = async {
            let mut pubsub = self.client.get_async_pubsub().await?;
            pubsub.subscribe(&self.channel).await?;
            Ok(pubsub.split())
        };
        match timeout(self.limit, connect).await {
            Ok(connected) => connected.map_err(unavailable),
            Err(_) => Err(colloquy_types::Error::unavailable("redis: no answer in time")),
        }
    }

    /// Reads until the task is aborted, over new connections where one breaks. What is said meanwhile is lost.
    pub async fn run(self, first: Connection) {
        let mut connection = Some(first);
        let mut pause = FIRST_PAUSE;
        loop {
            if let Some(connection) = connection.take() {
                self.read(connection).await;
                pause = FIRST_PAUSE;
            }
            match self.connect().await {
                Ok(new) => connection = Some(new),
                Err(error) => {
                    tracing::debug!(%error, "no hints for now");
                    tokio::time::sleep(pause.mul_f64(rand::random_range(0.5..1.0))).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    async fn read(&self, (mut sink, mut stream): Connection) {
        loop {
            match timeout(SILENCE, stream.next()).await {
                Ok(Some(message)) => {
                    let text: redis::RedisResult<String> = message.get_payload();
                    if let Some(hint) = text.ok().as_deref().and_then(decode) {
                        self.hub.deliver(hint);
                    }
                }
                Ok(None) => return,
                Err(_) => {
                    let alive = timeout(self.limit, sink.ping::<redis::Value>()).await;
                    if !matches!(alive, Ok(Ok(_))) {
                        return;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use colloquy_types::{SessionId, TenantId, TurnId};

    #[test]
    fn every_hint_survives_the_wire() {
        let tenant = TenantId::new();
        let mut hints = vec![Hint::Scheduled(tenant), Hint::Session(tenant, SessionId::new())];
        hints.extend(SIGNALS.map(|(signal, _)| Hint::Turn(tenant, TurnId::new(), signal)));
        for hint in hints {
            assert_eq!(decode(&encode(hint)), Some(hint));
        }
        assert_eq!(decode("weather rain"), None);
    }
}
