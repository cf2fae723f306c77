//! A new candidate against what is known: add, confirm, replace, or ignore.

use crate::rank::similarity;
use colloquy_storage::terms::terms;
use colloquy_storage::{Memory, MemoryKind, MemoryOp};
use colloquy_types::message::Provenance;

/// Share of common words from which two memories say the same.
const SAME: f64 = 0.8;
/// Share from which a newer preference or profile fact replaces the older one.
const REPLACES: f64 = 0.5;

/// What becomes of a candidate, given its nearest neighbours in the same scope. `None` = ignored.
///
/// Content that cannot be trusted never confirms or replaces anything: it can only be added, quarantined.
pub fn reconcile(candidate: Memory, neighbours: &[Memory]) -> Option<MemoryOp> {
    let words = terms(&candidate.text);
    if words.is_empty() {
        return None;
    }
    let nearest = neighbours
        .iter()
        .filter(|known| known.scope == candidate.scope && known.valid_to.is_none())
        .map(|known| (similarity(&words, &terms(&known.text)), known))
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    let untrusted = candidate.provenance == Provenance::Untrusted;
    match nearest {
        Some((near, _)) if near >= SAME && untrusted => None,
        Some((near, known)) if near >= SAME => Some(MemoryOp::Reinforce {
            id: known.id,
            importance: candidate.importance,
            confidence: candidate.confidence,
            sources: candidate.sources,
        }),
        Some((near, known)) if near >= REPLACES && !untrusted && replaceable(&candidate, known) => {
            let mut new = candidate;
            new.supersedes = Some(known.id);
            Some(MemoryOp::Supersede { old: known.id, new })
        }
        _ => Some(MemoryOp::Add(candidate)),
    }
}

/// There is one current answer to "where do you live"; there are many events.
fn replaceable(candidate: &Memory, known: &Memory) -> bool {
    candidate.kind == known.kind && matches!(candidate.kind, MemoryKind::Preference | MemoryKind::Profile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use colloquy_storage::MemoryScope;
    use colloquy_types::{AgentId, MemoryId, TenantId, UnixMillis};

    fn memory(text: &str, kind: MemoryKind, provenance: Provenance) -> Memory {
        Memory {
            id: MemoryId::new(),
            tenant: TenantId::new(),
            agent: AgentId::parse("a").unwrap(),
            scope: MemoryScope::Person("telegram:7".into()),
            kind,
            text: text.into(),
            importance: 0.5,
            confidence: 0.8,
            provenance,
            sources: vec![],
            valid_from: UnixMillis(0),
            valid_to: None,
            supersedes: None,
            recall_count: 0,
            created: UnixMillis(0),
            updated: UnixMillis(0),
        }
    }

    #[test]
    fn the_same_again_confirms_and_a_newer_answer_replaces() {
        let known = memory(
            "I live in the city of Oslo",
            MemoryKind::Profile,
            Provenance::Owner,
        );
        let again = memory(
            "I live in the city of Oslo!",
            MemoryKind::Profile,
            Provenance::Owner,
        );
        let moved = memory(
            "I live in the city of Bergen",
            MemoryKind::Profile,
            Provenance::Owner,
        );
        let known = [known];
        assert!(matches!(
            reconcile(again, &known),
            Some(MemoryOp::Reinforce { .. })
        ));
        match reconcile(moved, &known) {
            Some(MemoryOp::Supersede { old, new }) => {
                assert_eq!((old, new.supersedes), (known[0].id, Some(known[0].id)));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn untrusted_content_replaces_nothing() {
        let known = [memory(
            "I live in the city of Oslo",
            MemoryKind::Profile,
            Provenance::Owner,
        )];
        let claim = memory(
            "I live in the city of Bergen",
            MemoryKind::Profile,
            Provenance::Untrusted,
        );
        assert!(matches!(reconcile(claim, &known), Some(MemoryOp::Add(_))));
    }

    #[test]
    fn two_events_are_two_memories() {
        let known = [memory(
            "We met the crew at station four",
            MemoryKind::Event,
            Provenance::Owner,
        )];
        let other = memory(
            "We met the crew at station nine",
            MemoryKind::Event,
            Provenance::Owner,
        );
        assert!(matches!(reconcile(other, &known), Some(MemoryOp::Add(_))));
    }
}
