//! Row-level security: what the application's role can see when a statement forgets the tenant.

use super::backend::{CONNECTIONS, empty_database, fixture, store};
use colloquy_storage::Tenants;
use colloquy_storage::testsuite::write_everything;
use colloquy_types::TenantId;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

/// Tables with a tenant, by schema and name.
async fn tenant_tables(owner: &mut PgConnection) -> Vec<(String, String, bool)> {
    let sql = "SELECT n.nspname, c.relname, c.relrowsecurity FROM pg_class c \
               JOIN pg_namespace n ON n.oid = c.relnamespace \
               WHERE c.relkind = 'r' AND n.nspname IN ('control', 'history', 'memory') ORDER BY 1, 2";
    let rows = sqlx::query(sql).fetch_all(owner).await.unwrap();
    rows.iter()
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .collect()
}

#[tokio::test]
async fn every_table_is_under_a_policy_and_nothing_is_the_applications() {
    let Some(url) = empty_database().await else { return };
    let mut owner = PgConnection::connect(&url).await.unwrap();
    let tables = tenant_tables(&mut owner).await;
    assert!(tables.len() >= 17, "{tables:?}");
    let bare: Vec<_> = tables.iter().filter(|(.., secured)| !secured).collect();
    assert!(bare.is_empty(), "without row-level security: {bare:?}");
    let owned: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner WHERE r.rolname = 'colloquy_app'",
    )
    .fetch_one(&mut owner)
    .await
    .unwrap();
    assert_eq!(owned, 0);
    let bypasses: bool = sqlx::query_scalar(
        "SELECT bool_or(rolbypassrls OR rolsuper) FROM pg_roles WHERE rolname IN ('colloquy_app', 'colloquy_sweep')",
    )
    .fetch_one(&mut owner)
    .await
    .unwrap();
    assert!(!bypasses);
}

#[tokio::test]
async fn a_statement_without_its_tenant_still_sees_nothing_foreign() {
    let Some(url) = empty_database().await else { return };
    let store = store(&url, CONNECTIONS).await;
    let (own, foreign) = (TenantId::new(), TenantId::new());
    for tenant in [own, foreign] {
        store.create_tenant(tenant, &tenant.to_string()).await.unwrap();
        write_everything(&fixture(&store), tenant).await;
    }
    let mut owner = PgConnection::connect(&url).await.unwrap();
    let tables = tenant_tables(&mut owner).await;
    for (schema, table, _) in &tables {
        let column = if table == "tenants" { "id" } else { "tenant" };
        let count = format!("SELECT count(*), count(*) FILTER (WHERE {column} <> $1) FROM {schema}.{table}");
        // The owner sees both tenants' rows: a table without would prove nothing.
        let row = sqlx::query(AssertSqlSafe(count.clone()))
            .bind(own.0)
            .fetch_one(&mut owner)
            .await
            .unwrap();
        let (all, others): (i64, i64) = (row.get(0), row.get(1));
        assert!(
            others > 0 && all > others,
            "{schema}.{table}: {all} rows, {others} of them foreign"
        );
        let expected = all - others;
        let mut tx = store.pool().begin().await.unwrap();
        sqlx::query("SELECT set_config('colloquy.tenant', $1, true)")
            .bind(own.0.to_string())
            .execute(&mut *tx)
            .await
            .unwrap();
        let row = sqlx::query(AssertSqlSafe(count.clone()))
            .bind(own.0)
            .fetch_one(&mut *tx)
            .await
            .unwrap();
        let (all, others): (i64, i64) = (row.get(0), row.get(1));
        assert_eq!(others, 0, "{schema}.{table} shows foreign rows");
        assert_eq!(all, expected, "{schema}.{table} shows the own rows");
        tx.rollback().await.unwrap();
        // No tenant at all: nothing at all.
        let row = sqlx::query(AssertSqlSafe(count))
            .bind(own.0)
            .fetch_one(store.pool())
            .await
            .unwrap();
        assert_eq!(
            row.get::<i64, _>(0),
            0,
            "{schema}.{table} shows rows without a tenant"
        );
    }
}

#[tokio::test]
async fn a_row_cannot_be_written_for_another_tenant() {
    let Some(url) = empty_database().await else { return };
    let store = store(&url, CONNECTIONS).await;
    let mut tx = store.pool().begin().await.unwrap();
    sqlx::query("SELECT set_config('colloquy.tenant', $1, true)")
        .bind(TenantId::new().0.to_string())
        .execute(&mut *tx)
        .await
        .unwrap();
    let forged = sqlx::query("INSERT INTO history.policies (tenant, id, body) VALUES ($1, 'p', '{}')")
        .bind(TenantId::new().0)
        .execute(&mut *tx)
        .await;
    assert_eq!(
        forged.unwrap_err().as_database_error().unwrap().code().unwrap(),
        "42501"
    );
}
