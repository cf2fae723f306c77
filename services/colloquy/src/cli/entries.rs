//! Entries of a session: the last ones, and those to come.

use super::output::{Output, Row, excerpt, instant, said, word};
use colloquy_client::{Client, v1};
use serde_json::json;
use std::time::Duration;
use v1::list_entries_request::From;

/// How often `tail` looks.
const LOOK: Duration = Duration::from_millis(500);
/// Characters of an entry on its line.
const LINE: usize = 100;

/// Above the cells of an entry.
pub const HEADER: [&str; 4] = ["SEQ", "ROLE", "TOKENS", "TEXT"];

/// The last `count` entries, 1 to 500, oldest first.
///
/// # Errors
/// The server's.
pub async fn last(client: &Client, session: &v1::Session, count: u32) -> anyhow::Result<Vec<Row>> {
    let ask = v1::ListEntriesRequest {
        session_id: session.session_id.clone(),
        from: Some(From::BeforeSeq(session.head_seq.saturating_add(1))),
        page_size: count,
        ..Default::default()
    };
    let mut entries = client.history().list_entries(ask).await?.into_inner().entries;
    entries.sort_by_key(|entry| entry.seq);
    Ok(entries.iter().map(row).collect())
}

/// Prints what comes after the session's head until it is interrupted. A reset goes on with the new transcript.
///
/// # Errors
/// The server's, once repeating the call did not help.
pub async fn tail(client: &Client, out: &Output, session: &v1::Session) -> anyhow::Result<()> {
    let mut place = (session.transcript_id.clone(), session.head_seq);
    out.note(&format!("following {} after entry {}", session.key, place.1));
    let stopped = tokio::signal::ctrl_c();
    tokio::pin!(stopped);
    loop {
        let more = tokio::select! {
            found = look(client, out, &session.session_id, &mut place) => found?,
            stopped = &mut stopped => return Ok(stopped?),
        };
        if more {
            continue;
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            stopped = &mut stopped => return Ok(stopped?),
        }
    }
}

/// Prints a page after `place` (transcript, sequence number) and moves it; whether to look again at once.
async fn look(
    client: &Client,
    out: &Output,
    session_id: &str,
    place: &mut (String, i64),
) -> anyhow::Result<bool> {
    let ask = v1::ListEntriesRequest {
        session_id: session_id.to_owned(),
        from: Some(From::AfterSeq(place.1)),
        ..Default::default()
    };
    let page = client
        .retry
        .call(|| {
            let (mut history, ask) = (client.history(), ask.clone());
            async move { history.list_entries(ask).await }
        })
        .await?;
    if page.transcript_id != place.0 {
        out.note("a new transcript");
        *place = (page.transcript_id, 0);
        return Ok(true);
    }
    for entry in &page.entries {
        let (json, cells) = row(entry);
        out.next(
            &json,
            &format!("{:>5}  {:<10} {:>7}  {}", cells[0], cells[1], cells[2], cells[3]),
        );
        place.1 = entry.seq;
    }
    Ok(page.more)
}

/// `text` is the whole of it in JSON and its beginning in the cell.
fn row(entry: &v1::Entry) -> Row {
    let (role, text) = entry
        .body
        .as_ref()
        .and_then(|body| body.body.as_ref())
        .map_or_else(|| ("unknown".to_owned(), String::new()), describe);
    let json = json!({"entry_id": entry.entry_id, "seq": entry.seq, "role": role, "tokens": entry.tokens,
        "turn_id": entry.turn_id, "text": text, "at": instant(entry.at.as_ref())});
    let cells = vec![
        entry.seq.to_string(),
        role,
        entry.tokens.to_string(),
        excerpt(&text, LINE),
    ];
    (json, cells)
}

/// A message's role, or what else the entry is; and what it says.
fn describe(body: &v1::entry_body::Body) -> (String, String) {
    use v1::entry_body::Body;
    match body {
        Body::Message(message) => (word(message.role().as_str_name(), "MESSAGE_ROLE_"), said(message)),
        Body::CustomMessage(custom) => {
            let text = custom.message.as_ref().map(said).unwrap_or_default();
            (custom.kind.clone(), text)
        }
        Body::Custom(custom) => (custom.kind.clone(), custom.json.clone()),
        Body::Compaction(compaction) => ("compaction".into(), compaction.summary.clone()),
        Body::BranchSummary(summary) => ("branch summary".into(), summary.summary.clone()),
        Body::Reset(reset) => ("reset".into(), reset.reason.clone()),
        Body::Interrupted(interrupted) => ("interrupted".into(), interrupted.reason.clone()),
        Body::Label(label) => ("label".into(), label.label.clone()),
        Body::ModelChange(change) => ("model".into(), format!("{} {}", change.provider, change.model)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_one_line() {
        let text = v1::Part {
            part: Some(v1::part::Part::Text(format!("first\nsecond {}", "x".repeat(200)))),
        };
        let message = v1::Message {
            role: v1::MessageRole::User.into(),
            parts: vec![text],
            ..Default::default()
        };
        let body = v1::EntryBody {
            body: Some(v1::entry_body::Body::Message(message)),
        };
        let entry = v1::Entry {
            seq: 7,
            tokens: 3,
            body: Some(body),
            ..Default::default()
        };
        let (json, cells) = row(&entry);
        assert_eq!(cells[..3], ["7", "user", "3"]);
        assert!(cells[3].starts_with("first second x"));
        assert_eq!(cells[3].chars().count(), LINE + 1);
        assert_eq!(json["seq"], 7);
    }
}
