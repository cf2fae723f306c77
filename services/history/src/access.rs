//! Which of a tenant's sessions a caller may see. What it may not see does not exist for it.

use colloquy_storage::Session;
use colloquy_types::key::Place;
use colloquy_types::{CallerRole, Error, Principal, Result, SessionKey};

const WHOLE_TENANT: [CallerRole; 3] = [CallerRole::Admin, CallerRole::Viewer, CallerRole::Service];

/// Whether the caller may see sessions under the key.
pub fn may_see(principal: &Principal, key: &SessionKey) -> bool {
    if WHOLE_TENANT.into_iter().any(|role| principal.has(role)) {
        return true;
    }
    if principal.has(CallerRole::Agent) {
        return principal.agents.is_empty() || principal.agents.contains(key.agent());
    }
    principal.has(CallerRole::User) && is_own(key, &principal.subject)
}

/// Whether the key is a person's own, by the subject of their credential.
fn is_own(key: &SessionKey, subject: &str) -> bool {
    match key.place() {
        Place::Chat { channel, chat, .. } => channel == "ws" && chat == subject,
        Place::App { user, .. } => user == subject,
        Place::Api(principal) => principal == subject,
        _ => false,
    }
}

/// The session, if there is one and the caller may see it.
///
/// # Errors
/// `NOT_FOUND`, the same for both.
pub fn visible(principal: &Principal, session: Option<Session>, asked: &str) -> Result<Session> {
    session
        .filter(|session| may_see(principal, &session.key))
        .ok_or_else(|| Error::not_found("session", asked))
}

/// For lists: `Some(subject)` when the caller sees only their own sessions.
pub fn own_only(principal: &Principal) -> Option<&str> {
    let wider = WHOLE_TENANT
        .into_iter()
        .chain([CallerRole::Agent])
        .any(|role| principal.has(role));
    (!wider).then_some(principal.subject.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(role: CallerRole, subject: &str) -> Principal {
        Principal {
            tenant: None,
            roles: vec![role],
            key: None,
            subject: subject.into(),
            account: None,
            agents: vec![],
        }
    }

    #[test]
    fn a_person_sees_only_their_own_sessions() {
        let key = |text: &str| SessionKey::parse(text).unwrap();
        let ann = caller(CallerRole::User, "ann");
        assert!(may_see(&ann, &key("agent:a:ws:direct:ann")));
        assert!(may_see(&ann, &key("agent:a:app:ann:s1")));
        assert!(!may_see(&ann, &key("agent:a:ws:direct:bob")));
        assert!(!may_see(&ann, &key("agent:a:telegram:direct:ann")));
        assert!(may_see(
            &caller(CallerRole::Viewer, "ann"),
            &key("agent:a:telegram:direct:ann")
        ));
    }

    #[test]
    fn a_workers_credential_can_be_bound_to_agents() {
        let mut worker = caller(CallerRole::Agent, "w");
        assert!(may_see(&worker, &SessionKey::parse("agent:a:main").unwrap()));
        worker.agents = vec![colloquy_types::AgentId::parse("b").unwrap()];
        assert!(!may_see(&worker, &SessionKey::parse("agent:a:main").unwrap()));
    }
}
