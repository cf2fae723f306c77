//! Every statement finds its rows by an index: nothing slows down with the size of the history.

use super::backend::START;
use colloquy_storage_sqlite::{SqliteOptions, SqliteStore};
use colloquy_types::ManualClock;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use sqlx::{AssertSqlSafe, Row};
use std::path::Path;
use std::sync::Arc;

/// Looks at everything that is live, across tenants, in a partial index of just that.
const WALKS_WHAT_IS_LIVE: [&str; 2] = ["list_runnable", "list_publishable"];

/// The literals of the sources that begin with the comment every statement begins with.
fn statements(folder: &Path, found: &mut Vec<(String, String)>) {
    for item in std::fs::read_dir(folder).expect("a folder") {
        let path = item.expect("an item").path();
        if path.is_dir() {
            statements(&path, found);
            continue;
        }
        let source = std::fs::read_to_string(&path).expect("a source");
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

#[tokio::test]
async fn no_statement_scans_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("colloquy.db");
    let clock = Arc::new(ManualClock::new(START));
    let store = SqliteStore::connect(SqliteOptions::file(&path), clock)
        .await
        .unwrap();
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&path))
        .await
        .unwrap();

    let mut found = Vec::new();
    statements(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    // What is put together at run time is a prefix here; the rest of it is more predicates.
    let whole = |sql: &str| !sql.ends_with("= ") && !sql.ends_with("WHERE ") && !sql.ends_with("JOIN ");
    let named = |name: &str| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    found.retain(|(name, sql)| named(name) && whole(sql));
    assert!(found.len() > 80, "only {} statements were found", found.len());
    for (name, sql) in found {
        let explained = sqlx::query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}")))
            .fetch_all(&pool)
            .await;
        let plan = explained.unwrap_or_else(|error| panic!("{name}: {error}: {sql}"));
        for step in plan.iter().map(|row| row.get::<String, _>("detail")) {
            let walks =
                step.starts_with("SCAN ") && !step.contains("(subquery") && step != "SCAN CONSTANT ROW";
            let allowed = WALKS_WHAT_IS_LIVE.contains(&name.as_str()) && step.contains("USING INDEX");
            assert!(!walks || allowed, "{name}: {step}");
        }
    }
    store.close().await;
}
