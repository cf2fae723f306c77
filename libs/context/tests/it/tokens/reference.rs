//! Counts equal those of reference tokenizers.

use super::texts::{Random, SCRIPTS};
use colloquy_context::Tokenizer;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use tiktoken_rs::{CoreBPE, cl100k_base_singleton, o200k_base_singleton};
use unicode_normalization::UnicodeNormalization;

const TEXTS_PER_SCRIPT: usize = 130;

/// What Anthropic's own package runs: tiktoken with this vocabulary and this pattern, on the text in NFKC.
static CLAUDE: LazyLock<CoreBPE> = LazyLock::new(|| {
    let mut data = include_bytes!("../../../vocab/claude.tokens").as_slice();
    let mut ranks = Vec::new();
    while let Some((&length, mut rest)) = data.split_first() {
        let mut length = usize::from(length);
        if length == 255 {
            length = usize::from(u16::from_le_bytes([rest[0], rest[1]]));
            rest = &rest[2..];
        }
        ranks.push(rest[..length].to_vec());
        data = &rest[length..];
    }
    let encoder = ranks.into_iter().zip(0..).collect();
    let pattern = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
    CoreBPE::new(encoder, std::iter::empty().collect(), pattern).unwrap()
});

fn reference(tokenizer: Tokenizer, text: &str) -> usize {
    match tokenizer {
        Tokenizer::O200k => o200k_base_singleton().encode_ordinary(text).len(),
        Tokenizer::Cl100k => cl100k_base_singleton().encode_ordinary(text).len(),
        _ => CLAUDE.encode_ordinary(&text.nfkc().collect::<String>()).len(),
    }
}

const EXACT: [Tokenizer; 3] = [Tokenizer::O200k, Tokenizer::Cl100k, Tokenizer::Claude];

fn assert_equal<'a>(tokenizer: Tokenizer, texts: impl IntoIterator<Item = &'a String>) -> (usize, usize) {
    let (mut texts_seen, mut tokens) = (0, 0);
    for text in texts {
        let counted = tokenizer.count_text(text) as usize;
        assert_eq!(counted, reference(tokenizer, text), "{tokenizer}: {text:?}");
        texts_seen += 1;
        tokens += counted;
    }
    (texts_seen, tokens)
}

#[test]
fn texts_of_many_scripts_count_as_the_reference_counts_them() {
    for tokenizer in EXACT {
        let (mut texts, mut tokens) = (0, 0);
        for script in SCRIPTS {
            let (more, counted) = assert_equal(tokenizer, &script.texts(TEXTS_PER_SCRIPT));
            texts += more;
            tokens += counted;
        }
        assert!(texts >= 2_000);
        println!("{tokenizer}: {texts} texts, {tokens} tokens, all equal");
    }
}

#[test]
fn single_characters_count_as_the_reference_counts_them() {
    let mut all: Vec<String> = SCRIPTS.iter().flat_map(|script| script.characters()).collect();
    let mut random = Random(1);
    all.extend((0..2_000).filter_map(|_| {
        let code = u32::try_from(random.below(0x11_0000)).unwrap();
        char::from_u32(code).map(String::from)
    }));
    all.extend((0..=0xff_u8).map(|byte| char::from(byte).to_string()));
    for tokenizer in EXACT {
        assert_equal(tokenizer, &all);
    }
}

#[test]
fn runs_of_one_character_count_as_the_reference_counts_them() {
    let runs = [
        " ", "a", "\n", "\t", "-", "0", "語", "é", "🙂", "\0", " \n", "ab", "=", "\u{301}",
    ];
    let texts: Vec<String> = runs
        .iter()
        .flat_map(|run| [2, 3, 7, 16, 63, 64, 65, 255, 1_000].map(|times| format!("x{}y", run.repeat(times))))
        .collect();
    for tokenizer in EXACT {
        assert_equal(tokenizer, &texts);
    }
}

/// Sums over the generated texts that the crate `claude-tokenizer` 0.3.0 gives, counted once with it: a second
/// implementation with its own merging and its own pattern engine.
const CLAUDE_SUMS: &[(&str, usize)] = &[
    ("latin", 4_452),
    ("cyrillic", 6_086),
    ("greek", 7_834),
    ("cjk", 6_373),
    ("arabic", 10_665),
    ("hebrew", 10_994),
    ("devanagari", 10_599),
    ("thai", 13_219),
    ("other", 16_816),
    ("emoji", 7_725),
    ("code", 8_162),
    ("json", 9_547),
    ("numbers", 4_749),
    ("whitespace", 1_454),
    ("control", 3_429),
    ("mixed", 2_909),
];

#[test]
fn claudes_counts_are_those_of_a_second_implementation() {
    let sums: BTreeMap<&str, usize> = SCRIPTS
        .iter()
        .map(|script| {
            let counts = script.texts(TEXTS_PER_SCRIPT);
            let sum = counts
                .iter()
                .map(|text| Tokenizer::Claude.count_text(text) as usize);
            (script.name, sum.sum())
        })
        .collect();
    assert_eq!(sums, CLAUDE_SUMS.iter().copied().collect());
}
