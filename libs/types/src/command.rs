//! Chat commands.
