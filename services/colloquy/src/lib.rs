//! The one binary: servers, the operator's commands, the demo.
//!
//! Owns the assembly: which services share a process, on which stores. `wiring` is the only file that names
//! concrete backends. To add a verb: a file and its arm in [`app`].

/// A line on standard output. Whoever read it may have gone (`colloquy dev | head`): no reason to die.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

pub mod app;
pub mod assemble;
mod check;
pub mod cli;
pub mod config;
mod credentials;
pub mod demo;
mod dev;
pub mod embedded;
mod ops;
mod serve;
pub mod wiring;

pub use config::Config;
