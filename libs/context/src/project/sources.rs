//! Which items each message of a request was made from.

/// The items behind every message, in two lists however many messages there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    items: Vec<usize>,
    /// Where each message's items end in `items`.
    ends: Vec<usize>,
}

impl Sources {
    pub(super) fn with_capacity(messages: usize) -> Self {
        Self {
            items: Vec::with_capacity(messages),
            ends: Vec::with_capacity(messages),
        }
    }

    /// Messages of the request.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The items of a message: none for one that the projection itself has put in.
    #[must_use]
    pub fn get(&self, message: usize) -> Option<&[usize]> {
        let end = *self.ends.get(message)?;
        let start = message.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.items[start..end])
    }

    pub(super) fn start(&mut self) {
        self.ends.push(self.items.len());
    }

    /// The newest message has something of this item.
    pub(super) fn add(&mut self, item: usize) {
        let Some(newest) = self.ends.len().checked_sub(1) else {
            return;
        };
        let start = newest.checked_sub(1).map_or(0, |before| self.ends[before]);
        if self.items[start..].last() != Some(&item) {
            self.items.push(item);
            self.ends[newest] = self.items.len();
        }
    }
}
