//! The opaque cursor of keyset-paged lists: instant and id of the last item of a page.

use colloquy_storage::{Page, PageRequest};
use colloquy_types::{Error, Result};
use uuid::Uuid;

/// Where the page before ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub at: i64,
    pub id: Uuid,
}

impl Cursor {
    /// Before the first item of an ascending list.
    pub const FIRST: Self = Self {
        at: i64::MIN,
        id: Uuid::nil(),
    };
    /// Before the first item of a descending list.
    pub const LAST: Self = Self {
        at: i64::MAX,
        id: Uuid::max(),
    };

    pub fn of(request: &PageRequest, start: Self) -> Result<Self> {
        match &request.token {
            None => Ok(start),
            Some(token) => {
                parse(token).ok_or_else(|| Error::invalid("page_token", "was not handed out by a list"))
            }
        }
    }

    fn token(self) -> String {
        format!("{:016x}{}", self.at, self.id.simple())
    }
}

fn parse(token: &str) -> Option<Cursor> {
    if token.len() != 48 || !token.is_ascii() {
        return None;
    }
    let (at, id) = token.split_at(16);
    let at = u64::from_str_radix(at, 16).ok()?.cast_signed();
    Some(Cursor {
        at,
        id: Uuid::try_parse(id).ok()?,
    })
}

/// A page from up to one item more than asked for.
pub(crate) fn page<T>(mut items: Vec<T>, request: &PageRequest, place: impl Fn(&T) -> Cursor) -> Page<T> {
    let limit = request.limit() as usize;
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|last| place(last).token());
    Page { items, next }
}

/// Rows to ask for: one more than the page shows whether there is another.
pub(crate) fn rows(request: &PageRequest) -> i64 {
    i64::from(request.limit()) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_back() {
        for at in [i64::MIN, -1, 0, 1_700_000_000_000, i64::MAX] {
            let cursor = Cursor {
                at,
                id: Uuid::from_u128(7),
            };
            assert_eq!(parse(&cursor.token()), Some(cursor));
        }
        assert_eq!(parse("made up"), None);
    }
}
