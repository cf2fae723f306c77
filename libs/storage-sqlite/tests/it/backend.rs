//! Stores for the suite, under a clock that stands still until it is moved.

use async_trait::async_trait;
use colloquy_storage::testsuite::{DatabaseClock, Fixture};
use colloquy_storage_sqlite::{SqliteOptions, SqliteStore};
use colloquy_types::{ManualClock, UnixMillis};
use std::sync::Arc;
use tempfile::TempDir;

pub const START: UnixMillis = UnixMillis(1_700_000_000_000);

/// The folder lives as long as the clock, which every case holds.
struct TestClock {
    clock: Arc<ManualClock>,
    _folder: Option<TempDir>,
}

#[async_trait]
impl DatabaseClock for TestClock {
    async fn advance(&self, millis: i64) {
        self.clock.advance(millis);
    }
}

async fn fixture(options: SqliteOptions, folder: Option<TempDir>) -> Fixture {
    let clock = Arc::new(ManualClock::new(START));
    let store = SqliteStore::connect(options, clock.clone())
        .await
        .expect("an open store");
    Fixture {
        store: Arc::new(store),
        clock: Arc::new(TestClock {
            clock,
            _folder: folder,
        }),
    }
}

pub async fn file_store() -> Option<Fixture> {
    let folder = tempfile::tempdir().expect("a folder");
    let options = SqliteOptions::file(folder.path().join("colloquy.db"));
    Some(fixture(options, Some(folder)).await)
}

pub async fn memory_store() -> Option<Fixture> {
    Some(fixture(SqliteOptions::memory(), None).await)
}
