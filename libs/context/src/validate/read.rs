//! Facts about JSON, read without building it: a rule asks whether a text says something, not what.
//!
//! Every leaf takes every JSON value, so that a wrong type breaks the rule about it and not the reading.

mod objects;
mod strings;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

pub(crate) use objects::{Content, Object, flag, maybe_object, object};
pub(crate) use strings::{Address, JsonText, Text, Word};

/// What a leaf makes of a value.
pub(crate) trait Leaf<'a>: Sized {
    /// A value that is neither a string nor a list nor an object.
    fn other() -> Self;

    fn text(text: &str) -> Self;

    fn borrowed(text: &'a str) -> Self {
        Self::text(text)
    }

    fn null() -> Self {
        Self::other()
    }

    fn truth(_: bool) -> Self {
        Self::other()
    }

    /// # Errors
    /// Those of the JSON itself.
    fn list<A: SeqAccess<'a>>(mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<Shape>()?.is_some() {}
        Ok(Self::other())
    }

    /// # Errors
    /// Those of the JSON itself.
    fn object<A: MapAccess<'a>>(mut object: A) -> Result<Self, A::Error> {
        while object.next_entry::<Shape, Shape>()?.is_some() {}
        Ok(Self::other())
    }
}

struct Reader<T>(PhantomData<T>);

impl<'a, T: Leaf<'a>> Visitor<'a> for Reader<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E>(self, is: bool) -> Result<T, E> {
        Ok(T::truth(is))
    }

    fn visit_i64<E>(self, _: i64) -> Result<T, E> {
        Ok(T::other())
    }

    fn visit_u64<E>(self, _: u64) -> Result<T, E> {
        Ok(T::other())
    }

    fn visit_f64<E>(self, _: f64) -> Result<T, E> {
        Ok(T::other())
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::null())
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(T::text(text))
    }

    fn visit_borrowed_str<E>(self, text: &'a str) -> Result<T, E> {
        Ok(T::borrowed(text))
    }

    fn visit_seq<A: SeqAccess<'a>>(self, list: A) -> Result<T, A::Error> {
        T::list(list)
    }

    fn visit_map<A: MapAccess<'a>>(self, object: A) -> Result<T, A::Error> {
        T::object(object)
    }
}

/// Reads a leaf from any value.
///
/// # Errors
/// Those of the JSON itself.
pub(crate) fn leaf<'de, T: Leaf<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_any(Reader(PhantomData))
}

/// The kind of a value and how deep it goes; the whole of it is read, so what has a shape is JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    pub is_object: bool,
    pub is_list: bool,
    /// Objects and lists within each other.
    pub depth: usize,
}

impl<'a> Leaf<'a> for Shape {
    fn other() -> Self {
        Self::default()
    }

    fn text(_: &str) -> Self {
        Self::default()
    }

    fn list<A: SeqAccess<'a>>(mut list: A) -> Result<Self, A::Error> {
        let mut depth = 0;
        while let Some(element) = list.next_element::<Self>()? {
            depth = depth.max(element.depth);
        }
        Ok(Self {
            is_list: true,
            depth: depth + 1,
            ..Self::default()
        })
    }

    fn object<A: MapAccess<'a>>(mut object: A) -> Result<Self, A::Error> {
        let mut depth = 0;
        while let Some((_, value)) = object.next_entry::<Self, Self>()? {
            depth = depth.max(value.depth);
        }
        Ok(Self {
            is_object: true,
            depth: depth + 1,
            ..Self::default()
        })
    }
}

/// Longest nesting of what is embedded in a request: the readers of the whole stop at 128.
const MAX_DEPTH: usize = 100;

/// The shape of a text that is JSON; none where it is not, or goes too deep to be embedded.
pub(crate) fn shape(json: &str) -> Option<Shape> {
    let shape: Shape = serde_json::from_str(json).ok()?;
    (shape.depth <= MAX_DEPTH).then_some(shape)
}

/// Whether a text is JSON that may be embedded in a request.
pub(crate) fn is_json(text: &str) -> bool {
    shape(text).is_some()
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        leaf(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::is_json;

    #[test]
    fn what_may_be_embedded_is_what_any_reader_of_the_whole_takes() {
        let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let texts = [
            "{}",
            " [1] ",
            "\"x\"",
            "null",
            "-0.0e1",
            "{\"a\":1,\"a\":2}",
            "",
            "{",
            "01",
            "1e999",
            "NaN",
        ];
        let more = [
            r#""\ud800""#,
            r#""\ud83d\ude00""#,
            "\"\u{1}\"",
            "{}x",
            "\u{feff}{}",
            "\u{a0}{}",
            "[1,]",
        ];
        for text in texts.into_iter().chain(more) {
            let is_value = serde_json::from_str::<serde_json::Value>(text).is_ok();
            assert_eq!(is_json(text), is_value, "{text}");
        }
        assert!(is_json(&deep(100)) && !is_json(&deep(101)) && !is_json(&deep(10_000)));
    }
}
