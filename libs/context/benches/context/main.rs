//! What a build costs: `cargo bench -p colloquy-context`.
//!
//! Prints times by stage, allocations and instructions per message, and how they grow. Times are the least of many
//! rounds and depend on the machine; allocations and instructions repeat. Instructions need valgrind, and say `skipped` without it;
//! the recorded session is used where the shared data is. Nothing here fails a run.
//!
//! To add a scenario: a function in `scenario.rs` and a line in [`scenario::all`].

#![allow(
    clippy::unwrap_used,
    reason = "a measurement that cannot go on has nothing to report"
)]

mod instructions;
mod measure;
mod recorded;
mod scenario;

use colloquy_context::{Format, Stage, Tokenizer, build};
use scenario::Scenario;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::hint::black_box;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const STAGES: [Stage; 9] = [
    Stage::Window,
    Stage::HistoryMode,
    Stage::Limit,
    Stage::Prune,
    Stage::Repair,
    Stage::Recall,
    Stage::Project,
    Stage::Validate,
    Stage::Receipt,
];

/// The stages that end with the view and with the provider's bytes.
const VIEW: usize = 5;
const BYTES: usize = 6;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, name, format, ..] = arguments.as_slice()
        && flag == instructions::FLAG
    {
        instructions::build_once(name, format.parse().unwrap());
        return;
    }
    for scenario in scenario::all(Tokenizer::O200k) {
        report(&scenario);
    }
    growth();
    counting();
}

fn formats(scenario: &Scenario) -> Vec<Format> {
    let is_supported = |format: &Format| build(&scenario.input(*format)).is_ok();
    Format::ALL.into_iter().filter(is_supported).collect()
}

fn report(scenario: &Scenario) {
    println!(
        "\n{}: {} messages, {} tokens, window {}",
        scenario.name,
        scenario.messages(),
        scenario.tokens(),
        scenario.window
    );
    print!("{:>17} {:>8} {:>8} {:>8}", "µs to the", "view", "bytes", "end");
    STAGES
        .iter()
        .for_each(|stage| print!(" {:>11}", format!("{stage:?}")));
    println!(" | per message: allocations to the view, all; instructions");
    for format in formats(scenario) {
        let cost = measure::cost(scenario, format);
        print_times(format, &cost.micros);
        let allocations = |until: usize| -> f64 {
            cost.allocations[..=until].iter().sum::<usize>() as f64 / scenario.messages() as f64
        };
        print!(
            " | {:.2} {:.2}; ",
            allocations(VIEW),
            allocations(STAGES.len() - 1)
        );
        match instructions::per_message(scenario, format) {
            Some(count) => println!("{count:.0}"),
            None => println!("skipped"),
        }
    }
}

/// To the repaired view, to the provider's bytes, all together, and by stage with its share.
fn print_times(format: Format, micros: &[f64]) {
    let until = |last: usize| -> f64 { micros[..=last].iter().sum() };
    let (view, bytes, all) = (until(VIEW), until(BYTES), until(STAGES.len() - 1));
    print!("{:>17} {view:>8.0} {bytes:>8.0} {all:>8.0}", format.name());
    for micros in micros {
        print!(" {:>11}", format!("{micros:.0} {:>3.0}%", micros * 100.0 / all));
    }
}

/// Twice the window is twice the time; a longer transcript before it costs nothing.
fn growth() {
    println!("\ngrowth (anthropic), µs for a build and per message");
    for messages in [250, 500, 1_000, 2_000, 4_000] {
        let scenario = scenario::window(messages, 0, Tokenizer::Estimate);
        let micros = measure::total(&scenario, Format::Anthropic);
        println!(
            "  window of {messages:>5} messages: {micros:>7.0}  {:.2}",
            micros / messages as f64
        );
    }
    for summarized in [0, 10_000, 100_000] {
        let scenario = scenario::window(1_000, summarized, Tokenizer::Estimate);
        let micros = measure::total(&scenario, Format::Anthropic);
        println!("  window of  1000 messages behind {summarized:>6} summarized ones: {micros:>7.0}");
    }
}

fn counting() {
    println!("\ncounting 1 MB of text");
    let text = scenario::prose(1 << 20);
    for tokenizer in [Tokenizer::O200k, Tokenizer::Cl100k, Tokenizer::Estimate] {
        black_box(tokenizer.count_text("warm"));
        let started = Instant::now();
        let tokens = black_box(tokenizer.count_text(&text));
        let millis = started.elapsed().as_secs_f64() * 1_000.0;
        println!("  {:<9} {tokens:>7} tokens in {millis:>6.1} ms", tokenizer.name());
    }
}
