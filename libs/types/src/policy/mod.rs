//! Policies.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy;
