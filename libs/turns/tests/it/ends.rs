use colloquy_turns::{Bound, Claimable, End, Fate, claimable, fates};
use colloquy_types::policy::{Policy, Profile};
use colloquy_types::queue::Outcome;
use colloquy_types::{MessageId, UnixMillis};

use crate::simulator::{Session, event};

fn policy(json: &str) -> Policy {
    Policy::resolve(Profile::Goclaw, &[json]).unwrap()
}

#[test]
fn a_commit_answers_its_own_and_leaves_what_was_not_taken_in() {
    let messages: Vec<Bound> = [None, None, Some(1), Some(2)]
        .into_iter()
        .map(|steer| Bound {
            message: MessageId::new(),
            steer,
        })
        .collect();
    let ends = |end| -> Vec<Fate> {
        fates(end, &messages, 1)
            .into_iter()
            .map(|(_, fate)| fate)
            .collect()
    };
    let (answered, steered) = (Fate::Ends(Outcome::Answered), Fate::Ends(Outcome::Steered));
    assert_eq!(
        ends(End::Committed { sent: true }),
        [answered, answered, steered, Fate::Waits]
    );
    assert_eq!(
        ends(End::Committed { sent: false })[0],
        Fate::Ends(Outcome::NotSentPolicy)
    );
    assert_eq!(ends(End::Failed), [Fate::Ends(Outcome::Failed); 4]);
    let reset = Fate::Ends(Outcome::CancelledReset);
    assert_eq!(ends(End::Stopped(Outcome::CancelledReset)), [reset; 4]);
}

#[test]
fn turns_start_in_order_when_due_and_while_there_is_a_place() {
    let (one, two) = (policy("{}"), policy(r#"{"queue":{"max_concurrent":2}}"#));
    let mut session = Session::new(60_000);
    assert_eq!(claimable(&session.state, &one, None), Claimable::Nothing);
    session.accept(&event("a", "p1", None), &one).unwrap();
    assert_eq!(
        claimable(&session.state, &one, None),
        Claimable::DueAt(UnixMillis(800))
    );
    let mut urgent = event("b", "p2", None);
    urgent.debounce_ms = Some(0);
    session.accept(&urgent, &one).unwrap();
    assert_eq!(
        claimable(&session.state, &one, None),
        Claimable::DueAt(UnixMillis(800)),
        "a later turn does not overtake"
    );
    session.advance(900);
    let next = session.state.waiting[0].turn;
    assert_eq!(claimable(&session.state, &one, None), Claimable::Full);
    assert_eq!(claimable(&session.state, &two, None), Claimable::Now(next));
    assert_eq!(claimable(&session.state, &two, Some(0.59)), Claimable::Now(next));
    assert_eq!(
        claimable(&session.state, &two, Some(0.6)),
        Claimable::Full,
        "a long conversation runs one turn at a time"
    );
}
