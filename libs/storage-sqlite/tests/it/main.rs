//! The conformance suite on a file and in memory, and what is SQLite's own.

mod backend;
mod file;
mod plans;

mod on_a_file {
    use super::backend::file_store;
    colloquy_storage::conformance!(file_store);
}

mod in_memory {
    use super::backend::memory_store;
    colloquy_storage::conformance!(memory_store);
}
