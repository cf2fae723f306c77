//! What a compaction will do, as a value.

use colloquy_context::compaction::{CompactionOptions, plan_cut, render};
use colloquy_context::item::Item;
use colloquy_context::window::{compaction_of, window};
use colloquy_context::{Tokenizer, count_message};
use colloquy_types::message::{Message, Role};
use colloquy_types::{Entry, Error, Result, Seq};

/// A range to summarise and where the verbatim rest begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Messages that the summary replaces, without the earlier summary.
    pub messages: Vec<Message>,
    /// Their places, one per message.
    pub seqs: Vec<Seq>,
    pub first_kept: Seq,
    /// Tokens of the whole window, and of the part that stays.
    pub tokens_before: u32,
    pub tokens_kept: u32,
    /// The earlier summary; empty before the first compaction.
    pub previous: String,
}

impl Plan {
    /// The range as a summary model reads it.
    pub fn rendered(&self) -> Vec<String> {
        self.messages.iter().map(render).collect()
    }

    /// The last thing a person asked for in the range.
    pub fn last_request(&self) -> String {
        let last = self
            .messages
            .iter()
            .rev()
            .find(|message| message.role == Role::User);
        last.map(Message::text).unwrap_or_default()
    }

    /// Tokens that the summary replaces.
    pub fn tokens_replaced(&self) -> u32 {
        self.tokens_before.saturating_sub(self.tokens_kept)
    }
}

/// Plans on a window; `None` when there is nothing to compact.
pub fn plan(
    entries: &[Entry],
    summary: Option<&Entry>,
    window_tokens: u32,
    options: &CompactionOptions,
) -> Result<Option<Plan>> {
    let count = |message: &Message| count_message(message, Tokenizer::default());
    let window = window(entries, summary, &count).map_err(Error::from)?;
    let tokens = |items: &[Item<'_>]| {
        items
            .iter()
            .fold(0_u32, |sum, item| sum.saturating_add(item.tokens))
    };
    let Some(cut) = plan_cut(&window.items, window_tokens, options) else {
        return Ok(None);
    };
    let first_kept = window.items[cut.first_kept..].iter().find_map(Item::seq);
    let replaced = window.items[cut.summarize.clone()].iter();
    let (seqs, messages): (Vec<Seq>, Vec<Message>) = replaced
        .filter_map(|item| Some((item.seq()?, item.message.clone().into_owned())))
        .unzip();
    // Everything may be summarised: then the rest begins behind the last entry.
    let behind = entries.last().map_or(Seq(1), |entry| Seq(entry.seq.0 + 1));
    let previous = match summary {
        Some(entry) => compaction_of(entry).map_err(Error::from)?.summary.clone(),
        None => String::new(),
    };
    if messages.is_empty() {
        return Ok(None);
    }
    Ok(Some(Plan {
        messages,
        seqs,
        first_kept: first_kept.unwrap_or(behind),
        tokens_before: tokens(&window.items),
        tokens_kept: tokens(&window.items[cut.first_kept..]),
        previous,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use colloquy_types::{EntryBody, EntryId, UnixMillis};

    fn entries(count: i64) -> Vec<Entry> {
        let message = |seq: i64| {
            let text = format!("message {seq}");
            if seq % 2 == 1 {
                Message::user(text)
            } else {
                Message::assistant(text)
            }
        };
        let entry = |seq| Entry {
            id: EntryId::new(),
            seq: Seq(seq),
            body: EntryBody::Message(message(seq)),
            turn: None,
            tokens: 10,
            tokenizer: "o200k".into(),
            at: UnixMillis(0),
        };
        (1..=count).map(entry).collect()
    }

    #[test]
    fn the_cut_keeps_the_newest_verbatim_and_names_the_last_request() {
        let plan = plan(&entries(60), None, 100_000, &CompactionOptions::goclaw())
            .unwrap()
            .unwrap();
        assert_eq!(
            (plan.first_kept, plan.messages.len(), plan.seqs.len()),
            (Seq(43), 42, 42)
        );
        assert_eq!(plan.last_request(), "message 41");
        assert_eq!((plan.tokens_before, plan.tokens_kept), (600, 180));
    }

    #[test]
    fn a_short_window_has_nothing_to_compact() {
        assert_eq!(
            plan(&entries(3), None, 100_000, &CompactionOptions::goclaw()).unwrap(),
            None
        );
    }
}
