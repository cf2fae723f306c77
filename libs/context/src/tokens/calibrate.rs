//! How many real tokens a counted one is, learned from what a provider reports: per tenant, model and the tokenizer that
//! counts (their prompts, languages and tools differ).
//!
//! Learned from growth: between two calls of one conversation the reported prompt grows by what was added, and so does the
//! count. Whatever is fixed (system prompt, tool schemas, what the provider adds) falls out. Cumulative usage does too: it
//! grows by a whole prompt for each message, which no ratio explains.

use super::Family;
use super::anchor::{Measured, UNSEEN};
use serde::{Deserialize, Serialize};

/// The least and the most real tokens per 100 counted ones that are believed.
const LEAST: u64 = 40;
const MOST: u64 = 300;
/// Weight of the expectation before the first call, in counted tokens.
const PRIOR: u64 = 1_000;
/// The most weight of one call, so that one large file does not decide.
const HEAVIEST: u64 = 16_000;
/// Counted tokens to remember; at twice as many, what was before is halved.
const MEMORY: u64 = 64_000;
/// Growth below this is mostly separators.
const LIGHTEST: u32 = 32;
/// A call that differs by more than a factor of two is taken for a mistake; as many in a row are none: the expectation was
/// wrong, or the model or its use has changed.
const CHANGED: u32 = 8;

/// What one call taught: the growth of the prompt since an earlier call of the same conversation and model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// Tokens that the reported prompt grew by.
    pub real: u32,
    /// Tokens that the count of the same prompt grew by, uncorrected.
    pub counted: u32,
}

impl Observation {
    /// Between the prompts of two calls; none where the prompt did not grow by enough to tell, or where the later report
    /// cannot be the size of its prompt. The caller sees to it that nothing was pruned or compacted in between.
    #[must_use]
    pub fn between(before: Measured, after: Measured) -> Option<Self> {
        let counted = after.counted.checked_sub(before.counted)?;
        let real = after.reported.checked_sub(before.reported)?;
        let is_size = u64::from(after.reported) * 100 <= u64::from(after.counted) * MOST + UNSEEN * 100;
        (is_size && counted >= LIGHTEST).then_some(Self { real, counted })
    }
}

/// The state: a small plain value, stored as its JSON. The same observations in the same order give the same state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calibration {
    /// Sums over the calls remembered.
    real: u64,
    counted: u64,
    /// Calls taken, in all.
    calls: u32,
    /// Calls in a row that did not fit.
    misfits: u32,
}

impl Default for Calibration {
    fn default() -> Self {
        Self::new(100)
    }
}

impl Calibration {
    /// Nothing observed yet; expects so many real tokens per 100 counted ones.
    #[must_use]
    pub fn new(expected_percent: u32) -> Self {
        Self {
            real: PRIOR * u64::from(expected_percent).clamp(LEAST, MOST) / 100,
            counted: PRIOR,
            calls: 0,
            misfits: 0,
        }
    }

    /// Nothing observed yet of a model whose messages this tokenizer counts.
    #[must_use]
    pub fn for_model(model: &str, counted_by: super::Tokenizer) -> Self {
        Self::new(Family::of(model).expected_percent_of(counted_by))
    }

    /// The state after one more call. What no tokenizer explains (a ratio below 0.4 or over 3), and what differs from the
    /// ratio so far by more than a factor of two, changes nothing, unless it goes on.
    #[must_use]
    pub fn observe(self, seen: Observation) -> Self {
        let (real, counted) = (u64::from(seen.real), u64::from(seen.counted));
        let is_possible = counted > 0 && real * 100 >= counted * LEAST && real * 100 <= counted * MOST;
        if !is_possible {
            return self;
        }
        let expected = u64::from(self.correct(seen.counted));
        let is_near = real <= expected * 2 && expected <= real * 2;
        if is_near {
            return self.add(real, counted);
        }
        let misfits = self.misfits.saturating_add(1);
        if misfits < CHANGED {
            return Self { misfits, ..self };
        }
        let percent = u32::try_from(real * 100 / counted).unwrap_or(100);
        Self::new(percent).add(real, counted)
    }

