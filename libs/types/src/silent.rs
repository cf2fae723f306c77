//! Silent replies.
