//! The conformance suite that every backend runs on itself.
