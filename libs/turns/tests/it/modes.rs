//! What the acceptance cases leave open.

use crate::simulator::{Session, event};
use colloquy_types::message::Provenance;
use colloquy_types::policy::{Policy, Profile};
use colloquy_types::queue::{AcceptEvent, Lane, Outcome, Placement, QueueMode};
use colloquy_types::{Reason, UnixMillis};

fn policy(queue: &str) -> Policy {
    Policy::resolve(Profile::Goclaw, &[&format!(r#"{{"queue":{queue}}}"#)]).unwrap()
}

fn at_once(text: &str) -> AcceptEvent {
    let mut event = event(text, "p1", None);
    event.debounce_ms = Some(0);
    event
}

fn running(policy: &Policy) -> Session {
    let mut session = Session::new(60_000);
    session.accept(&at_once("run"), policy).unwrap();
    session.advance(1_000);
    session
}

#[test]
fn reject_answers_busy_and_lets_a_thought_go_on() {
    let policy = policy(r#"{"mode":"reject"}"#);
    let mut session = Session::new(60_000);
    session.accept(&event("a", "p1", None), &policy).unwrap();
    let plan = session.accept(&event("b", "p1", None), &policy).unwrap();
    assert_eq!(
        plan.placement,
        Placement::Merged,
        "the debounce is one message still"
    );
    let other = session.accept(&event("c", "p2", None), &policy).unwrap_err();
    assert_eq!(other.reason, Reason::Busy);
    session.advance(2_000);
    let busy = session.accept(&event("d", "p1", None), &policy).unwrap_err();
    assert_eq!((busy.reason, busy.retry_after_ms.is_some()), (Reason::Busy, true));
    session.advance(100_000);
    assert!(session.accept(&event("e", "p1", None), &policy).is_ok());
}

#[test]
fn authorities_do_not_merge() {
    for mode in ["queue", "followup", "collect"] {
        let policy = policy(&format!(r#"{{"mode":"{mode}"}}"#));
        let mut session = Session::new(0);
        session.accept(&event("a", "p1", None), &policy).unwrap();
        let mut forwarded = event("b", "p1", None);
        forwarded.merge.authority = Provenance::Untrusted;
        session.accept(&forwarded, &policy).unwrap();
        session.accept(&event("c", "p1", None), &policy).unwrap();
        assert_eq!(session.state.waiting.len(), 3, "{mode}: only neighbours merge");
        assert_eq!(
            session.state.waiting[0].due,
            UnixMillis(800),
            "the closed turn keeps its time"
        );
    }
}

#[test]
fn media_flush_the_debounce_and_stay_with_the_text_before() {
    let policy = policy("{}");
    let mut session = Session::new(0);
    session.accept(&event("look", "p1", None), &policy).unwrap();
    session.advance(300);
    let mut photo = event("", "p1", None);
    photo.has_media = true;
    let plan = session.accept(&photo, &policy).unwrap();
    assert_eq!(plan.placement, Placement::Merged);
    assert_eq!(session.state.waiting[0].due, UnixMillis(300));
}

#[test]
fn a_steer_does_not_enter_a_turn_of_another_lane() {
    let policy = policy(r#"{"mode":"steer"}"#);
    let mut session = Session::new(60_000);
    let mut beat = at_once("beat");
    beat.merge.lane = Lane::Heartbeat;
    session.accept(&beat, &policy).unwrap();
    session.advance(10);
    let plan = session.accept(&at_once("hello"), &policy).unwrap();
    assert_eq!(plan.placement, Placement::Queued);
}

#[test]
fn a_steer_that_was_not_taken_in_is_the_next_turn() {
    let policy = policy(r#"{"mode":"steer"}"#);
    let mut session = running(&policy);
    assert_eq!(
        session.accept(&at_once("also"), &policy).unwrap().placement,
        Placement::Steered
    );
    session.advance(200_000);
    assert_eq!(session.texts_started(), ["run", "also"]);
    assert_eq!(session.outcome("also"), Some(Outcome::Answered));
}

#[test]
fn collect_counts_messages_and_drops_whole_turns() {
    let policy = policy(r#"{"mode":"collect","capacity":3,"debounce_ms":0}"#);
    let mut session = running(&policy);
    let thread = |text: &str, thread: &str| event(text, "p1", Some(thread));
    session.accept(&thread("x1", "1"), &policy).unwrap();
    session.accept(&thread("x2", "1"), &policy).unwrap();
    session.accept(&thread("y1", "2"), &policy).unwrap();
    session.accept(&thread("y2", "2"), &policy).unwrap();
    assert_eq!(session.outcome("x1"), Some(Outcome::DroppedQueueFull));
    assert_eq!(session.outcome("x2"), Some(Outcome::DroppedQueueFull));
    session.accept(&thread("y3", "2"), &policy).unwrap();
    let full = session.accept(&thread("y4", "2"), &policy).unwrap_err();
    assert_eq!(
        full.reason,
        Reason::QueueFull,
        "the turn it belongs to is not cut in two"
    );
}

#[test]
fn summarize_puts_a_line_before_what_is_answered_next() {
    let policy = policy(r#"{"drop":"summarize","capacity":1,"debounce_ms":0}"#);
    let mut session = running(&policy);
    session.accept(&event("w0", "p1", None), &policy).unwrap();
    session.accept(&event("w1", "p1", None), &policy).unwrap();
    session.accept(&event("w2", "p1", None), &policy).unwrap();
    assert_eq!(session.outcome("w0"), Some(Outcome::Summarized));
    assert_eq!(session.outcome("w1"), Some(Outcome::Summarized));
    assert_eq!(session.state.waiting.len(), 1);
    assert!(session.lines.iter().all(|line| line.chars().count() <= 160));
}

#[test]
fn a_turn_that_ran_before_takes_no_more() {
    let policy = policy(r#"{"mode":"collect"}"#);
    let mut session = Session::new(0);
    session.accept(&event("a", "p1", None), &policy).unwrap();
    session.state.waiting[0].attempt = 1;
    let plan = session.accept(&event("b", "p1", None), &policy).unwrap();
    assert_eq!(plan.placement, Placement::Queued);
}

#[test]
fn an_interrupt_by_the_next_sender_cancels_the_window_of_the_one_before() {
    let policy = policy(r#"{"mode":"interrupt"}"#);
    let mut session = Session::new(0);
    assert_eq!(
        session
            .accept(&event("a", "p1", None), &policy)
            .unwrap()
            .placement,
        Placement::Queued,
        "there was nothing to cancel"
    );
    let plan = session.accept(&event("b", "p2", None), &policy).unwrap();
    assert_eq!(plan.placement, Placement::Interrupted);
    assert_eq!(session.outcome("a"), Some(Outcome::CancelledInterrupt));
    assert_eq!(session.state.waiting[0].mode, QueueMode::Interrupt);
}
