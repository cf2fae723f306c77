//! The operations of the hot path: one SQL function each, which sets the tenant and answers in JSON.

use crate::fault::Fault;
use crate::{PgStore, json};
use colloquy_storage::Marks;
use colloquy_types::{Error, NewEntry, Result, TurnId};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sqlx::postgres::PgArguments;
use sqlx::query::QueryScalar;
use sqlx::types::Json;
use sqlx::{PgConnection, Postgres};
use uuid::Uuid;

/// A call of a function that answers in JSON.
pub(crate) type Call<'q, T> = QueryScalar<'q, Postgres, Json<T>, PgArguments>;

pub(crate) async fn answer<T>(connection: &mut PgConnection, call: Call<'_, T>) -> Result<T, Fault>
where
    T: DeserializeOwned + Send + Unpin + 'static,
{
    Ok(call.fetch_one(connection).await?.0)
}

impl PgStore {
    /// What a function is told of the time: nothing, unless a test moves it.
    pub(crate) fn instant(&self) -> Option<i64> {
        self.clock.as_ref().map(|clock| clock.now().0)
    }

    /// One round trip on a connection of its own.
    pub(crate) async fn ask<T>(&self, call: Call<'_, T>) -> Result<T, Fault>
    where
        T: DeserializeOwned + Send + Unpin + 'static,
    {
        let mut connection = self.pool.acquire().await?;
        answer(&mut connection, call).await
    }
}

/// What a function says that writes under a fence.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply<T> {
    Held(T),
    /// The number that the next staged entry must have.
    Gap(i64),
    NotFound,
    Fenced,
}

impl<T> Reply<T> {
    pub fn or_refused(self, turn: TurnId) -> Result<T> {
        match self {
            Self::Held(value) => Ok(value),
            Self::Gap(next) => Err(Error::invalid(
                "first",
                format!("the next entry of this attempt is {next}"),
            )),
            Self::NotFound => Err(Error::not_found("turn", turn)),
            Self::Fenced => Err(Error::fenced()),
        }
    }
}

/// Entries as columns, for a function to append.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    pub ids: Vec<Uuid>,
    pub kinds: Vec<&'static str>,
    pub bodies: Vec<Vec<u8>>,
    pub tokens: Vec<i64>,
    pub tokenizers: Vec<String>,
}

impl Columns {
    pub fn of(entries: &[NewEntry]) -> Result<Self> {
        let mut columns = Self::default();
        for entry in entries {
            columns.ids.push(entry.id.0);
            columns.kinds.push(entry.body.kind());
            columns.bodies.push(json::to_bytes(&entry.body)?);
            columns.tokens.push(i64::from(entry.tokens));
            columns.tokenizers.push(entry.tokenizer.clone());
        }
        Ok(columns)
    }
}

/// Watermarks as two columns, both or neither.
pub(crate) fn marks(marks: Option<Marks>) -> (Option<i64>, Option<i64>) {
    (marks.map(|marks| marks.soft.0), marks.map(|marks| marks.hard.0))
}
