//! The hot statements find their rows by an index, also at 100,000 sessions.

use super::backend::{empty_database, store};
use colloquy_types::TenantId;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};
use std::path::Path;

const SESSIONS: i64 = 100_000;

/// Statements of the path that every message takes, by the name in their first comment.
const HOT: [&str; 24] = [
    "find_duplicate",
    "lock_key",
    "find_session",
    "live_turns",
    "live_message_ids",
    "put_policy",
    "insert_message",
    "open_turn",
    "bind_message",
    "touch_session",
    "lock_session",
    "get_session",
    "lock_turn",
    "load_turn",
    "claim",
    "confirm",
    "renew",
    "messages",
    "load_branch",
    "window",
    "append",
    "load_staged",
    "record_outcomes",
    "due_deliveries",
];

/// Whole statements of the sources, by their name.
fn statements(folder: &Path, found: &mut Vec<(String, String)>) {
    for item in std::fs::read_dir(folder).unwrap() {
        let path = item.unwrap().path();
        if path.is_dir() {
            statements(&path, found);
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        for literal in source.split("\"/* ").skip(1) {
            let Some((name, rest)) = literal.split_once(" */ ") else {
                continue;
            };
            let literal = rest.split('"').next().unwrap_or_default();
            let sql: Vec<&str> = literal.split("\\\n").map(str::trim_start).collect();
            found.push((name.to_owned(), sql.concat()));
        }
    }
}

async fn fill(owner: &mut PgConnection, tenant: TenantId) {
    let statements = [
        "INSERT INTO history.sessions (tenant, id, key, agent, kind, transcript, branch, created, updated) \
         SELECT $1, gen_random_uuid(), 'k' || n, 'a', 'direct', gen_random_uuid(), gen_random_uuid(), n, n \
         FROM generate_series(1, $2) n",
        "INSERT INTO history.branches (tenant, transcript, branch, session, head) \
         SELECT tenant, transcript, branch, id, 3 FROM history.sessions WHERE tenant = $1 AND $2 > 0",
        "INSERT INTO history.entries (tenant, transcript, branch, seq, id, kind, body, tokens, tokenizer, at) \
         SELECT tenant, transcript, branch, seq, gen_random_uuid(), 'message', '{}', 1, 't', 1 \
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
    for table in ["sessions", "branches", "entries", "turns", "inbox", "deliveries"] {
        let analyze = format!("ANALYZE history.{table}");
        sqlx::query(AssertSqlSafe(analyze))
            .execute(&mut *owner)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn hot_statements_use_indexes_at_a_hundred_thousand_sessions() {
    let Some(url) = empty_database().await else { return };
    let mut owner = PgConnection::connect(&url).await.unwrap();
    let tenant = TenantId::new();
    fill(&mut owner, tenant).await;

    let mut found = Vec::new();
    statements(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    let hot: Vec<&(String, String)> = found
        .iter()
        .filter(|(name, _)| HOT.contains(&name.as_str()))
        .collect();
    let missing: Vec<&str> = HOT
        .into_iter()
        .filter(|name| {
            !found.iter().any(|(known, _)| known == name) && *name != "find_session" && *name != "get_session"
        })
        .collect();
    assert!(missing.is_empty(), "statements that are gone: {missing:?}");

    // As the application: the policies are part of the plan.
    let store = store(&url).await;
    let mut tx = store.pool().begin().await.unwrap();
    sqlx::query("SELECT set_config('colloquy.tenant', $1, true)")
        .bind(tenant.0.to_string())
        .execute(&mut *tx)
        .await
        .unwrap();
    // A generic plan, as a prepared statement has it after a few executions.
    sqlx::query("SET LOCAL plan_cache_mode = force_generic_plan")
        .execute(&mut *tx)
        .await
        .unwrap();
    for (number, (name, sql)) in hot.iter().enumerate() {
        let prepare = format!("PREPARE hot_{number} AS {sql}");
        sqlx::query(AssertSqlSafe(prepare))
            .execute(&mut *tx)
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let types: i64 = sqlx::query_scalar("SELECT coalesce(cardinality(parameter_types), 0)::bigint FROM pg_prepared_statements WHERE name = $1")
            .bind(format!("hot_{number}"))
            .fetch_one(&mut *tx)
            .await
            .unwrap();
        let nulls = vec!["NULL"; usize::try_from(types).unwrap()].join(", ");
        let explain = if types == 0 {
            format!("EXPLAIN EXECUTE hot_{number}")
        } else {
            format!("EXPLAIN EXECUTE hot_{number}({nulls})")
        };
        let plan = sqlx::raw_sql(AssertSqlSafe(explain))
            .fetch_all(&mut *tx)
            .await
            .unwrap();
        let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
        let scans = plan.iter().any(|line| line.contains("Seq Scan"));
        assert!(!scans, "{name}:\n{}", plan.join("\n"));
    }
}
