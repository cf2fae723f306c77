//! Who is asking. Made from the credential by the edge, never from an argument.

use crate::SessionKey;
use crate::ids::{AccountId, AgentId, KeyId, TenantId};
use crate::key::Place;
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

    /// Whether the tenant's sessions under the key exist for the caller. What it may not see answers `NOT_FOUND`.
    pub fn may_see(&self, key: &SessionKey) -> bool {
        self.may_serve(key.agent()) || self.owns(key)
    }

    /// Whether everything of the agent exists for the caller: all sessions, memories and jobs. A worker's key can be bound
    /// to agents.
    pub fn may_serve(&self, agent: &AgentId) -> bool {
        let worker = self.has(Role::Agent) && (self.agents.is_empty() || self.agents.contains(agent));
        worker || self.sees_whole_tenant()
    }

    /// Whether the key is the person's own, by the subject of their credential.
    pub fn owns(&self, key: &SessionKey) -> bool {
        self.has(Role::User)
            && match key.place() {
                Place::Chat { channel, chat, .. } => channel == "ws" && *chat == self.subject,
                Place::App { user, .. } => *user == self.subject,
                Place::Api(principal) => *principal == self.subject,
                _ => false,
            }
    }

    /// For lists: the subject when the caller sees only their own sessions.
    pub fn own_only(&self) -> Option<&str> {
        (!self.sees_whole_tenant() && !self.has(Role::Agent)).then_some(self.subject.as_str())
    }

    /// Whether no session, memory or job of the tenant is hidden from the caller.
    pub fn sees_whole_tenant(&self) -> bool {
        [Role::Admin, Role::Viewer, Role::Service]
            .into_iter()
            .any(|role| self.has(role))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(roles: &[Role], subject: &str) -> Principal {
        Principal {
            tenant: None,
            roles: roles.to_vec(),
            key: None,
            subject: subject.into(),
            account: None,
            agents: vec![],
        }
    }

    fn key(text: &str) -> SessionKey {
        SessionKey::parse(text).unwrap()
    }

    #[test]
    fn a_person_sees_only_their_own_sessions() {
        let ann = caller(&[Role::User], "ann");
        assert!(ann.may_see(&key("agent:a:ws:direct:ann")));
        assert!(ann.may_see(&key("agent:a:app:ann:s1")));
        assert!(!ann.may_see(&key("agent:a:ws:direct:bob")));
        assert!(!ann.may_see(&key("agent:a:telegram:direct:ann")));
        assert_eq!(ann.own_only(), Some("ann"));
        assert!(!caller(&[Role::Channel], "ann").may_see(&key("agent:a:ws:direct:ann")));
    }

    #[test]
    fn who_sees_all_does_not_own_all() {
        let viewer = caller(&[Role::Viewer, Role::User], "ann");
        assert!(viewer.may_see(&key("agent:a:telegram:direct:ann")));
        assert_eq!(viewer.own_only(), None);
        assert!(!viewer.owns(&key("agent:a:ws:direct:bob")));
        assert!(viewer.owns(&key("agent:a:ws:direct:ann")));
    }

    #[test]
    fn a_workers_credential_can_be_bound_to_agents() {
        let mut worker = caller(&[Role::Agent], "w");
        assert!(worker.may_see(&key("agent:a:main")));
        worker.agents = vec![AgentId::parse("b").unwrap()];
        assert!(!worker.may_see(&key("agent:a:main")));
    }
}
