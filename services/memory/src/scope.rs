//! Who may ever see a memory. One function decides, for writes and reads.

use colloquy_storage::MemoryScope;
use colloquy_types::SessionKey;
use colloquy_types::key::{ChatKind, Place};

/// Scopes of a session: where what is said there belongs, and what may be recalled there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionScopes {
    /// Where new memories go.
    pub own: MemoryScope,
    /// What a recall may see.
    pub visible: Vec<MemoryScope>,
}

/// A person's memories only in their direct sessions, a group's only in that group, the agent's everywhere.
pub fn of_session(key: &SessionKey) -> SessionScopes {
    let own = match key.place() {
        Place::Chat {
            channel,
            kind: ChatKind::Direct,
            chat,
            ..
        } => MemoryScope::Person(format!("{channel}:{chat}")),
        // One person's corner of a room is theirs and not the room's.
        Place::Chat {
            channel,
            user: Some(user),
            ..
        } => MemoryScope::Person(format!("{channel}:{user}")),
        Place::Chat { channel, chat, .. } => MemoryScope::Group(format!("{channel}:{chat}")),
        Place::Person(person) => MemoryScope::Person(format!("person:{person}")),
        Place::App { user, .. } => MemoryScope::Person(format!("app:{user}")),
        Place::Api(principal) => MemoryScope::Person(format!("api:{principal}")),
        Place::Peer {
            subject: Some(subject),
            ..
        } => MemoryScope::Person(format!("person:{subject}")),
        Place::Team { team, chat } => MemoryScope::Group(format!("team:{team}:{chat}")),
        // Several people may write there: nobody's own.
        Place::Main => MemoryScope::Group("main".into()),
        _ => MemoryScope::Agent,
    };
    let mut visible = vec![MemoryScope::Agent];
    if own != MemoryScope::Agent {
        visible.push(own.clone());
    }
    SessionScopes { own, visible }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes(key: &str) -> SessionScopes {
        of_session(&SessionKey::parse(key).unwrap())
    }

    #[test]
    fn a_persons_memories_do_not_reach_a_group() {
        let direct = scopes("agent:a:telegram:direct:7");
        let group = scopes("agent:a:telegram:group:-5");
        assert_eq!(direct.own, MemoryScope::Person("telegram:7".into()));
        assert!(!group.visible.contains(&direct.own));
        assert!(!direct.visible.contains(&group.own));
        assert!(direct.visible.contains(&MemoryScope::Agent) && group.visible.contains(&MemoryScope::Agent));
    }

    #[test]
    fn equal_ids_on_two_channels_are_two_people() {
        assert_ne!(
            scopes("agent:a:telegram:direct:7").own,
            scopes("agent:a:discord:direct:7").own
        );
    }

    #[test]
    fn a_session_shared_by_all_is_nobodys_own() {
        assert_eq!(scopes("agent:a:main").own, MemoryScope::Group("main".into()));
    }
}
