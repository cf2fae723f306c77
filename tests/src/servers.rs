//! Real Postgres, Redis and NATS, where `tests/run` started them.

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::process::Command;

/// A new database on the test server; `None` (said on standard output) where there is no server and none is required.
pub async fn database() -> Option<String> {
    let Ok(server) = std::env::var("COLLOQUY_TEST_PG_URL") else {
        assert!(
            std::env::var_os("COLLOQUY_TEST_REQUIRE_SERVERS").is_none(),
            "no servers to test with"
        );
        println!("skipped: no servers here");
        return None;
    };
    let name = format!("colloquy_{}", hex::encode(rand::random::<[u8; 8]>()));
    let mut connection = PgConnection::connect(&server).await.unwrap();
    sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name}")))
        .execute(&mut connection)
        .await
        .unwrap();
    let at = server.rfind('/').unwrap();
    Some(format!("{}/{name}", &server[..at]))
}

/// A Redis or NATS of the test's own, which it may wipe; its URL.
pub fn own(kind: &str, name: &str) -> String {
    control(&["start", kind, name])
}

/// Asks the keeper of the servers for something; what it printed.
pub fn control(arguments: &[&str]) -> String {
    let script = std::env::var("COLLOQUY_TEST_SERVER").unwrap();
    let done = Command::new(script).args(arguments).output().unwrap();
    assert!(
        done.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}
