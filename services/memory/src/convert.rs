//! Rows ⇄ wire.

use colloquy_proto::convert::timestamp;
use colloquy_proto::v1;
use colloquy_storage::{Memory, MemoryKind, MemoryScope};

pub fn kind(kind: v1::MemoryKind) -> Option<MemoryKind> {
    Some(match kind {
        v1::MemoryKind::Unspecified => return None,
        v1::MemoryKind::Preference => MemoryKind::Preference,
        v1::MemoryKind::Profile => MemoryKind::Profile,
        v1::MemoryKind::Decision => MemoryKind::Decision,
        v1::MemoryKind::Event => MemoryKind::Event,
        v1::MemoryKind::Task => MemoryKind::Task,
        v1::MemoryKind::Knowledge => MemoryKind::Knowledge,
    })
}

fn wire_kind(kind: MemoryKind) -> v1::MemoryKind {
    match kind {
        MemoryKind::Preference => v1::MemoryKind::Preference,
        MemoryKind::Profile => v1::MemoryKind::Profile,
        MemoryKind::Decision => v1::MemoryKind::Decision,
        MemoryKind::Event => v1::MemoryKind::Event,
        MemoryKind::Task => v1::MemoryKind::Task,
        MemoryKind::Knowledge => v1::MemoryKind::Knowledge,
    }
}

pub fn memory(memory: Memory) -> v1::Memory {
    let scope = match &memory.scope {
        MemoryScope::Agent => v1::MemoryScope::Agent,
        MemoryScope::Person(_) => v1::MemoryScope::Person,
        MemoryScope::Group(_) => v1::MemoryScope::Group,
    };
    v1::Memory {
        memory_id: memory.id.to_string(),
        agent: memory.agent.to_string(),
        scope: scope.into(),
        owner: memory.scope.owner().to_owned(),
        kind: wire_kind(memory.kind).into(),
        text: memory.text,
        importance: memory.importance,
        confidence: memory.confidence,
        provenance: v1::Provenance::from(memory.provenance).into(),
        entry_ids: memory.sources.iter().map(ToString::to_string).collect(),
        valid_from: Some(timestamp(memory.valid_from)),
        valid_to: memory.valid_to.map(timestamp),
        supersedes: memory.supersedes.map(|id| id.to_string()).unwrap_or_default(),
        recall_count: memory.recall_count,
        created_at: Some(timestamp(memory.created)),
        updated_at: Some(timestamp(memory.updated)),
    }
}
