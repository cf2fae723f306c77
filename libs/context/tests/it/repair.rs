use crate::support::{call, calls, items, result, tool};
use colloquy_context::repair::{CALLS_OMITTED, RESULT_MISSING, repair};
use colloquy_types::message::{Completion, Message, Part, Role, Thinking};

/// The view as one line a message, and the actions.
fn run(messages: &[Message]) -> (Vec<String>, Vec<String>) {
    let (view, actions) = repair(items(messages, &|_| 1), &|_| 1);
    let line = |message: &Message| {
        let parts = message.parts.iter().map(|part| match part {
            Part::Text { text } => text.clone(),
            Part::ToolCall(call) => format!("call {}", call.id),
            Part::ToolResult(result) => match &result.parts[..] {
                [Part::Text { text }] => format!("result {} {text}", result.call_id),
                _ => format!("result {}", result.call_id),
            },
            Part::Thinking(_) => "thinking".to_owned(),
            Part::Media(_) => "media".to_owned(),
        });
        let parts: Vec<String> = parts.collect();
        let role = format!("{:?}", message.role).to_lowercase();
        format!("{role}: {}", parts.join(" + "))
    };
    let lines = view.iter().map(|item| line(&item.message)).collect();
    (lines, actions.iter().map(ToString::to_string).collect())
}

#[test]
fn a_late_real_result_wins_over_a_made_up_one() {
    let mut made_up = tool("c1", RESULT_MISSING);
    let Part::ToolResult(error) = &mut made_up.parts[0] else {
        unreachable!()
    };
    error.is_error = true;
    let messages = [
        calls(vec![call("c1", "f", "{}")]),
        made_up,
        Message::user("q"),
        tool("c1", "real"),
    ];
    let (view, actions) = run(&messages);
    assert_eq!(view, ["assistant: call c1", "tool: result c1 real", "user: q"]);
    assert_eq!(actions, ["c1 moved", "c1 duplicate"]);
}

#[test]
fn results_inside_a_users_message_are_split_off_and_the_text_stays() {
    let mixed = Message::new(Role::User, vec![result("c1", "r"), Part::text("and now?")]);
    let (view, actions) = run(&[calls(vec![call("c1", "f", "{}")]), mixed]);
    assert_eq!(
        view,
        ["assistant: call c1", "tool: result c1 r", "user: and now?"]
    );
    assert!(actions.is_empty());
}

#[test]
fn one_message_with_all_results_in_order_is_not_touched() {
    let both = Message::new(Role::Tool, vec![result("c1", "1"), result("c2", "2")]);
    let (view, actions) = run(&[calls(vec![call("c1", "f", "{}"), call("c2", "f", "{}")]), both]);
    assert_eq!(
        view,
        ["assistant: call c1 + call c2", "tool: result c1 1 + result c2 2"]
    );
    assert!(actions.is_empty());
}

#[test]
fn an_orphan_between_call_and_result_does_not_displace_the_result() {
    let (view, actions) = run(&[
        calls(vec![call("c1", "f", "{}")]),
        tool("c9", "x"),
        tool("c1", "r"),
    ]);
    assert_eq!(view, ["assistant: call c1", "tool: result c1 r"]);
    assert_eq!(actions, ["c9 orphan"]);
}

#[test]
fn two_results_after_two_open_calls_of_one_id_go_to_the_nearest_first() {
    let one = || calls(vec![call("c1", "f", "{}")]);
    let (view, _) = run(&[one(), Message::user("q"), one(), tool("c1", "A"), tool("c1", "B")]);
    assert_eq!(
        view,
        [
            "assistant: call c1",
            "tool: result c1 B",
            "user: q",
            "assistant: call c1",
            "tool: result c1 A"
        ]
    );
}

#[test]
fn equal_ids_in_one_message_are_answered_in_call_order() {
    let (view, actions) = run(&[
        calls(vec![call("c1", "f", "{}"), call("c1", "g", "{}")]),
        tool("c1", "A"),
        tool("c1", "B"),
    ]);
    assert_eq!(
        view,
        [
            "assistant: call c1 + call c1",
            "tool: result c1 A",
            "tool: result c1 B"
        ]
    );
    assert!(actions.is_empty());
}

#[test]
fn arguments_that_are_not_json_are_malformed() {
    for arguments in ["", "{", "{\"a\":}", &"[".repeat(200), r#""\ud800""#] {
        let (view, actions) = run(&[
            calls(vec![Part::text("t"), call("c1", "f", arguments)]),
            tool("c1", "r"),
        ]);
        assert_eq!(
            (view, actions),
            (vec!["assistant: t".to_owned()], vec!["c1 malformed".to_owned()]),
            "{arguments}"
        );
    }
}

#[test]
fn thinking_does_not_save_a_message_from_its_placeholder() {
    let thinking = Part::Thinking(Thinking {
        text: "t".into(),
        signature: None,
        provider: None,
        redacted: false,
    });
    let mut aborted = calls(vec![thinking, call("c1", "f", "{}")]);
    aborted.completion = Completion::Error;
    let (view, _) = run(&[aborted]);
    assert_eq!(view, [format!("assistant: thinking + {CALLS_OMITTED}")]);
}

#[test]
fn text_in_a_tool_message_is_no_result() {
    let stray = Message::new(Role::Tool, vec![Part::text("log")]);
    let (view, actions) = run(&[Message::user("q"), stray]);
    assert_eq!(view, ["user: q"]);
    assert_eq!(actions, [" stray"]);
}
