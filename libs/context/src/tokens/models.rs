//! What is known of a model by its name: its tokenizer, its rule for images, and how far its counts may be off.

use super::images::ImageRule;
use super::{MESSAGE_OVERHEAD, Tokenizer};

/// How a model counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    /// The public vocabulary that is the model's own or the nearest to it.
    pub tokenizer: Tokenizer,
    pub images: ImageRule,
    /// Tokens around every message: role and separators.
    pub message_overhead: u32,
    /// Real tokens per 100 counted ones before anything was observed; 100 where the vocabulary is the model's own.
    pub expected_percent: u32,
    /// How far the real sum of ordinary texts may be from that, in percent; 0 = exact. A single message: twice that.
    pub margin_percent: u32,
}

impl Family {
    /// The family of a model. Path and vendor prefixes do not matter (`openai/gpt-4o`, `us.anthropic.claude-…`,
    /// `models/gemini-…`). A name that is not known gets [`Tokenizer::Estimate`].
    #[must_use]
    pub fn of(model: &str) -> Self {
        let name = bare(model);
        openai(&name)
            .or_else(|| claude(&name))
            .or_else(|| near(&name))
            .unwrap_or(Self {
                tokenizer: Tokenizer::Estimate,
                images: ImageRule::OPENAI_TILES,
                message_overhead: MESSAGE_OVERHEAD,
                expected_percent: 100,
                margin_percent: 40,
            })
    }

    /// Real tokens per 100 that another tokenizer counted, before anything was observed. Counts by OpenAI's
    /// vocabularies of what agents send to Claude are about 0.81 of the real ones, those by Claude's own 1.0.
    #[must_use]
    pub fn expected_percent_of(&self, counted_by: Tokenizer) -> u32 {
        let is_openai = |tokenizer| matches!(tokenizer, Tokenizer::O200k | Tokenizer::Cl100k);
        if self.tokenizer == Tokenizer::Claude && is_openai(counted_by) {
            self.expected_percent * 123 / 100
        } else if self.tokenizer == counted_by {
            self.expected_percent
        } else {
            100
        }
    }
}

/// The name in lower case without paths, vendors and the mark of a fine-tuned model.
fn bare(model: &str) -> String {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    let mut name = name.strip_prefix("ft:").unwrap_or(&name);
    while let Some((vendor, rest)) = name.split_once('.') {
        if !vendor.chars().all(|c| c.is_ascii_lowercase() || c == '-') {
            break;
        }
        name = rest;
    }
    name.to_owned()
}

fn starts(name: &str, stems: &[&str]) -> bool {
    stems.iter().any(|stem| name.starts_with(stem))
}

/// Which vocabulary: <https://github.com/openai/tiktoken/blob/main/tiktoken/model.py>.
fn openai(name: &str) -> Option<Family> {
    const O200K: &[&str] = &[
        "gpt-4o",
        "gpt-4.1",
        "gpt-4.5",
        "gpt-5",
        "gpt-6",
        "gpt-oss",
        "chatgpt-4o",
        "codex-mini",
        "o1",
        "o3",
        "o4",
    ];
    const CL100K: &[&str] = &["gpt-4", "gpt-3.5", "gpt-35", "text-embedding-"];
    let tokenizer = if starts(name, O200K) {
        Tokenizer::O200k
    } else if starts(name, CL100K) {
        Tokenizer::Cl100k
    } else {
        return None;
    };
    Some(Family {
        tokenizer,
        images: ImageRule::of_openai(name),
        message_overhead: MESSAGE_OVERHEAD,
        expected_percent: 100,
        margin_percent: 0,
    })
}

