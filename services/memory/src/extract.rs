//! Reading a transcript for memories, each entry exactly once per strategy.

use crate::reconcile::reconcile;
use crate::scope;
use crate::service::MemoryServer;
use crate::sessions::SessionView;
use colloquy_llm::{Candidate, CandidateKind, Line, ModelError, Speaker};
use colloquy_proto::convert::optional_id;
use colloquy_proto::v1;
use colloquy_storage::{Extraction, Memory, MemoryFilter, MemoryKind, MemoryOp, WatermarkKey};
use colloquy_types::message::{Message, Part, Provenance, Role};
use colloquy_types::{Entry, EntryBody, Error, MemoryId, Result, Seq, TenantId, UnixMillis};

/// Longest text of one entry that is read, in characters.
const MAX_LINE_CHARS: usize = 4_000;
/// Neighbours a candidate is held against.
const NEIGHBOURS: u32 = 8;

/// Counts of what an extraction did.
#[derive(Default)]
struct Counts {
    added: u32,
    reinforced: u32,
    superseded: u32,
}

/// Reads up to the entry asked for, page by page; each page is one compare-and-set of the watermark.
pub async fn extract(
    server: &MemoryServer,
    tenant: TenantId,
    request: v1::ExtractRequest,
) -> Result<v1::ExtractResponse> {
    let session = server.sessions.get(tenant, &request.session_id).await?;
    let transcript = optional_id(&request.transcript_id)?.unwrap_or(session.transcript);
    let branch = optional_id(&request.branch_id)?.unwrap_or(session.branch);
    let key = WatermarkKey {
        transcript,
        branch,
        strategy: server.extractor.strategy().to_owned(),
    };
    let through = if request.through_seq > 0 {
        Seq(request.through_seq)
    } else {
        Seq(i64::MAX)
    };
    let mut counts = Counts::default();
    let mut at = server.store.watermark(tenant, &key).await?.through;
    while at < through {
        let (mut page, _) = server
            .sessions
            .entries(tenant, &session.id, transcript, branch, at)
            .await?;
        page.retain(|entry| entry.seq <= through);
        let Some(last) = page.last().map(|entry| entry.seq) else {
            break;
        };
        let ops = operations(server, tenant, &session, &page).await?;
        let extraction = Extraction {
            tenant,
            key: key.clone(),
            from: at,
            through: last,
            ops,
        };
        if server.store.apply_extraction(&extraction).await? {
            count(&extraction.ops, &mut counts);
            at = last;
        } else {
            // Somebody else read it: go on from where they are.
            let now_at = server.store.watermark(tenant, &key).await?.through;
            if now_at <= at {
                return Err(Error::new(
                    colloquy_types::Reason::Conflict,
                    "the watermark moved back",
                ));
            }
            at = now_at;
        }
    }
    metrics::counter!("colloquy_memories_added_total").increment(u64::from(counts.added));
    Ok(v1::ExtractResponse {
        extracted_through: at.0,
        added: counts.added,
        reinforced: counts.reinforced,
        superseded: counts.superseded,
    })
}

fn count(ops: &[MemoryOp], counts: &mut Counts) {
    for op in ops {
        match op {
            MemoryOp::Add(_) => counts.added += 1,
            MemoryOp::Reinforce { .. } => counts.reinforced += 1,
            MemoryOp::Supersede { .. } => counts.superseded += 1,
        }
    }
}

