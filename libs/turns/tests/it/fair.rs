use colloquy_turns::{Candidate, FairChoice, Share};
use colloquy_types::queue::Lane;
use colloquy_types::{SessionId, TenantId, UnixMillis};
use std::collections::BTreeMap;

fn tenant(number: u128) -> TenantId {
    TenantId(format!("{number:032x}").parse().unwrap())
}

fn waits(tenant_number: u128, lane: Lane, due: i64) -> Candidate {
    Candidate {
        tenant: tenant(tenant_number),
        session: SessionId::new(),
        lane,
        due: UnixMillis(due),
        on_roots_place: false,
    }
}

fn equal(_: TenantId) -> Share {
    Share {
        weight: 1,
        cap: 1_000,
    }
}

/// Starts and at once ends turns; how many each tenant had.
fn starts(
    fair: &mut FairChoice,
    candidates: &[Candidate],
    rounds: usize,
    share: fn(TenantId) -> Share,
) -> BTreeMap<(TenantId, Lane), usize> {
    let mut had = BTreeMap::new();
    for _ in 0..rounds {
        let candidate = candidates[fair.start(candidates, share).unwrap()];
        *had.entry((candidate.tenant, candidate.lane)).or_default() += 1;
        fair.ended(&candidate);
    }
    had
}

#[test]
fn a_tenant_with_ten_thousand_waiting_turns_does_not_hold_another_up() {
    let mut fair = FairChoice::new(4);
    let mut candidates: Vec<Candidate> = (0..10_000).map(|due| waits(1, Lane::User, due)).collect();
    for _ in 0..50 {
        let first = candidates[fair.start(&candidates, equal).unwrap()];
        fair.ended(&first);
    }
    candidates.push(waits(2, Lane::User, 1_000_000));
    let next: Vec<TenantId> = (0..2)
        .map(|_| {
            let candidate = candidates[fair.start(&candidates, equal).unwrap()];
            candidate.tenant
        })
        .collect();
    assert!(next.contains(&tenant(2)), "it starts within one round");
}

#[test]
fn starts_follow_the_weights() {
    let share = |tenant_id: TenantId| Share {
        weight: if tenant_id == tenant(1) { 3 } else { 1 },
        cap: 10,
    };
    let candidates = [waits(1, Lane::User, 0), waits(2, Lane::User, 0)];
    let had = starts(&mut FairChoice::new(4), &candidates, 400, share);
    assert_eq!(had[&(tenant(1), Lane::User)], 300);
    assert_eq!(had[&(tenant(2), Lane::User)], 100);
}

#[test]
fn idleness_earns_no_credit() {
    let mut fair = FairChoice::new(4);
    starts(&mut fair, &[waits(1, Lane::User, 0)], 1_000, equal);
    let had = starts(
        &mut fair,
        &[waits(1, Lane::User, 0), waits(2, Lane::User, 0)],
        100,
        equal,
    );
    assert!((49..=51).contains(&had[&(tenant(2), Lane::User)]), "{had:?}");
}

#[test]
fn caps_hold_and_places_are_given_back() {
    let mut fair = FairChoice::new(3);
    let share = |_: TenantId| Share { weight: 1, cap: 2 };
    let own: Vec<Candidate> = (0..4).map(|due| waits(1, Lane::User, due)).collect();
    let first = own[fair.start(&own, share).unwrap()];
    assert!(fair.start(&own, share).is_some());
    assert_eq!(fair.start(&own, share), None, "the tenant's cap");
    let mut subagent = own[0];
    subagent.on_roots_place = true;
    assert_eq!(
        fair.start(&[subagent], share),
        Some(0),
        "it runs on its root's place"
    );
    let others = [waits(2, Lane::User, 0), waits(3, Lane::User, 0)];
    assert!(fair.start(&others, share).is_some());
    assert_eq!(fair.start(&others, share), None, "no place is left");
    fair.ended(&first);
    assert_eq!(fair.running(tenant(1)), 1);
    assert!(fair.start(&others, share).is_some());
}

#[test]
fn people_come_first_and_housekeeping_has_its_share() {
    let candidates = [
        waits(1, Lane::User, 0),
        waits(1, Lane::Background, 0),
        waits(2, Lane::Cron, 0),
    ];
    let mut fair = FairChoice::new(100);
    assert_eq!(fair.start(&candidates, equal), Some(0));
    let had = starts(&mut FairChoice::new(100), &candidates, 200, equal);
    assert_eq!(had[&(tenant(1), Lane::User)], 190);
}

#[test]
fn housekeeping_that_runs_keeps_the_reserve_closed() {
    let mut fair = FairChoice::new(20);
    let work = [waits(1, Lane::Background, 0)];
    assert_eq!(fair.start(&work, equal), Some(0), "nobody else waits");
    let both = [waits(1, Lane::User, 0), waits(1, Lane::Background, 0)];
    for _ in 0..100 {
        assert_eq!(fair.start(&both, equal), Some(0), "one place of twenty is taken");
        fair.ended(&both[0]);
    }
    fair.ended(&work[0]);
    assert_eq!(fair.start(&both, equal), Some(1));
}

#[test]
fn waiting_lifts_a_lane() {
    let mut fair = FairChoice::new(4);
    let fresh = [waits(1, Lane::Background, 0), waits(1, Lane::Subagent, 1_000)];
    assert_eq!(fair.start(&fresh, equal), Some(1));
    let aged = [waits(1, Lane::Background, 0), waits(1, Lane::Subagent, 600_000)];
    assert_eq!(fair.start(&aged, equal), Some(0));
}
