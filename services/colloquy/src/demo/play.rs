//! The people's side: webhooks in, and a wait for what became of each message.

use super::driver::{CONCURRENCY, Driver, LOOK};
use super::script::{Script, ScriptTurn};
use super::timeline::excerpt;
use anyhow::{Context, bail};
use colloquy_client::v1;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// A turn that is not answered within this time fails the demo.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);

impl Driver {
    /// Plays everything; returns the accepted messages.
    pub async fn play(&self, script: &Script) -> anyhow::Result<u64> {
        self.timeline.title("Playing");
        let turns = script.conversations.iter().map(Vec::len).sum();
        let _bar = self.timeline.progress("turns", turns);
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
        self.timeline.step();
        if outcome != "ANSWERED" {
            bail!("“{}” ended as {outcome}", excerpt(&turn.texts[0], 60));
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
                        let (reason, why) = (&body["reason"], &body["message"]);
                        bail!("“{}” was refused: {reason} {why}", excerpt(text, 60));
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
                let word = outcome.outcome().as_str_name().trim_start_matches("OUTCOME_");
                let detail = outcome.detail.as_str();
                let colon = if detail.is_empty() { "" } else { ": " };
                return Ok(format!("{word}{colon}{detail}"));
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}
