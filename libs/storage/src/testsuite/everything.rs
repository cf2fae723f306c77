//! A tenant that has a row of everything, for tests of what another tenant can see of it.

use super::compaction;
use super::fixture::*;
use crate::*;
use colloquy_types::message::Part;
use colloquy_types::{
    AccountId, BranchId, CallerRole, ChannelName, DeliveryId, EntryId, KeyId, MemoryId, Provenance, Seq,
    TenantId, TranscriptId, UnixMillis,
};

/// Writes at least one row into every table with a tenant; the tenant itself must be there.
pub async fn write_everything(f: &Fixture, tenant: TenantId) {
    control(f, tenant).await;
    conversation(f, tenant).await;
    memories(f, tenant).await;
}

async fn control(f: &Fixture, tenant: TenantId) {
    let key = ApiKey {
        id: KeyId::new(),
        tenant,
        secret_hash: vec![1],
        name: "workers".to_owned(),
        roles: vec![CallerRole::Agent],
        subject: "workers".to_owned(),
        account: None,
        agents: vec![],
        created: UnixMillis(0),
        revoked: None,
    };
    f.store.create_key(&key).await.unwrap();
    let default = Agent {
        tenant,
        id: agent("default"),
        display_name: "Helper".to_owned(),
        profile: "goclaw".to_owned(),
        overrides_json: "{}".to_owned(),
        version: 1,
        created: UnixMillis(0),
        updated: UnixMillis(0),
    };
    f.store.put_agent(&default).await.unwrap();
    let account = ChannelAccount {
        tenant,
        id: AccountId::random(),
        channel: ChannelName::parse("telegram").unwrap(),
        agent: agent("default"),
        name: "bot".to_owned(),
        secret: "s3cret".to_owned(),
        settings_json: "{}".to_owned(),
        created: UnixMillis(0),
    };
    f.store.put_account(&account).await.unwrap();
}

/// Answered turns, a delivery, a compaction under way, and a turn under way with something staged and a context built.
async fn conversation(f: &Fixture, tenant: TenantId) {
    let talk = f.talk_of(tenant, "default", "1");
    for text in ["one", "two"] {
        talk.exchange(text, "reply").await;
    }
    talk.say("three").await;
    let turn = talk.claim().await;
    let mut commit = talk.commit_input(&turn, "reply");
    commit.deliveries.push(NewDelivery {
        id: DeliveryId::new(),
        route: route("1"),
        part: 0,
        parts: vec![Part::text("reply")],
    });
    f.store.commit(&commit).await.unwrap();
    let run = compaction::run(&talk).await;
    let chunk = Chunk {
        index: 0,
        from: Seq(1),
        to: Seq(2),
        summary: "one".to_owned(),
    };
    f.store
        .save_chunk(tenant, run.snapshot.session, run.job, run.marker, &chunk)
        .await
        .unwrap();
    talk.say("four").await;
    let turn = talk.run().await;
    talk.stage(&turn, 1, &["a step"]).await.unwrap();
    counts(f, tenant, &turn).await;
}

/// The receipt of a build, and how far its counts are off.
async fn counts(f: &Fixture, tenant: TenantId, turn: &ClaimedTurn) {
    let receipt = NewReceipt {
        tenant,
        turn: turn.turn,
        fence: turn.fence,
        marks: None,
        body: b"{}".to_vec(),
    };
    f.store.keep_receipt(&receipt).await.unwrap();
    let key = CalibrationKey {
        model: "gpt-4o".to_owned(),
        tokenizer: "o200k".to_owned(),
    };
    assert!(f.store.put_calibration(tenant, &key, b"{}", 0).await.unwrap());
}

async fn memories(f: &Fixture, tenant: TenantId) {
    let memory = Memory {
        id: MemoryId::new(),
        tenant,
        agent: agent("default"),
        scope: MemoryScope::Agent,
        kind: MemoryKind::Preference,
        text: "likes tea".to_owned(),
        importance: 0.5,
        confidence: 0.5,
        provenance: Provenance::Owner,
        sources: vec![EntryId::new()],
        valid_from: UnixMillis(1),
        valid_to: None,
        supersedes: None,
        recall_count: 0,
        created: UnixMillis(0),
        updated: UnixMillis(0),
    };
    let key = WatermarkKey {
        transcript: TranscriptId(tenant.0), // any id does
        branch: BranchId(tenant.0),
        strategy: "rules-1".to_owned(),
    };
    let extraction = Extraction {
        tenant,
        key,
        from: Seq(0),
        through: Seq(1),
        ops: vec![MemoryOp::Add(memory)],
    };
    assert!(f.store.apply_extraction(&extraction).await.unwrap());
}
