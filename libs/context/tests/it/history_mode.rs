use crate::support::{call, calls, items, tool};
use colloquy_context::history_mode::apply;
use colloquy_types::TurnId;
use colloquy_types::message::{Message, Part};
use colloquy_types::policy::HistoryMode;

fn condensed(messages: &[Message]) -> Vec<String> {
    let mut view = items(messages, &|_| 1);
    apply(&mut view, HistoryMode::CallsOnly, None, &|_| 1);
    view.iter().map(|item| item.message.text()).collect()
}

#[test]
fn a_reply_names_the_calls_behind_it() {
    let search = || call("c1", "search", "{\"q\":\n \"x\"}");
    let messages = [
        Message::user("q"),
        calls(vec![Part::text("looking"), search(), call("c2", "read", "{}")]),
        tool("c1", "r"),
        tool("c2", "r"),
        calls(vec![search()]),
        tool("c1", "r"),
        Message::assistant("done"),
        Message::user("thanks"),
        Message::assistant("welcome"),
    ];
    assert_eq!(
        condensed(&messages),
        [
            "q",
            "looking",
            "[called: search {\"q\": \"x\"} ×2; read {}]\ndone",
            "thanks",
            "welcome"
        ]
    );
}

#[test]
fn more_than_eight_different_calls_are_counted() {
    let many = (0..11)
        .map(|at| call(&format!("c{at}"), &format!("f{at}"), "{}"))
        .collect();
    let texts = condensed(&[Message::user("q"), calls(many), Message::assistant("done")]);
    assert!(texts[1].contains("f7 {}; 3 more]"), "{}", texts[1]);
}

#[test]
fn calls_of_a_turn_without_a_reply_are_not_named_by_the_next() {
    let messages = [
        Message::user("1"),
        calls(vec![call("c1", "f", "{}")]),
        Message::user("2"),
        Message::assistant("done"),
    ];
    assert_eq!(condensed(&messages), ["1", "2", "done"]);
}

#[test]
fn the_running_turn_and_the_full_mode_keep_their_calls() {
    let messages = [
        Message::user("q"),
        calls(vec![call("c1", "f", "{}")]),
        tool("c1", "r"),
    ];
    let turn = Some(TurnId::new());
    let mut view = items(&messages, &|_| 1);
    view.iter_mut().for_each(|item| item.turn = turn);
    let before = view.clone();
    assert!(apply(&mut view, HistoryMode::CallsOnly, turn, &|_| 1).is_empty());
    assert!(apply(&mut view, HistoryMode::Full, None, &|_| 1).is_empty());
    assert_eq!(view, before);
}
