//! Time by stage and allocations of a build.

use crate::scenario::Scenario;
use crate::{ALLOCATOR, STAGES};
use colloquy_context::{Format, build, build_observed};
use stats_alloc::Region;
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 101;

/// Of one build; lists are in the order of [`STAGES`].
pub struct Cost {
    /// Microseconds, the least of the rounds: what other processes do does not count.
    pub micros: Vec<f64>,
    /// Allocations, those that move a growing one included.
    pub allocations: Vec<usize>,
}

pub fn cost(scenario: &Scenario, format: Format) -> Cost {
    Cost {
        micros: micros(scenario, format),
        allocations: allocations(scenario, format),
    }
}

fn allocations(scenario: &Scenario, format: Format) -> Vec<usize> {
    let mut stages = Vec::with_capacity(STAGES.len());
    let mut region = Region::new(ALLOCATOR);
    let built = build_observed(&scenario.input(format), &mut |_| {
        let change = region.change_and_reset();
        stages.push(change.allocations + change.reallocations);
    });
    black_box(built).unwrap();
    stages
}

fn micros(scenario: &Scenario, format: Format) -> Vec<f64> {
    let input = scenario.input(format);
    let mut least = vec![f64::MAX; STAGES.len()];
    for _ in 0..ROUNDS {
        let mut since = Instant::now();
        let mut stages = least.iter_mut();
        let built = build_observed(&input, &mut |_| {
            let least = stages.next().unwrap();
            *least = least.min(since.elapsed().as_secs_f64() * 1e6);
            since = Instant::now();
        });
        black_box(built).unwrap();
    }
    least
}

/// Microseconds of a whole build, the least of the rounds.
pub fn total(scenario: &Scenario, format: Format) -> f64 {
    let input = scenario.input(format);
    let round = |_| {
        let started = Instant::now();
        black_box(build(&input)).unwrap();
        started.elapsed().as_secs_f64() * 1e6
    };
    (0..ROUNDS).map(round).fold(f64::MAX, f64::min)
}
