//! Estimates against what providers reported.

mod recorded;
mod session;

use colloquy_context::tokens::anchor::{Anchor, Measured};
use colloquy_context::tokens::calibrate::{Calibration, Observation};
use colloquy_context::{Counter, Tokenizer, count_overhead};
use recorded::{Call, calls};
use session::{Growth, growths};
use std::collections::BTreeMap;
use std::fmt;

/// Estimates and the real numbers behind them.
#[derive(Default)]
struct Ratios(Vec<(u32, u32)>);

impl Ratios {
    fn push(&mut self, estimate: u32, real: u32) {
        self.0.push((estimate, real));
    }

    /// Estimate ÷ real of the sums.
    fn sum(&self) -> f64 {
        let total = |of: fn(&(u32, u32)) -> u32| self.0.iter().map(|pair| f64::from(of(pair))).sum::<f64>();
        total(|pair| pair.0) / total(|pair| pair.1)
    }

    /// Whether nine of ten estimates, and their sum, are so near to the real numbers.
    fn within(&self, share: f64) -> bool {
        let all = self.sorted();
        let last = all.len() - 1;
        let near = |ratio: f64| (ratio - 1.0).abs() <= share;
        near(self.sum()) && near(all[last * 5 / 100]) && near(all[last * 95 / 100])
    }

    fn sorted(&self) -> Vec<f64> {
        let mut all: Vec<f64> = self
            .0
            .iter()
            .map(|&(estimate, real)| f64::from(estimate) / f64::from(real))
            .collect();
        all.sort_by(f64::total_cmp);
        all
    }
}

impl fmt::Display for Ratios {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.sorted();
        let Some(last) = all.len().checked_sub(1) else {
            return f.write_str("no calls");
        };
        #[allow(clippy::cast_precision_loss, reason = "some hundred")]
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        write!(
            f,
            "{:4} calls: sum {:.3}, mean {mean:.3}, p5 {:.3}, p95 {:.3}",
            all.len(),
            self.sum(),
            all[last * 5 / 100],
            all[last * 95 / 100]
        )
    }
}

/// Tokens counted for a call: what stands around the messages, and the messages.
fn counted(call: &Call) -> (u32, u32) {
    let counter = Counter::for_model(&call.model);
    let system: Vec<&str> = call.system.iter().map(String::as_str).collect();
    let overhead = count_overhead(&system, &call.tools, call.format, counter.tokenizer);
    (
        overhead,
        call.messages.iter().map(|message| counter.message(message)).sum(),
    )
}

/// What is known when a call is about to be made, and the three estimates of its prompt.
#[derive(Default)]
struct Provider {
    counted: Ratios,
    /// The messages corrected by what earlier calls of the model taught.
    calibrated: Ratios,
    /// Anchored on the call before in the same recording, where there is one.
    anchored: Ratios,
}

/// Goes through the calls in the order of the recordings, as a service would.
fn replay_calls(calls: &[Call]) -> BTreeMap<&str, Provider> {
    let mut providers: BTreeMap<&str, Provider> = BTreeMap::new();
    let mut learned: BTreeMap<&str, Calibration> = BTreeMap::new();
    let mut before: Option<(&str, Measured)> = None;
    for call in calls {
        let (overhead, messages) = counted(call);
        let new = || Calibration::for_model(&call.model, Tokenizer::for_model(&call.model));
        let state = learned.entry(&call.model).or_insert_with(new);
        let now = Measured {
            reported: call.reported,
            counted: overhead + messages,
        };
        let provider = providers.entry(call.provider).or_default();
        provider.counted.push(now.counted, now.reported);
        provider
            .calibrated
            .push(overhead + state.correct(messages), now.reported);
        let earlier = before
            .filter(|&(recording, earlier)| recording == call.recording && earlier.counted < now.counted);
        if let Some((_, earlier)) = earlier {
            if let Some(anchor) = Anchor::new(earlier, 0, state) {
                provider
                    .anchored
                    .push(anchor.estimate(now.counted, state), now.reported);
            }
            if let Some(seen) = Observation::between(earlier, now) {
                *state = state.observe(seen);
            }
        }
        before = Some((&call.recording, now));
    }
    providers
}

#[test]
fn recorded_calls_of_four_providers_are_near_and_anchored_ones_nearer() {
    let Some(calls) = calls() else { return };
    println!("recorded calls, mostly of 10 to 1,000 tokens: estimate ÷ reported prompt");
    for (name, provider) in replay_calls(&calls) {
        println!("{name:16} as counted {}", provider.counted);
        println!("{name:16} calibrated {}", provider.calibrated);
        println!("{name:16} anchored   {}", provider.anchored);
        assert!((0.85..1.15).contains(&provider.counted.sum()), "{name}");
        assert!((0.9..1.1).contains(&provider.anchored.sum()), "{name}");
    }
}