/// Anthropic says that Opus from 4.7, and the generation of Sonnet 5 and Fable 5, make about 30 % more tokens of the
/// same text than earlier models (<https://platform.claude.com/docs/en/build-with-claude/token-counting>).
fn claude(name: &str) -> Option<Family> {
    let name = name.strip_prefix("claude")?;
    let is_new = is_new_claude(name);
    Some(Family {
        tokenizer: Tokenizer::Claude,
        images: if is_new {
            ImageRule::CLAUDE_LARGE
        } else {
            ImageRule::CLAUDE
        },
        message_overhead: MESSAGE_OVERHEAD,
        expected_percent: if is_new { 130 } else { 100 },
        margin_percent: if is_new { 20 } else { 10 },
    })
}

fn is_new_claude(rest: &str) -> bool {
    let mut words = rest.split(['-', '.', '@', ':']).filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default();
    let mut number = || {
        let word = words.next()?;
        word.parse::<u32>().ok().filter(|&number| number < 100)
    };
    match first {
        "fable" | "mythos" => true,
        "opus" => (number(), number()) >= (Some(4), Some(7)),
        "sonnet" | "haiku" => number() >= Some(5),
        _ => false,
    }
}

/// Models with vocabularies of their own for which a public one is near.
fn near(name: &str) -> Option<Family> {
    // Llama's vocabulary is cl100k's with 28,000 tokens more.
    const LLAMA: &[&str] = &[
        "llama-3",
        "llama3",
        "llama-v3",
        "llama-4",
        "llama4",
        "meta-llama-3",
    ];
    const MISTRAL: &[&str] = &[
        "mistral",
        "ministral",
        "magistral",
        "codestral",
        "devstral",
        "open-mi",
    ];
    let family = |tokenizer, images, margin_percent| Family {
        tokenizer,
        images,
        message_overhead: MESSAGE_OVERHEAD,
        expected_percent: 100,
        margin_percent,
    };
    if starts(name, &["gemini", "gemma"]) {
        Some(Family {
            // Recorded calls show one at most.
            message_overhead: 1,
            ..family(Tokenizer::O200k, gemini_images(name), 20)
        })
    } else if starts(name, LLAMA) {
        Some(family(Tokenizer::Cl100k, ImageRule::OPENAI_TILES, 15))
    } else if name.starts_with("pixtral") {
        Some(family(Tokenizer::O200k, ImageRule::PIXTRAL, 25))
    } else {
        starts(name, MISTRAL).then(|| family(Tokenizer::O200k, ImageRule::MISTRAL, 25))
    }
}

fn gemini_images(name: &str) -> ImageRule {
    if starts(name, &["gemini-1", "gemini-2", "gemini-flash", "gemini-pro"]) {
        ImageRule::GeminiTiles
    } else {
        ImageRule::GEMINI
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendors_and_paths_do_not_matter() {
        for (model, name) in [
            ("openai/gpt-4.1-mini", "gpt-4.1-mini"),
            ("ft:gpt-4o:acme::1", "gpt-4o:acme::1"),
            (
                "us.anthropic.claude-3-5-sonnet-20241022-v2:0",
                "claude-3-5-sonnet-20241022-v2:0",
            ),
            ("us-gov.meta.llama3-1-70b", "llama3-1-70b"),
            ("models/Gemini-2.5-Pro", "gemini-2.5-pro"),
            ("", ""),
        ] {
            assert_eq!(bare(model), name);
        }
    }

    #[test]
    fn new_claudes_are_told_from_old_ones() {
        for (model, is_new) in [
            ("claude-opus-4-7", true),
            ("claude-opus-4.8", true),
            ("claude-opus-5", true),
            ("claude-sonnet-5-20260801", true),
            ("claude-fable-5", true),
            ("claude-opus-4-6", false),
            ("claude-opus-4-20250514", false),
            ("claude-sonnet-4-5@20250929", false),
            ("claude-3-opus-latest", false),
            ("claude-2.1", false),
        ] {
            let family = Family::of(model);
            assert_eq!(family.tokenizer, Tokenizer::Claude);
            assert_eq!(family.expected_percent > 100, is_new, "{model}");
        }
    }
}
