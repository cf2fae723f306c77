use crate::simulator::{Session, event};
use colloquy_types::policy::{Policy, Profile};
use colloquy_types::queue::{Effect, MessageKind, Outcome, Placement, ResetReason, TurnState};
use colloquy_types::{UnixMillis, queue::AcceptPlan};

fn goclaw() -> Policy {
    Policy::resolve(Profile::Goclaw, &[]).unwrap()
}

/// One turn that runs, one that waits in its debounce.
fn busy() -> Session {
    let mut session = Session::new(60_000);
    session.accept(&event("run", "p1", None), &goclaw()).unwrap();
    session.advance(1_000);
    session.accept(&event("wait", "p1", None), &goclaw()).unwrap();
    session
}

fn resets(plan: &AcceptPlan) -> Vec<ResetReason> {
    let reason = |effect: &Effect| match effect {
        Effect::Reset { reason } => Some(*reason),
        _ => None,
    };
    plan.effects.iter().filter_map(reason).collect()
}

#[test]
fn a_stop_ends_the_quiet_time_of_its_senders_own_message() {
    for (sender, due) in [("p1", 1_200), ("p2", 1_800)] {
        let mut session = busy();
        session.advance(1_200);
        let plan = session.accept(&event("/stop", sender, None), &goclaw()).unwrap();
        assert_eq!(
            (plan.placement, plan.turn),
            (Placement::Command, None),
            "a command is no turn"
        );
        assert_eq!(session.state.waiting[0].due, UnixMillis(due), "{sender}");
    }
}

#[test]
fn new_cancels_all_and_its_text_opens_the_next_transcript_at_once() {
    let mut session = busy();
    session.open_transcript(UnixMillis(0));
    let new = event("/new hello there", "p1", None);
    let plan = session.accept(&new, &goclaw()).unwrap();
    assert_eq!(resets(&plan), [ResetReason::Command]);
    assert_eq!(plan.text.as_deref(), Some("hello there"));
    assert_eq!(session.state.waiting.len(), 1);
    assert_eq!(session.state.waiting[0].due, UnixMillis(1_000));
    session.advance(100_000);
    assert_eq!(session.outcome("run"), Some(Outcome::CancelledReset));
    assert_eq!(session.outcome("wait"), Some(Outcome::CancelledReset));
    assert_eq!(session.outcomes[&new.message], Outcome::Answered);
}

#[test]
fn the_first_message_of_a_key_has_nothing_to_reset() {
    let mut session = Session::new(0);
    let plan = session.accept(&event("/new", "p1", None), &goclaw()).unwrap();
    assert_eq!(
        plan.effects,
        [Effect::Finish {
            outcome: Outcome::Command
        }]
    );
}

#[test]
fn commands_of_others_of_the_system_and_where_off_are_ordinary_text() {
    let off = Policy::resolve(Profile::Goclaw, &[r#"{"commands":{"enabled":false}}"#]).unwrap();
    let mut stranger = event("/stopall", "p9", None);
    stranger.authorised = false;
    let mut system = event("/stopall", "cron", None);
    system.merge.kind = MessageKind::SystemEvent;
    for (event, policy) in [
        (stranger, goclaw()),
        (system, goclaw()),
        (event("/stopall", "p2", None), off),
        (event("/status", "p2", None), goclaw()),
    ] {
        let mut session = busy();
        let plan = session.accept(&event, &policy).unwrap();
        assert_eq!(plan.placement, Placement::Queued, "{event:?}");
        assert_eq!(session.state.running[0].state, TurnState::Running);
    }
}

#[test]
fn a_turn_that_is_stopping_keeps_its_place_until_it_is_given_back() {
    let mut session = busy().slow_to_stop(5_000);
    session.advance(2_000);
    session.accept(&event("/stop", "p2", None), &goclaw()).unwrap();
    session.advance(6_000);
    assert_eq!(session.state.running[0].state, TurnState::Stopping);
    assert_eq!(session.started.len(), 1);
    session.advance(7_000);
    assert_eq!(session.started[1].0, 7_000);
    assert_eq!(session.outcome("run"), Some(Outcome::CancelledStop));
}

#[test]
fn a_policy_reset_leaves_what_runs_and_waits_in_the_old_transcript() {
    let policy = Policy::resolve(Profile::Goclaw, &[r#"{"reset":{"idle":{"minutes":1}}}"#]).unwrap();
    let mut session = Session::new(600_000);
    session.accept(&event("run", "p1", None), &policy).unwrap();
    session.advance(1_000);
    let mut late = event("wait", "p1", None);
    late.debounce_ms = Some(60_000);
    session.accept(&late, &policy).unwrap();
    session.open_transcript(UnixMillis(1_000));
    session.advance(61_000);
    let mut system = event("tick", "cron", None);
    system.merge.kind = MessageKind::SystemEvent;
    assert_eq!(
        resets(&session.accept(&system, &policy).unwrap()),
        [],
        "system events do not reset"
    );
    session.state.waiting.pop();
    session.state.waiting[0].due = UnixMillis(100_000);
    session.state.waiting[0].closed = false;
    session.advance(61_001);
    let plan = session.accept(&event("again", "p1", None), &policy).unwrap();
    assert_eq!(resets(&plan), [ResetReason::Idle]);
    assert_eq!(
        plan.placement,
        Placement::Queued,
        "it does not join a turn of before"
    );
    assert!(matches!(plan.effects[0], Effect::Reset { .. }));
    assert_eq!(session.state.running[0].state, TurnState::Running);
}

#[test]
fn the_message_that_resets_is_not_steered_into_the_old_transcript() {
    let policy = Policy::resolve(
        Profile::Goclaw,
        &[r#"{"queue":{"mode":"steer"},"reset":{"idle":{"minutes":1}}}"#],
    )
    .unwrap();
    let mut session = Session::new(600_000);
    session.accept(&event("run", "p1", None), &policy).unwrap();
    session.advance(1_000);
    session.open_transcript(UnixMillis(0));
    session.advance(60_001);
    let plan = session.accept(&event("again", "p1", None), &policy).unwrap();
    assert_eq!(
        (plan.placement, resets(&plan)),
        (Placement::Queued, vec![ResetReason::Idle])
    );
}
