use crate::support::items;
use colloquy_context::Item;
use colloquy_context::limit::limit;
use colloquy_context::receipt::Action;
use colloquy_types::TurnId;
use colloquy_types::message::{Message, Role};

fn texts(items: &[Item<'_>]) -> Vec<String> {
    items.iter().map(|item| item.message.text()).collect()
}

#[test]
fn the_last_turns_stay_whole() {
    let messages = [
        Message::user("1"),
        Message::assistant("one"),
        Message::user("2a"),
        Message::user("2b"),
        Message::assistant("two"),
        Message::user("3"),
    ];
    let mut view = items(&messages, &|_| 1);
    let left_out = limit(&mut view, 2);
    assert_eq!(texts(&view), ["2a", "2b", "two", "3"]);
    assert_eq!(
        (left_out.len(), left_out[0].action, left_out[0].tokens),
        (1, Action::Limited, 2)
    );
}

#[test]
fn zero_and_large_limits_leave_everything() {
    let messages = [Message::user("1"), Message::assistant("one"), Message::user("2")];
    for turns in [0, 2, 9] {
        let mut view = items(&messages, &|_| 1);
        assert!(limit(&mut view, turns).is_empty());
        assert_eq!(view.len(), 3);
    }
}

#[test]
fn a_steer_does_not_open_a_turn_and_a_failed_turn_does() {
    let messages = ["1", "steer", "2"].map(Message::user);
    let mut view = items(&messages, &|_| 1);
    let (first, second) = (TurnId::new(), TurnId::new());
    for (item, turn) in view.iter_mut().zip([first, first, second]) {
        item.turn = Some(turn);
    }
    limit(&mut view, 1);
    assert_eq!(texts(&view), ["2"]);
}

#[test]
fn system_messages_at_the_start_stay() {
    let system = Message::new(Role::System, Message::user("be kind").parts);
    let messages = [
        system,
        Message::user("1"),
        Message::assistant("one"),
        Message::user("2"),
    ];
    let mut view = items(&messages, &|_| 1);
    limit(&mut view, 1);
    assert_eq!(texts(&view), ["be kind", "2"]);
}
