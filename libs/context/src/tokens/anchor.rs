//! The sum of a prompt, anchored on what the provider reported for an earlier one.
//!
//! What was reported needs no counting again, with all that the provider adds unseen; only what came since is counted. So the
//! error of a count is one of the last few messages, not of the window.

use super::calibrate::Calibration;
use serde::{Deserialize, Serialize};

/// What a provider reported for one call. Tokens of several calls together (a turn's, a session's) are no prompt size and
/// have no way in here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Reported {
    /// Prompt tokens that no cache had.
    pub input: u32,
    /// Prompt tokens read from the provider's cache; 0 where `input` includes them (OpenAI, Gemini).
    pub cache_read: u32,
    /// Prompt tokens written to it; 0 where `input` includes them.
    pub cache_write: u32,
}

impl Reported {
    /// The size of the call's prompt, 0 = not reported. Anthropic reports its three parts apart
    /// (<https://platform.claude.com/docs/en/build-with-claude/prompt-caching>).
    #[must_use]
    pub fn prompt(&self) -> u32 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }
}

/// One prompt, as it was reported and as it was counted; both may be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// Tokens that the provider reported for the prompt.
    pub reported: u32,
    /// Tokens that were counted for the same prompt, overhead included, without any correction.
    pub counted: u32,
}

/// A prompt whose size is known. Valid for its model, until a compaction, a reset or another model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor(Measured);

/// How far a reported size may be from the expected one, in percent. Two calls taken together are 200.
const FARTHEST: u64 = 170;
/// Tokens that a provider may add unseen, whatever the prompt's size: prompts for tools, thinking, output formats.
pub(super) const UNSEEN: u64 = 2_000;

impl Anchor {
    /// An anchor, where the report can be the size of that prompt: it is not 0, not more than the model's window (0 =
    /// unknown), and not out of proportion to the corrected count. Cumulative usage is, once it is of two calls.
    #[must_use]
    pub fn new(prompt: Measured, window: u32, calibration: &Calibration) -> Option<Self> {
        let (real, expected) = (prompt.reported, calibration.correct(prompt.counted));
        let fits = real > 0 && prompt.counted > 0 && (window == 0 || real <= window);
        let reaches = |from: u32, to: u32| u64::from(to) <= u64::from(from) * FARTHEST / 100 + UNSEEN;
        (fits && reaches(expected, real) && reaches(real, expected)).then_some(Self(prompt))
    }

    /// The same prompt with the call's reply behind it: `output` as the provider reported for that call, less thinking that
    /// is not sent back, and `counted` as the reply was counted. A reply's own size is exact, whatever the vocabulary.
    #[must_use]
    pub fn with_reply(self, output: u32, counted: u32) -> Self {
        Self(Measured {
            reported: self.0.reported.saturating_add(output),
            counted: self.0.counted.saturating_add(counted),
        })
    }

    /// What was reported and counted, with the reply if there is one.
    #[must_use]
    pub fn measured(&self) -> Measured {
        self.0
    }

    /// Tokens to expect of a prompt that was counted as `counted`, overhead included: what was reported, plus what is new,
    /// corrected. A prompt that has shrunk since (pruned) is the reported one in proportion.
    #[must_use]
    pub fn estimate(&self, counted: u32, calibration: &Calibration) -> u32 {
        let Measured {
            reported,
            counted: then,
        } = self.0;
        match counted.checked_sub(then) {
            Some(new) => reported.saturating_add(calibration.correct(new)),
            None => {
                let share = u64::from(reported) * u64::from(counted) / u64::from(then);
                u32::try_from(share).unwrap_or(u32::MAX)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_are_part_of_the_prompt() {
        let reported = Reported {
            input: 10,
            cache_read: 33_637,
            cache_write: 7_594,
        };
        assert_eq!(reported.prompt(), 41_241);
    }

    fn anchor(reported: u32, counted: u32, window: u32) -> Option<Anchor> {
        Anchor::new(Measured { reported, counted }, window, &Calibration::new(120))
    }

    #[test]
    fn the_estimate_is_what_was_reported_plus_what_is_new() {
        let anchor = anchor(12_000, 10_000, 200_000).unwrap();
        let calibration = Calibration::new(120);
        assert_eq!(anchor.estimate(10_000, &calibration), 12_000);
        assert_eq!(anchor.estimate(10_500, &calibration), 12_600);
        assert_eq!(anchor.estimate(5_000, &calibration), 6_000, "pruned since");
        let replied = anchor.with_reply(300, 200);
        assert_eq!(replied.estimate(10_200, &calibration), 12_300);
    }

    #[test]
    fn what_cannot_be_a_prompts_size_is_no_anchor() {
        assert!(anchor(0, 10_000, 0).is_none(), "not reported");
        assert!(
            anchor(210_000, 170_000, 200_000).is_none(),
            "more than the window"
        );
        assert!(anchor(240_000, 100_000, 0).is_none(), "of two calls");
        assert!(anchor(10, 100_000, 0).is_none(), "of what was not cached");
        assert!(
            anchor(760, 40, 0).is_some(),
            "a short prompt with hidden tool prompts"
        );
    }
}
