//! Session keys (being written).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionKey;