fn counts(growth: &Growth, counter: Counter) -> Vec<u32> {
    growth
        .messages
        .iter()
        .map(|message| counter.message(message))
        .collect()
}

/// The session's growth, estimated call by call with what the calls before taught.
struct Session {
    all: Ratios,
    /// Without the first ten.
    later: Ratios,
    state: Calibration,
}

impl Session {
    /// `learns`: false leaves the state as it is.
    fn replay(growths: &[Growth], counter: Counter, learns: bool) -> Self {
        let mut session = Self {
            all: Ratios::default(),
            later: Ratios::default(),
            state: Calibration::default(),
        };
        for (call, growth) in growths.iter().enumerate() {
            let counted = counts(growth, counter).iter().sum();
            let estimate = session.state.correct(counted);
            session.all.push(estimate, growth.real());
            if call >= 10 {
                session.later.push(estimate, growth.real());
            }
            if learns {
                let real = growth.real();
                session.state = session.state.observe(Observation { real, counted });
            }
        }
        session
    }
}

#[test]
fn a_recorded_session_is_within_three_percent_after_ten_calls() {
    let Some(growths) = growths() else { return };
    println!("recorded session of Claude 4.5: estimate ÷ growth of the reported prompt");
    for tokenizer in [Tokenizer::Claude, Tokenizer::O200k, Tokenizer::Estimate] {
        let counter = Counter::from(tokenizer);
        let plain = Session::replay(&growths, counter, false);
        let learned = Session::replay(&growths, counter, true);
        println!("{tokenizer:8} as counted      {}", plain.all);
        println!("{tokenizer:8} calibrated      {}", learned.all);
        println!("{tokenizer:8} after ten calls {}", learned.later);
        println!("{tokenizer:8} at the end      {} %", learned.state.percent());
        assert!(
            (0.97..=1.03).contains(&learned.later.sum()),
            "{tokenizer}: {}",
            learned.later
        );
    }
}

#[test]
fn a_recorded_sessions_prompts_are_known_to_two_percent_once_anchored() {
    let Some(growths) = growths() else { return };
    for tokenizer in [Tokenizer::Claude, Tokenizer::O200k] {
        let counter = Counter::from(tokenizer);
        let mut state = Calibration::for_model("claude-opus-4-5", tokenizer);
        let (mut prompts, mut replied) = (Ratios::default(), Ratios::default());
        let mut last: Option<Measured> = None;
        for growth in &growths {
            let parts = counts(growth, counter);
            // The first prompt of a run comes without its messages; those behind it add up.
            let first = Measured {
                reported: growth.before,
                counted: growth.before * 100 / state.percent(),
            };
            let before = last
                .filter(|last| last.reported == growth.before)
                .unwrap_or(first);
            let new: u32 = parts.iter().sum();
            let now = Measured {
                reported: growth.after,
                counted: before.counted + new,
            };
            let anchor = Anchor::new(before, 200_000, &state).unwrap();
            prompts.push(anchor.estimate(now.counted, &state), now.reported);
            let known = anchor.with_reply(growth.output, parts[0]);
            replied.push(known.estimate(now.counted, &state), now.reported);
            if let Some(seen) = Observation::between(before, now) {
                state = state.observe(seen);
            }
            last = Some(now);
        }
        println!("{tokenizer:8} prompts anchored             {prompts}");
        println!("{tokenizer:8} with the reply's own tokens  {replied}");
        assert!(prompts.within(0.02), "{tokenizer}: {prompts}");
        assert!(replied.within(0.01), "{tokenizer}: {replied}");
    }
}

#[test]
fn a_recorded_sessions_cumulative_usage_teaches_nothing_and_anchors_nothing() {
    let Some(growths) = growths() else { return };
    let (mut state, mut anchors) = (Calibration::default(), 0);
    let mut last = Measured {
        reported: 0,
        counted: 0,
    };
    for growth in &growths {
        let sum = Measured {
            reported: last.reported + growth.after,
            counted: growth.after,
        };
        anchors += usize::from(Anchor::new(sum, 0, &state).is_some());
        if let Some(seen) = Observation::between(last, sum) {
            state = state.observe(seen);
        }
        last = sum;
    }
    println!(
        "the same session's sums: {} %, {anchors} anchors",
        state.percent()
    );
    assert!((95..=105).contains(&state.percent()), "{}", state.percent());
    assert!(anchors <= 2, "the first call's sum is its prompt");
}
