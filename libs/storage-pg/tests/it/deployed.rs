//! What the guide to deploying says about the database is enough for a database.

use crate::backend::server;
use colloquy_storage::Clocked;
use colloquy_storage_pg::{PgOptions, PgStore, migrate};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use uuid::Uuid;

const GUIDE: &str = include_str!("../../../../deploy/README.md");

/// The statements of the guide's only block of SQL, with an owner and a database of the test's own.
fn statements(name: &str) -> Vec<String> {
    let block = GUIDE
        .split("```sql\n")
        .nth(1)
        .expect("the guide has a block of SQL");
    let block = block.split("```").next().unwrap();
    let own = block
        .replace("ROLE colloquy LOGIN", &format!("ROLE {name} LOGIN"))
        .replace(
            "DATABASE colloquy OWNER colloquy",
            &format!("DATABASE {name} OWNER {name}"),
        );
    own.lines().map(str::to_owned).collect()
}

async fn run(connection: &mut PgConnection, sql: String) -> sqlx::Result<()> {
    sqlx::query(AssertSqlSafe(sql))
        .execute(connection)
        .await
        .map(|_| ())
}

/// Roles are the server's: other tests on it have made some before.
async fn prepare(connection: &mut PgConnection, name: &str) {
    run(connection, "SELECT pg_advisory_lock(4711)".into())
        .await
        .unwrap();
    for statement in statements(name) {
        if let Err(error) = run(connection, statement.clone()).await {
            assert!(
                error.to_string().contains("already exists"),
                "{statement}: {error}"
            );
            let instead = statement.replace("CREATE ROLE", "ALTER ROLE");
            run(connection, instead).await.unwrap();
        }
    }
    let lend = format!("GRANT colloquy_sweep TO {name} WITH ADMIN OPTION");
    if let Err(error) = run(connection, lend).await {
        assert!(error.to_string().contains("does not exist"), "{error}");
    }
}

async fn clear(connection: &mut PgConnection, name: &str) {
    for statement in [
        format!("DROP DATABASE {name} WITH (FORCE)"),
        format!("REVOKE colloquy_sweep FROM {name} CASCADE"),
        format!("DROP ROLE {name}"),
    ] {
        run(connection, statement).await.unwrap();
    }
}

#[tokio::test]
async fn the_guides_roles_are_enough_to_migrate_and_to_serve() {
    let Some(server) = server() else { return };
    let name = format!("colloquy_guide_{}", Uuid::new_v4().simple());
    let mut connection = PgConnection::connect(&server).await.unwrap();
    prepare(&mut connection, &name).await;
    let at: PgConnectOptions = server.parse().unwrap();
    let url = |user: &str| {
        format!(
            "postgres://{user}:change-me@{}:{}/{name}",
            at.get_host(),
            at.get_port()
        )
    };
    migrate(&url(&name)).await.unwrap();
    let store = PgStore::connect(&PgOptions::new(url("colloquy_app")))
        .await
        .unwrap();
    store.now().await.unwrap();
    store.close().await;
    clear(&mut connection, &name).await;
}
