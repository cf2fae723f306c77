use crate::support::{entries, entry};
use colloquy_context::receipt::Action;
use colloquy_context::window::{newest_compaction, window};
use colloquy_context::{BuildError, Origin};
use colloquy_types::entry::Compaction;
use colloquy_types::message::{Message, Visibility};
use colloquy_types::{Entry, EntryBody, JobId, Seq};

fn compaction(seq: i64, first_kept: i64) -> Entry {
    let body = Compaction {
        summary: "they met".into(),
        first_kept: Seq(first_kept),
        tokens_before: 100,
        tokens_after: 10,
        model: "m".into(),
        job: JobId::new(),
        degraded: false,
    };
    entry(seq, EntryBody::Compaction(body))
}

fn texts(entries: &[Entry], pointer: Option<&Entry>) -> Vec<String> {
    let seen = window(entries, pointer, &|_| 1).unwrap();
    seen.items.iter().map(|item| item.message.text()).collect()
}

#[test]
fn a_summary_stands_for_what_is_before_the_first_kept_entry() {
    let mut all = entries(["a", "b", "c", "d"].map(Message::user));
    all.push(compaction(5, 3));
    all.push(entry(6, EntryBody::Message(Message::user("e"))));
    let seen = window(&all, newest_compaction(&all), &|_| 1).unwrap();
    assert_eq!(seen.items[0].origin, Origin::Summary);
    assert!(seen.items[0].message.text().contains("they met"));
    assert_eq!(texts(&all, newest_compaction(&all))[1..], ["c", "d", "e"]);
    assert_eq!(seen.left_out[0].action, Action::Summarized);
    assert_eq!(
        (seen.left_out[0].from, seen.left_out[0].through),
        (Seq(1), Seq(2))
    );
}

#[test]
fn an_older_pointer_shows_what_a_newer_compaction_replaced() {
    let mut all = entries(["a", "b", "c", "d"].map(Message::user));
    let older = compaction(5, 2);
    all.push(older.clone());
    all.push(compaction(6, 4));
    assert_eq!(texts(&all, Some(&older))[1..], ["b", "c", "d"]);
}

#[test]
fn state_and_what_only_people_see_is_not_context() {
    let mut note = Message::user("for people");
    note.visibility = Visibility::People;
    let all = [
        entry(1, EntryBody::Message(Message::user("a"))),
        entry(2, EntryBody::Message(note)),
        entry(
            3,
            EntryBody::Custom {
                kind: "state".into(),
                json: "{}".into(),
            },
        ),
        entry(
            4,
            EntryBody::CustomMessage {
                kind: "hint".into(),
                message: Message::user("b"),
            },
        ),
        entry(
            5,
            EntryBody::BranchSummary {
                summary: "tried c".into(),
            },
        ),
    ];
    let texts = texts(&all, None);
    assert_eq!(texts[..2], ["a", "b"]);
    assert!(texts[2].ends_with("tried c"));
    assert_eq!(texts.len(), 3);
}

#[test]
fn an_interrupted_turn_shows_what_people_wrote_once_and_no_half_done_answer() {
    let staged = vec![
        Message::assistant("half"),
        Message::user("and this"),
        Message::user("a"),
    ];
    let all = [
        entry(1, EntryBody::Message(Message::user("a"))),
        entry(
            2,
            EntryBody::Interrupted {
                reason: "stop".into(),
                attempt: 1,
                staged: staged.clone(),
            },
        ),
        entry(
            3,
            EntryBody::Interrupted {
                reason: "lost".into(),
                attempt: 2,
                staged,
            },
        ),
    ];
    assert_eq!(texts(&all, None), ["a", "and this"]);
}

#[test]
fn a_pointer_at_another_kind_of_entry_is_an_error() {
    let all = entries([Message::user("a")]);
    let error = window(&all, all.first(), &|_| 1).unwrap_err();
    assert!(matches!(
        error,
        BuildError::Input {
            field: "compaction",
            ..
        }
    ));
}
