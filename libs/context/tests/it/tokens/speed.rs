//! Counting stays linear, whatever the text.

use super::texts::{Random, SCRIPTS};
use colloquy_context::Tokenizer;
use std::time::{Duration, Instant};

/// A megabyte; an eighth of it where nothing is optimised.
const LONG: usize = if cfg!(debug_assertions) { 1 << 17 } else { 1 << 20 };
/// How much longer the longer text is.
const TIMES: usize = 16;

fn repeated(unit: &str, bytes: usize) -> String {
    unit.repeat(bytes / unit.len())
}

/// Base64 of noise: one piece without a separator for a tokenizer, and hardly a token longer than three characters.
fn base64(bytes: usize) -> String {
    let letters: Vec<char> = ('A'..='Z')
        .chain('a'..='z')
        .chain('0'..='9')
        .chain(['+', '/'])
        .collect();
    let mut random = Random(3);
    (0..bytes).map(|_| random.pick(&letters)).collect()
}

fn letters(bytes: usize) -> String {
    let mut random = Random(5);
    let all: Vec<char> = ('a'..='z').collect();
    (0..bytes).map(|_| random.pick(&all)).collect()
}

/// Prose, code and the rest, as a transcript has them.
fn ordinary(bytes: usize) -> String {
    let mut text = String::new();
    let lists: Vec<Vec<String>> = SCRIPTS.iter().map(|script| script.texts(40)).collect();
    for round in 0.. {
        for list in &lists {
            text.push_str(&list[round % list.len()]);
            if text.len() >= bytes {
                return text;
            }
        }
    }
    text
}

fn time(tokenizer: Tokenizer, text: &str) -> (u32, Duration) {
    let start = Instant::now();
    let tokens = tokenizer.count_text(text);
    (tokens, start.elapsed())
}

#[test]
fn counting_is_linear_whatever_the_text() {
    let texts: [(&str, &dyn Fn(usize) -> String); 10] = [
        ("ordinary", &ordinary),
        ("one letter", &|bytes| repeated("a", bytes)),
        ("spaces", &|bytes| repeated(" ", bytes)),
        ("line feeds", &|bytes| repeated("\n", bytes)),
        ("spaces and line feeds", &|bytes| repeated("   \n", bytes)),
        ("base64", &base64),
        ("random letters", &letters),
        ("one ideograph", &|bytes| repeated("語", bytes)),
        ("accents", &|bytes| repeated("\u{301}", bytes)),
        ("emoji", &|bytes| repeated("👩‍👩‍👧‍👦", bytes)),
    ];
    for tokenizer in [Tokenizer::O200k, Tokenizer::Claude, Tokenizer::Estimate] {
        let (_, loading) = time(tokenizer, "a");
        println!("{tokenizer}: first count {loading:?}");
        for (name, text) in texts {
            let (_, short) = time(tokenizer, &text(LONG / TIMES));
            let (tokens, long) = time(tokenizer, &text(LONG));
            println!("{tokenizer:8} {name:21} {tokens:8} tokens in {long:?}");
            // Quadratic is 256 times, on a machine that may be busy in between.
            let limit = short * 6 * u32::try_from(TIMES).unwrap() + Duration::from_millis(500);
            assert!(long < limit, "{tokenizer} {name}: {short:?} became {long:?}");
        }
    }
}
