//! The operations that every message takes find their rows by an index, also at 100,000 sessions. Counted where it happens:
//! most statements run inside functions, under the policies.

use super::backend::{empty_database, fixture, store};
use colloquy_storage::testsuite::populate;
use colloquy_storage::{
    ClaimRequest, Claimed, CommitInput, Deliveries, Order, Release, RunnableScan, StageInput, StopScope,
    Transcripts, Turns, Usage,
};
use colloquy_storage_pg::PgStore;
use colloquy_types::message::Message;
use colloquy_types::queue::Outcome;
use colloquy_types::{AccountId, EntryBody, EntryId, NewEntry, SessionId, TenantId};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::collections::BTreeMap;
use uuid::Uuid;

const SESSIONS: i64 = 100_000;
const TABLES: [&str; 6] = ["sessions", "branches", "entries", "turns", "inbox", "deliveries"];
/// Enough for a prepared statement to choose its lasting plan.
const ROUNDS: usize = 8;

async fn fill(owner: &mut PgConnection, tenant: TenantId) {
    let statements = [
        "INSERT INTO history.sessions (tenant, id, key, agent, kind, transcript, branch, created, updated) \
         SELECT $1, gen_random_uuid(), 'k' || n, 'a', 'direct', gen_random_uuid(), gen_random_uuid(), n, n \
         FROM generate_series(1, $2) n",
        "INSERT INTO history.branches (tenant, transcript, branch, session, head) \
         SELECT tenant, transcript, branch, id, 3 FROM history.sessions WHERE tenant = $1 AND $2 > 0",
        "INSERT INTO history.entries (tenant, transcript, branch, seq, id, kind, body, tokens, tokenizer, at) \
         SELECT tenant, transcript, branch, seq, gen_random_uuid(), 'label', convert_to('{\"type\":\"label\",\"label\":\"\"}', 'UTF8'), 1, 't', 1 \
         FROM history.branches, generate_series(1, 3) seq WHERE tenant = $1 AND $2 > 0",
        "INSERT INTO history.turns (tenant, id, session, transcript, branch, ord, state, lane, mode, merge_key, opened, \
         due, policy, lease_ms, max_attempts, max_turn_ms, max_concurrent, retry_ms, resume_continue, ended) \
         SELECT tenant, gen_random_uuid(), id, transcript, branch, 1, 'committed', 'user', 'queue', '{}', 1, 1, 'p', 1, \
         1, 1, 1, 1, false, 1 FROM history.sessions WHERE tenant = $1 AND $2 > 0",
        "INSERT INTO history.inbox (tenant, id, dedupe, hash, session, transcript, turn, ord, sender, message, tokens, \
         tokenizer, placement, position, accepted, outcome) \
         SELECT tenant, gen_random_uuid(), id::text, '', session, transcript, id, 1, 's', '{}', 1, 't', 'QUEUED', 0, 1, \
         'ANSWERED' FROM history.turns WHERE tenant = $1 AND $2 > 0",
        "INSERT INTO history.deliveries (tenant, id, turn, session, account, route, part, parts, due, ended) \
         SELECT tenant, gen_random_uuid(), id, session, 'acc', '{}', 0, '[]', 1, 1 FROM history.turns \
         WHERE tenant = $1 AND $2 > 0",
    ];
    for sql in statements {
        sqlx::query(sql)
            .bind(tenant.0)
            .bind(SESSIONS)
            .execute(&mut *owner)
            .await
            .unwrap();
    }
    for table in TABLES {
        let analyze = format!("ANALYZE history.{table}");
        sqlx::query(AssertSqlSafe(analyze))
            .execute(&mut *owner)
            .await
            .unwrap();
    }
}

/// A waiting turn with a message in some of the sessions.
async fn wake(owner: &mut PgConnection, tenant: TenantId) -> Vec<SessionId> {
    let sql = "WITH woken AS (INSERT INTO history.turns (tenant, id, session, transcript, branch, ord, state, lane, mode, \
               merge_key, opened, due, policy, lease_ms, max_attempts, max_turn_ms, max_concurrent, retry_ms, resume_continue) \
               SELECT s.tenant, gen_random_uuid(), s.id, s.transcript, s.branch, 2, 'waiting', 'user', 'queue', '{}', 1, 1, \
               'p', 60000, 3, 600000, 1, 0, false FROM history.sessions s WHERE s.tenant = $1 AND s.fence = 0 LIMIT $2 \
               RETURNING *) \
               INSERT INTO history.inbox (tenant, id, dedupe, hash, session, transcript, turn, ord, sender, message, tokens, \
               tokenizer, placement, position, accepted) \
               SELECT tenant, gen_random_uuid(), 'woken ' || id, '', session, transcript, id, 2, 's', $3, 1, 't', 'QUEUED', \
               0, 1 FROM woken RETURNING session";
    let message = serde_json::to_vec(&Message::user("hi")).unwrap();
    let sessions: Vec<Uuid> = sqlx::query_scalar(sql)
        .bind(tenant.0)
        .bind(i64::try_from(2 * ROUNDS).unwrap())
        .bind(message)
        .fetch_all(owner)
        .await
        .unwrap();
    sessions.into_iter().map(SessionId).collect()
}

