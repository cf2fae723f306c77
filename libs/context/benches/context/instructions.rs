//! Instructions of one build, counted by valgrind in a process of its own.

use crate::scenario::{self, Scenario};
use colloquy_context::{Built, Format, Tokenizer, build};
use std::hint::black_box;
use std::process::Command;

/// What this program is called with to build once and no more.
pub const FLAG: &str = "--build-once";
/// The function whose instructions are counted, as valgrind matches it.
const COUNTED: &str = "*counted_build*";

/// Instructions per message, those of setting up left out; none where valgrind cannot be run.
pub fn per_message(scenario: &Scenario, format: Format) -> Option<f64> {
    let program = std::env::current_exe().ok()?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--toggle-collect={COUNTED}"))
        .arg(program)
        .args([FLAG, scenario.name, format.name()])
        .output()
        .ok()?;
    let report = String::from_utf8_lossy(&output.stderr);
    let line = report.lines().find(|line| line.contains("Collected :"))?;
    let count: f64 = line.rsplit(' ').next()?.parse().ok()?;
    (output.status.success() && count > 0.0).then(|| count / scenario.messages() as f64)
}

/// Builds the scenario once. Its counts are estimated: parsing a vocabulary takes minutes there.
pub fn build_once(name: &str, format: Format) {
    let scenario = scenario::all(Tokenizer::Estimate)
        .find(|scenario| scenario.name == name)
        .unwrap();
    black_box(counted_build(&scenario, format));
}

#[inline(never)]
fn counted_build(scenario: &Scenario, format: Format) -> Built<'_> {
    build(&scenario.input(format)).unwrap()
}
