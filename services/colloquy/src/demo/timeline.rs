//! What a person reads while the demo runs.

use super::Summary;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fmt::Display;
use std::time::Instant;

/// Prints one line per event, or nothing. How far it is stands below on a terminal.
#[derive(Clone)]
pub struct Timeline {
    shown: bool,
    start: Instant,
    bar: ProgressBar,
}

/// Takes the bar away when it is dropped.
pub struct Progress(ProgressBar);

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

impl Timeline {
    pub fn new(shown: bool) -> Self {
        Self {
            shown,
            start: Instant::now(),
            bar: ProgressBar::hidden(),
        }
    }

    /// Shows a bar of so many steps on standard error, if that is a terminal.
    pub fn progress(&self, what: &'static str, steps: usize) -> Progress {
        let style = ProgressStyle::with_template("{bar:40} {pos} of {len} {msg}, {eta} left")
            .expect("the template is a constant that parses");
        self.bar.set_style(style);
        self.bar.set_message(what);
        self.bar.set_length(steps as u64);
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
        Progress(self.bar.clone())
    }

    /// One step of the bar is done.
    pub fn step(&self) {
        self.bar.inc(1);
    }

    fn print(&self, line: &str) {
        self.bar.suspend(|| say!("{line}"));
    }

    /// A heading.
    pub fn title(&self, text: &str) {
        if self.shown {
            self.print(&format!("\n{text}"));
        }
    }

    /// One event: when, what, who, and the details.
    pub fn event(&self, what: &str, who: impl Display, details: impl Display) {
        if self.shown {
            let seconds = self.start.elapsed().as_secs_f64();
            self.print(&format!("{seconds:7.2}s  {what:<10} {who:<14} {details}"));
        }
    }

    pub fn summary(&self, summary: &Summary) {
        let context = &summary.context;
        say!("\nSummary");
        let line = |name: &str, value: String| say!("  {name:<22} {value}");
        line("messages accepted", summary.accepted.to_string());
        line(
            "turns answered",
            format!("{} ({} committed)", summary.turns, summary.committed),
        );
        line("entries stored", summary.entries.to_string());
        line("replies delivered", summary.deliveries.to_string());
        line(
            "contexts built",
            format!(
                "{}: {} tokens in reach, {} sent; {} results trimmed, {} cleared, {} repairs",
                context.built,
                context.tokens_in,
                context.tokens_out,
                context.trimmed,
                context.cleared,
                context.repaired
            ),
        );
        line("compactions", summary.compactions.to_string());
        line("memories", summary.memories.to_string());
        line(
            "read back",
            format!(
                "{} lost, {} doubled, {} out of order, {} invalid contexts",
                summary.lost, summary.duplicated, summary.out_of_order, context.invalid
            ),
        );
        line("time", format!("{:.1} s", summary.elapsed_ms as f64 / 1_000.0));
        say!(
            "\n{}",
            if summary.is_clean() {
                "Everything that was said is there, once and in order."
            } else {
                "Something is wrong: see the counts above."
            }
        );
    }
}

/// The beginning of a text on one line.
pub fn excerpt(text: &str, chars: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= chars {
        line
    } else {
        format!("{}…", line.chars().take(chars).collect::<String>())
    }
}
