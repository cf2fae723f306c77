//! Wire form ⇄ `types`. Into the wire never fails; out of it names the field that is wrong.

mod entry;
pub mod message;
mod session;

use crate::v1;
use colloquy_types::{CallerRole, Error, Reason, Result, UnixMillis};
use std::str::FromStr;

/// An instant on the wire.
pub fn timestamp(at: UnixMillis) -> prost_types::Timestamp {
    let nanos = i32::try_from(at.0.rem_euclid(1_000) * 1_000_000).unwrap_or(0);
    prost_types::Timestamp {
        seconds: at.0.div_euclid(1_000),
        nanos,
    }
}

/// An instant of the wire; finer than a millisecond is cut off.
pub fn millis(at: &prost_types::Timestamp) -> UnixMillis {
    UnixMillis(
        at.seconds
            .saturating_mul(1_000)
            .saturating_add(i64::from(at.nanos) / 1_000_000),
    )
}

/// A span on the wire.
pub fn duration(millis: i64) -> prost_types::Duration {
    let nanos = i32::try_from(millis % 1_000 * 1_000_000).unwrap_or(0);
    prost_types::Duration {
        seconds: millis / 1_000,
        nanos,
    }
}

/// A span of the wire in milliseconds.
pub fn duration_ms(span: &prost_types::Duration) -> i64 {
    span.seconds
        .saturating_mul(1_000)
        .saturating_add(i64::from(span.nanos) / 1_000_000)
}

/// An id of the wire. A malformed id answers like an unknown one.
///
/// # Errors
/// `INVALID_FIELD` naming `field` when it is empty, else `NOT_FOUND`.
pub fn id<T: FromStr<Err = Error>>(field: &str, text: &str) -> Result<T> {
    if text.is_empty() {
        return Err(Error::invalid(field, "is required"));
    }
    text.parse()
}

/// An id that may be absent.
///
/// # Errors
/// `NOT_FOUND` for a malformed id.
pub fn optional_id<T: FromStr<Err = Error>>(text: &str) -> Result<Option<T>> {
    if text.is_empty() {
        Ok(None)
    } else {
        text.parse().map(Some)
    }
}

/// A message field that must be there.
///
/// # Errors
/// `INVALID_FIELD` naming it.
pub fn required<T>(field: &str, value: Option<T>) -> Result<T> {
    value.ok_or_else(|| Error::invalid(field, "is required"))
}

/// Puts `path.` in front of the field that an error names; a `NOT_FOUND` names a kind of resource and keeps it.
pub fn under(path: impl std::fmt::Display) -> impl FnOnce(Error) -> Error {
    move |error| match error.reason {
        Reason::NotFound => error,
        _ => error.within(&path.to_string()),
    }
}

/// Converts a list, an error naming `field[index]`.
///
/// # Errors
/// Those of the items.
pub fn list<W, T: TryFrom<W, Error = Error>>(field: &str, wire: Vec<W>) -> Result<Vec<T>> {
    let item = |(index, item)| T::try_from(item).map_err(under(format_args!("{field}[{index}]")));
    wire.into_iter().enumerate().map(item).collect()
}

/// `None` for the empty string, which stands for an absent one on the wire.
pub fn non_empty(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

impl From<CallerRole> for v1::Role {
    fn from(role: CallerRole) -> Self {
        match role {
            CallerRole::Admin => Self::Admin,
            CallerRole::Agent => Self::Agent,
            CallerRole::Channel => Self::Channel,
            CallerRole::User => Self::User,
            CallerRole::Viewer => Self::Viewer,
            CallerRole::Service => Self::Service,
            CallerRole::Operator => Self::Operator,
        }
    }
}

impl TryFrom<v1::Role> for CallerRole {
    type Error = Error;

    fn try_from(role: v1::Role) -> Result<Self> {
        Ok(match role {
            v1::Role::Unspecified => return Err(Error::invalid("roles", "name a role")),
            v1::Role::Admin => Self::Admin,
            v1::Role::Agent => Self::Agent,
            v1::Role::Channel => Self::Channel,
            v1::Role::User => Self::User,
            v1::Role::Viewer => Self::Viewer,
            v1::Role::Service => Self::Service,
            v1::Role::Operator => Self::Operator,
        })
    }
}
