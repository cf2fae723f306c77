//! Inside the crate a failure is the database's or the contract's; at the border it is one of the product's errors.

use colloquy_types::{Error, Reason};

#[derive(Debug)]
pub(crate) enum Fault {
    Sql(sqlx::Error),
    Refused(Error),
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Refused(error) => error,
            Fault::Sql(error) => match error {
                sqlx::Error::Decode(_)
                | sqlx::Error::ColumnDecode { .. }
                | sqlx::Error::ColumnNotFound(_) => {
                    Error::internal(format!("a stored row cannot be read: {error}"))
                }
                sqlx::Error::Database(inner) if inner.is_unique_violation() => {
                    Error::new(Reason::Conflict, "a row with this id or name is there already")
                }
                // What a function raises when a plan does not fit the state it was made on.
                sqlx::Error::Database(inner) if inner.code().as_deref() == Some("22000") => {
                    Error::internal(format!("a plan cannot be applied: {}", inner.message()))
                }
                sqlx::Error::Database(inner) if inner.code().as_deref() == Some("22021") => {
                    Error::invalid("text", "must not contain NUL")
                }
                other => Error::unavailable(format!("the database did not answer: {other}")),
            },
        }
    }
}