    fn add(self, real: u64, counted: u64) -> Self {
        let weight = counted.min(HEAVIEST);
        let mut sums = Self {
            real: self.real.saturating_add(real * weight / counted),
            counted: self.counted.saturating_add(weight),
            calls: self.calls.saturating_add(1),
            misfits: 0,
        };
        if sums.counted > 2 * MEMORY {
            sums.real /= 2;
            sums.counted /= 2;
        }
        sums
    }

    /// Real tokens to expect of counted ones.
    #[must_use]
    pub fn correct(&self, counted: u32) -> u32 {
        let counted = u128::from(counted);
        let (real, of) = (u128::from(self.real), u128::from(self.counted.max(1)));
        let bounded = (counted * real / of).clamp(
            counted * u128::from(LEAST) / 100,
            counted * u128::from(MOST) / 100,
        );
        u32::try_from(bounded).unwrap_or(u32::MAX)
    }

    /// Real tokens per 100 counted ones, rounded; 40 to 300.
    #[must_use]
    pub fn percent(&self) -> u32 {
        (self.correct(10_000) + 50) / 100
    }

    /// Calls learned from, in all.
    #[must_use]
    pub fn calls(&self) -> u32 {
        self.calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(start: Calibration, ratio_percent: u32, calls: u32) -> Calibration {
        let seen = Observation {
            real: 10 * ratio_percent,
            counted: 1_000,
        };
        (0..calls).fold(start, |state, _| state.observe(seen))
    }

    #[test]
    fn the_ratio_is_learned_in_a_few_calls() {
        let state = after(Calibration::default(), 125, 10);
        assert!((122..=125).contains(&state.percent()), "{}", state.percent());
        assert_eq!(state.calls(), 10);
        assert_eq!(Calibration::new(130).percent(), 130);
    }

    #[test]
    fn outliers_change_nothing() {
        let settled = after(Calibration::default(), 120, 10);
        for (real, counted) in [(50_000, 1_000), (3_000, 1_000), (100, 1_000), (0, 40), (7, 0)] {
            let state = settled.observe(Observation { real, counted });
            assert_eq!(state.percent(), settled.percent(), "{real} of {counted}");
        }
    }

    #[test]
    fn cumulative_usage_is_never_learned() {
        // Prompts of 20,000 tokens that grow by 500; what is reported is the sum of all calls so far.
        let (mut state, mut sum) = (Calibration::default(), 0);
        let mut before = None;
        for call in 0..40 {
            let prompt = 20_000 + 500 * call;
            sum += prompt;
            let now = Measured {
                reported: sum,
                counted: prompt,
            };
            if let Some(seen) = before.and_then(|before| Observation::between(before, now)) {
                state = state.observe(seen);
            }
            before = Some(now);
        }
        assert_eq!(state, Calibration::default());
    }

    #[test]
    fn one_large_call_does_not_decide() {
        let state = after(Calibration::default(), 110, 20);
        let state = state.observe(Observation {
            real: 190_000,
            counted: 100_000,
        });
        assert!(state.percent() <= 145, "{}", state.percent());
    }

    #[test]
    fn a_change_that_goes_on_is_learned() {
        let state = after(Calibration::default(), 100, 50);
        let changed = after(state, 240, CHANGED - 1);
        assert_eq!(changed.percent(), 100);
        assert_eq!(after(changed, 240, 1).percent(), 240);
    }

    #[test]
    fn the_state_survives_its_json_and_any_numbers() {
        let state = after(Calibration::default(), 117, 30);
        let json = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<Calibration>(&json).unwrap(), state);
        for json in [
            r#"{"real":0,"counted":0,"calls":0,"misfits":0}"#,
            r#"{"real":18446744073709551615,"counted":1,"calls":4294967295,"misfits":4294967295}"#,
        ] {
            let odd: Calibration = serde_json::from_str(json).unwrap();
            let odd = after(odd, 100, 3);
            assert!((40..=300).contains(&odd.percent()));
            assert_eq!(odd.correct(0), 0);
        }
    }
}
