//! Time by stage and allocations of a build.

use crate::scenario::Scenario;
use crate::{ALLOCATOR, STAGES};
use colloquy_context::{Format, build, build_observed};
use stats_alloc::Region;
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 101;

/// Microseconds, medians over the rounds, in the order of [`STAGES`].
pub struct Timed {
    pub stages: Vec<f64>,
}

pub struct Cost {
    pub timed: Timed,
    pub allocations: usize,
    pub reallocations: usize,
}

pub fn cost(scenario: &Scenario, format: Format) -> Cost {
    let input = scenario.input(format);
    black_box(build(&input)).unwrap();
    let region = Region::new(ALLOCATOR);
    let built = black_box(build(&input)).unwrap();
    let change = region.change();
    drop(built);
    Cost {
        timed: timed(scenario, format),
        allocations: change.allocations,
        reallocations: change.reallocations,
    }
}

fn timed(scenario: &Scenario, format: Format) -> Timed {
    let input = scenario.input(format);
    let mut rounds = vec![Vec::with_capacity(ROUNDS); STAGES.len()];
    for _ in 0..ROUNDS {
        let mut since = Instant::now();
        let built = build_observed(&input, &mut |stage| {
            let at = STAGES.iter().position(|known| *known == stage).unwrap();
            rounds[at].push(since.elapsed().as_secs_f64() * 1e6);
            since = Instant::now();
        });
        black_box(built).unwrap();
    }
    Timed {
        stages: rounds.into_iter().map(median).collect(),
    }
}

/// Microseconds of a whole build, the median.
pub fn total(scenario: &Scenario, format: Format) -> f64 {
    let input = scenario.input(format);
    let round = || {
        let started = Instant::now();
        black_box(build(&input)).unwrap();
        started.elapsed().as_secs_f64() * 1e6
    };
    median((0..ROUNDS).map(|_| round()).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