async fn operations(
    server: &MemoryServer,
    tenant: TenantId,
    session: &SessionView,
    page: &[Entry],
) -> Result<Vec<MemoryOp>> {
    let lines = lines(page);
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    let candidates = server.extractor.extract(&lines).await.map_err(failed)?;
    let scope = scope::of_session(&session.key).own;
    let filter = MemoryFilter {
        agent: session.key.agent().clone(),
        scopes: vec![scope.clone()],
        kind: None,
        include_ended: false,
    };
    let now = server.store.now().await?;
    // Candidates of this page are neighbours of the later ones too.
    let mut ops: Vec<MemoryOp> = Vec::new();
    for candidate in candidates {
        let mut known = server
            .store
            .search_memories(tenant, &filter, &candidate.text, NEIGHBOURS)
            .await?;
        known.extend(ops.iter().filter_map(|op| match op {
            MemoryOp::Add(memory) | MemoryOp::Supersede { new: memory, .. } => Some(memory.clone()),
            MemoryOp::Reinforce { .. } => None,
        }));
        let memory = memory(candidate, &filter, tenant, now, page, &lines);
        let replaced_here = |op: &MemoryOp| {
            matches!(op, MemoryOp::Reinforce { id, .. } | MemoryOp::Supersede { old: id, .. }
            if ops.iter().any(|earlier| matches!(earlier, MemoryOp::Add(new) | MemoryOp::Supersede { new, .. } if new.id == *id)))
        };
        // What this page itself adds is written once, not added and changed.
        if let Some(op) = reconcile(memory, &known).filter(|op| !replaced_here(op)) {
            ops.push(op);
        }
    }
    Ok(ops)
}

fn memory(
    candidate: Candidate,
    filter: &MemoryFilter,
    tenant: TenantId,
    now: UnixMillis,
    page: &[Entry],
    lines: &[Line],
) -> Memory {
    let sources = candidate
        .lines
        .iter()
        .filter_map(|number| page.get(*number))
        .map(|entry| entry.id)
        .collect();
    // What names no line of a person is nobody's word.
    let named = !candidate.lines.is_empty();
    let from_people = named
        && candidate.lines.iter().all(|number| {
            lines
                .iter()
                .any(|line| line.number == *number && line.speaker == Speaker::Person)
        });
    Memory {
        id: MemoryId::new(),
        tenant,
        agent: filter.agent.clone(),
        scope: filter.scopes[0].clone(),
        kind: kind(candidate.kind),
        text: candidate.text.replace('\0', ""),
        importance: candidate.importance,
        confidence: candidate.confidence,
        provenance: if from_people {
            Provenance::Owner
        } else {
            Provenance::Untrusted
        },
        sources,
        valid_from: now,
        valid_to: None,
        supersedes: None,
        recall_count: 0,
        created: now,
        updated: now,
    }
}

fn kind(kind: CandidateKind) -> MemoryKind {
    match kind {
        CandidateKind::Preference => MemoryKind::Preference,
        CandidateKind::Profile => MemoryKind::Profile,
        CandidateKind::Decision => MemoryKind::Decision,
        CandidateKind::Event => MemoryKind::Event,
        CandidateKind::Task => MemoryKind::Task,
        CandidateKind::Knowledge => MemoryKind::Knowledge,
    }
}

/// What can be read of a page; a line's number is its place in the page.
fn lines(page: &[Entry]) -> Vec<Line> {
    let line = |(number, entry): (usize, &Entry)| match &entry.body {
        EntryBody::Message(message) => line(number, message),
        _ => None,
    };
    page.iter().enumerate().filter_map(line).collect()
}

fn line(number: usize, message: &Message) -> Option<Line> {
    let speaker = match (message.role, message.provenance) {
        (Role::User, Provenance::Owner) => Speaker::Person,
        (Role::Assistant, _) => Speaker::Agent,
        (Role::System, _) => return None,
        _ => Speaker::Untrusted,
    };
    let own = message.text();
    let results = message
        .tool_results()
        .flat_map(|result| &result.parts)
        .filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        });
    let text = std::iter::once(own.as_str())
        .chain(results)
        .collect::<Vec<_>>()
        .join("\n");
    let text: String = text.chars().take(MAX_LINE_CHARS).collect();
    let name = message.author.name.clone();
    (!text.trim().is_empty()).then_some(Line {
        number,
        speaker,
        name,
        text,
    })
}

fn failed(error: ModelError) -> Error {
    Error::unavailable(format!("the extraction model: {error}"))
}