fn entry() -> NewEntry {
    NewEntry {
        id: EntryId::new(),
        body: EntryBody::Message(Message::user("hello")),
        tokens: 1,
        tokenizer: "t".to_owned(),
    }
}

/// Claim to commit of one session, and to release of another.
async fn turn(store: &PgStore, tenant: TenantId, session: SessionId, committed: bool) {
    let request = ClaimRequest {
        tenant,
        session,
        worker: "w".to_owned(),
        agents: vec![],
        offer_ms: 1_000,
        lease_ms: None,
    };
    let Claimed::Turn(held) = store.claim(&request).await.unwrap() else {
        panic!("no turn");
    };
    let (turn, fence) = (held.turn, held.fence);
    store.view(tenant, turn, fence).await.unwrap();
    store
        .window(tenant, held.transcript, held.branch, Some(held.head))
        .await
        .unwrap();
    store.renew(tenant, turn, fence, 0).await.unwrap();
    let stage = StageInput {
        tenant,
        turn,
        fence,
        first: 1,
        entries: vec![entry()],
        marks: None,
    };
    store.stage(&stage).await.unwrap();
    if committed {
        let commit = CommitInput {
            tenant,
            turn,
            fence,
            entries: vec![entry()],
            usage: Usage::default(),
            deliveries: vec![],
            outcome: Outcome::Answered,
            steer_through: 0,
            marks: None,
            compact: None,
            extract: None,
            extract_delay_ms: 0,
            content_hash: vec![1],
        };
        store.commit(&commit).await.unwrap();
    } else {
        let error = "gone\0".to_owned();
        store
            .release(tenant, turn, fence, &Release::Retry { error })
            .await
            .unwrap();
        store.stop(tenant, session, StopScope::All, 1_000).await.unwrap();
    }
    store.queue(tenant, session, 10).await.unwrap();
    let (transcript, branch) = (held.transcript, held.branch);
    store
        .list_entries(tenant, transcript, branch, Order::Before(held.head), 10)
        .await
        .unwrap();
}

/// One connection, so that its plans last and its counts are in when it is closed.
async fn drive(url: &str, tenant: TenantId, sessions: &[SessionId]) {
    let store = store(url, 1).await;
    for pair in sessions.chunks_exact(2) {
        populate(&fixture(&store), tenant).await;
        turn(&store, tenant, pair[0], true).await;
        turn(&store, tenant, pair[1], false).await;
        let account = AccountId::parse("acc").unwrap();
        store.claim_deliveries(tenant, &account, 10, 1_000).await.unwrap();
        store.list_expired(10).await.unwrap();
        let scan = RunnableScan {
            tenant: None,
            horizon_ms: 0,
            per_agent: 10,
            limit: 10,
        };
        store.list_runnable(&scan).await.unwrap();
    }
    store.close().await;
}

async fn scans(owner: &mut PgConnection) -> BTreeMap<String, i64> {
    // A backend's counts are in before it is gone from the list.
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() \
                  AND backend_type = 'client backend'";
    while sqlx::query_scalar::<_, i64>(others)
        .fetch_one(&mut *owner)
        .await
        .unwrap()
        > 0
    {
        tokio::task::yield_now().await;
    }
    let sql = "SELECT relname::text, seq_scan FROM pg_stat_user_tables WHERE schemaname = 'history'";
    let counts: Vec<(String, i64)> = sqlx::query_as(sql).fetch_all(owner).await.unwrap();
    counts
        .into_iter()
        .filter(|(table, _)| TABLES.contains(&table.as_str()))
        .collect()
}

#[tokio::test]
async fn hot_operations_use_indexes_at_a_hundred_thousand_sessions() {
    let Some(url) = empty_database().await else { return };
    let tenant = TenantId::new();
    let mut owner = PgConnection::connect(&url).await.unwrap();
    fill(&mut owner, tenant).await;
    let database: String = sqlx::query_scalar("SELECT current_database()::text")
        .fetch_one(&mut owner)
        .await
        .unwrap();
    for mode in ["auto", "force_generic_plan"] {
        let set = format!("ALTER DATABASE {database} SET plan_cache_mode = {mode}");
        sqlx::query(AssertSqlSafe(set)).execute(&mut owner).await.unwrap();
        let sessions = wake(&mut owner, tenant).await;
        // The counts of this connection are in when it is closed.
        owner.close().await.unwrap();
        owner = PgConnection::connect(&url).await.unwrap();
        let before = scans(&mut owner).await;
        drive(&url, tenant, &sessions).await;
        assert_eq!(
            scans(&mut owner).await,
            before,
            "sequential scans with {mode} plans"
        );
    }
}

#[tokio::test]
async fn the_count_of_scans_sees_a_function_that_scans() {
    let Some(url) = empty_database().await else { return };
    let mut owner = PgConnection::connect(&url).await.unwrap();
    let before = scans(&mut owner).await;
    let store = store(&url, 1).await;
    let scan = "DO $$ BEGIN \
                PERFORM set_config(name, 'off', true) FROM unnest(ARRAY['enable_indexscan', 'enable_indexonlyscan', \
                'enable_bitmapscan']) name; \
                PERFORM count(*) FROM history.entries; END $$";
    sqlx::query(scan).execute(store.pool()).await.unwrap();
    store.close().await;
    assert_eq!(scans(&mut owner).await["entries"], before["entries"] + 1);
}
