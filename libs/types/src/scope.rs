//! Who is asking. Made from the credential by the edge, never from an argument.

use crate::ids::{AccountId, AgentId, KeyId, TenantId};
use serde::{Deserialize, Serialize};

/// What a credential may do. `Operator` manages tenants and has none; `Service` is the services among themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Admin,
    Agent,
    Channel,
    User,
    Viewer,
    Service,
    Operator,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Agent => "agent",
            Self::Channel => "channel",
            Self::User => "user",
            Self::Viewer => "viewer",
            Self::Service => "service",
            Self::Operator => "operator",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [
            Self::Admin,
            Self::Agent,
            Self::Channel,
            Self::User,
            Self::Viewer,
            Self::Service,
            Self::Operator,
        ]
        .into_iter()
        .find(|role| role.as_str() == text)
    }
}

/// An authenticated caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// `None` only for `Operator`, and for `Service` calls that carry no tenant.
    pub tenant: Option<TenantId>,
    pub roles: Vec<Role>,
    pub key: Option<KeyId>,
    /// Stable name within the tenant: scopes idempotency keys and the sessions of a `User`.
    pub subject: String,
    /// A `Channel` credential's own account: it may name only that account's keys.
    pub account: Option<AccountId>,
    /// An `Agent` credential's own agents; empty = all of the tenant's.
    pub agents: Vec<AgentId>,
}

impl Principal {
    pub fn has(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }
}
