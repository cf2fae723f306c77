//! Decisions in windows of four sizes, under both profiles.

use colloquy_context::budget::{Breakdown, Budget, Decision, Verdict, default_reserve, reserve, weigh};
use colloquy_context::compaction::trigger::{CompactionOptions, TriggerReason};
use colloquy_context::tokens::anchor::{Anchor, Measured};
use colloquy_context::tokens::calibrate::Calibration;
use colloquy_types::Policy;
use colloquy_types::policy::Profile;

const WINDOWS: [u32; 4] = [8_000, 32_000, 200_000, 1_000_000];
const OVERHEAD: u32 = 1_800;

fn profiles() -> [(&'static str, Policy); 2] {
    [Profile::Goclaw, Profile::Openclaw].map(|profile| {
        let name = if profile == Profile::Goclaw {
            "goclaw"
        } else {
            "openclaw"
        };
        (name, profile.policy())
    })
}

/// A budget as history makes it of a policy.
fn budget(policy: &Policy, window: u32, entries: u32, pending: u32) -> Budget {
    Budget {
        window,
        reserve: policy.reserve(window),
        tokens: Breakdown {
            overhead: OVERHEAD,
            entries,
            pending,
            ..Breakdown::default()
        },
        messages: 4,
        calibration_percent: 100,
        anchor: None,
    }
}

fn verdict(policy: &Policy, window: u32, entries: u32, pending: u32) -> Verdict {
    weigh(
        &budget(policy, window, entries, pending),
        &CompactionOptions::from(policy),
    )
}

#[test]
fn a_first_message_never_compacts() {
    for (name, policy) in profiles() {
        for window in WINDOWS {
            let first = verdict(&policy, window, 0, 500);
            assert_eq!(
                (first.decision, first.trigger),
                (Decision::Fits, None),
                "{name} {window}"
            );
        }
        // A system prompt beyond the trigger: there is still nothing to compact.
        let mut crowded = budget(&policy, 8_000, 0, 50);
        crowded.tokens.overhead = 6_200;
        crowded.reserve = 1_600;
        let crowded = weigh(&crowded, &CompactionOptions::from(&policy));
        assert_eq!(
            (crowded.decision, crowded.trigger),
            (Decision::Fits, None),
            "{name}"
        );
    }
}

#[test]
fn a_growing_conversation_goes_through_the_decisions_in_order() {
    for (name, policy) in profiles() {
        for window in WINDOWS {
            let mut last = Decision::Fits;
            let mut first_compaction = None;
            for entries in (0..window).step_by(window as usize / 400) {
                let now = verdict(&policy, window, entries, 100);
                let order = [Decision::Fits, Decision::CompactSoon, Decision::CompactNow];
                let place = |decision| order.iter().position(|known| *known == decision).unwrap();
                assert!(
                    place(now.decision) >= place(last),
                    "{name} {window}: {last:?} {now:?}"
                );
                if now.decision != Decision::Fits {
                    first_compaction = first_compaction.or(Some(now.numbers.expected));
                }
                last = now.decision;
            }
            assert_eq!(last, Decision::CompactNow, "{name} {window}");
            let share = f64::from(first_compaction.unwrap()) / f64::from(window);
            println!("{name:8} window {window:7}: first compaction at {share:.2} of it");
            assert!((0.5..0.99).contains(&share), "{name} {window}: {share}");
        }
    }
}

#[test]
fn the_numbers_are_those_of_the_rules() {
    // (window, goclaw: reserve, soon, now; openclaw: the same)
    let table = [
        (8_000, [1_600, 6_000, 6_400], [4_000, 4_000, 4_000]),
        (32_000, [6_400, 24_000, 25_600], [16_000, 16_000, 16_000]),
        (200_000, [16_384, 150_000, 183_616], [16_384, 180_000, 183_616]),
        (1_000_000, [16_384, 750_000, 983_616], [16_384, 980_000, 983_616]),
    ];
    for (window, goclaw, openclaw) in table {
        for ((name, policy), expected) in profiles().into_iter().zip([goclaw, openclaw]) {
            let numbers = verdict(&policy, window, 10, 10).numbers;
            let found = [numbers.reserve, numbers.soon_above.unwrap(), numbers.now_above];
            assert_eq!(found, expected, "{name} {window}");
            assert!(numbers.reserve <= window / 2);
            assert_eq!(numbers.expected, OVERHEAD + 20);
            assert_eq!(numbers.least, OVERHEAD + 10 + 400);
        }
    }
}

#[test]
fn each_decision_begins_one_token_after_its_number() {
    for (name, policy) in profiles() {
        for window in WINDOWS {
            let at = |expected: u32| verdict(&policy, window, expected - OVERHEAD - 100, 100);
            let numbers = at(window / 3).numbers;
            let soon = numbers.soon_above.unwrap();
            assert_eq!(at(soon).decision, Decision::Fits, "{name} {window}");
            if soon < numbers.now_above {
                assert_eq!(at(soon + 1).decision, Decision::CompactSoon, "{name} {window}");
                assert_eq!(at(soon + 1).trigger, Some(TriggerReason::Tokens));
            }
            assert_ne!(
                at(numbers.now_above).decision,
                Decision::CompactNow,
                "{name} {window}"
            );
            assert_eq!(
                at(numbers.now_above + 1).decision,
                Decision::CompactNow,
                "{name} {window}"
            );
            let pending = numbers.now_above - OVERHEAD - 400;
            let with = |pending| verdict(&policy, window, 401, pending).decision;
            assert_eq!(with(pending), Decision::CompactNow, "{name} {window}");
            assert_eq!(with(pending + 1), Decision::OverBudget, "{name} {window}");
        }
    }
}

#[test]
fn a_reserve_over_half_of_the_window_is_clamped_and_said() {
    let policy = Profile::Goclaw.policy();
    let asked = Budget {
        reserve: 7_000,
        ..budget(&policy, 8_000, 100, 100)
    };
    let numbers = weigh(&asked, &CompactionOptions::from(&policy)).numbers;
    assert_eq!(
        (numbers.reserve, numbers.now_above, numbers.reserve_clamped),
        (4_000, 4_000, true)
    );
    assert!(!verdict(&policy, 8_000, 100, 100).numbers.reserve_clamped);
    assert_eq!(reserve(8_000, Some(u32::MAX)), 4_000);
    assert_eq!(reserve(8_000, None), default_reserve(8_000));
    assert_eq!(reserve(0, Some(1)), 0);
}

#[test]
fn a_correction_applies_to_all_but_the_overhead() {
    let policy = Profile::Goclaw.policy();
    let corrected = Budget {
        calibration_percent: 125,
        ..budget(&policy, 200_000, 120_000, 1_000)
    };
    let verdict = weigh(&corrected, &CompactionOptions::from(&policy));
    assert_eq!(verdict.numbers.expected, OVERHEAD + 121_000 * 125 / 100);
    assert_eq!(verdict.decision, Decision::CompactSoon, "as counted it would fit");
}

#[test]
fn a_reported_prompt_counts_more_than_its_count() {
    let policy = Profile::Goclaw.policy();
    let options = CompactionOptions::from(&policy);
    let plain = budget(&policy, 200_000, 120_000, 1_000);
    assert_eq!(weigh(&plain, &options).decision, Decision::Fits);
    let prompt = Measured {
        reported: 150_000,
        counted: 120_000,
    };
    let anchored = Budget {
        anchor: Anchor::new(prompt, 200_000, &Calibration::new(120)),
        calibration_percent: 120,
        ..plain
    };
    let verdict = weigh(&anchored, &options);
    assert!(verdict.numbers.anchored);
    assert_eq!(verdict.numbers.expected, 150_000 + (OVERHEAD + 1_000) * 120 / 100);
    assert_eq!(verdict.decision, Decision::CompactSoon);
}

#[test]
fn the_usage_of_several_calls_does_not_move_the_decision() {
    let policy = Profile::Goclaw.policy();
    let cumulative = Measured {
        reported: 90_000,
        counted: 30_000,
    };
    let budget = Budget {
        anchor: Anchor::new(cumulative, 200_000, &Calibration::default()),
        ..budget(&policy, 200_000, 28_000, 200)
    };
    let verdict = weigh(&budget, &CompactionOptions::from(&policy));
    assert_eq!(
        (verdict.numbers.expected, verdict.numbers.anchored),
        (30_000, false)
    );
}
