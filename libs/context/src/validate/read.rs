//! Facts about JSON, read without building it: a rule asks whether a text says something, not what.
//!
//! Every leaf takes every JSON value, so that a wrong type breaks the rule about it and not the reading.

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

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

macro_rules! leaves {
    ($($leaf:ty),+) => {$(
        impl<'de> Deserialize<'de> for $leaf {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Reader(PhantomData))
            }
        }
    )+};
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

/// A string of any length, by what rules ask of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Text {
    /// It is there and a string.
    pub is_text: bool,
    /// It is there in any form, null but for.
    pub is_there: bool,
    pub says_something: bool,
    pub ends_in_space: bool,
}

impl<'a> Leaf<'a> for Text {
    fn other() -> Self {
        Self {
            is_there: true,
            ..Self::default()
        }
    }

    fn null() -> Self {
        Self::default()
    }

    fn text(text: &str) -> Self {
        Self {
            is_text: true,
            is_there: true,
            says_something: !text.trim().is_empty(),
            ends_in_space: text.ends_with(char::is_whitespace),
        }
    }
}

/// A short string: an id, a name, a type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Word<'a> {
    #[default]
    Absent,
    Other,
    Is(Cow<'a, str>),
}

impl<'a> Leaf<'a> for Word<'a> {
    fn other() -> Self {
        Self::Other
    }

    fn null() -> Self {
        Self::Absent
    }

    fn text(text: &str) -> Self {
        Self::Is(Cow::Owned(text.to_owned()))
    }

    fn borrowed(text: &'a str) -> Self {
        Self::Is(Cow::Borrowed(text))
    }
}

impl<'a> Word<'a> {
    /// The string, empty where there is none.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Is(text) => text,
            _ => "",
        }
    }

    pub(crate) fn is(&self, text: &str) -> bool {
        matches!(self, Self::Is(is) if is == text)
    }

    pub(crate) fn is_there(&self) -> bool {
        *self != Self::Absent
    }

    /// `[A-Za-z0-9_-]{1,max}`.
    pub(crate) fn is_id(&self, max: usize) -> bool {
        let id = self.as_str();
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        (1..=max).contains(&id.len()) && id.bytes().all(legal)
    }

    pub(crate) fn into_string(self) -> Cow<'a, str> {
        match self {
            Self::Is(text) => text,
            _ => Cow::Borrowed(""),
        }
    }
}

/// Where media lies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Address {
    #[default]
    Absent,
    Other,
    Https,
    Http,
    /// `data:TYPE;base64,DATA` with a type and base64.
    Data,
    Base64,
}

impl<'a> Leaf<'a> for Address {
    fn other() -> Self {
        Self::Other
    }

    fn null() -> Self {
        Self::Absent
    }

    fn text(text: &str) -> Self {
        let is_data = |rest: &str| {
            let parts = rest.split_once(";base64,");
            parts.is_some_and(|(mime, data)| mime.contains('/') && is_base64(data))
        };
        match text.split_once(':') {
            Some(("https", rest)) if rest.len() > 2 => Self::Https,
            Some(("http", rest)) if rest.len() > 2 => Self::Http,
            Some(("data", rest)) if is_data(rest) => Self::Data,
            None if is_base64(text) => Self::Base64,
            _ => Self::Other,
        }
    }
}

impl Address {
    pub(crate) fn is_web(self) -> bool {
        matches!(self, Self::Https | Self::Http)
    }
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    !digits.is_empty() && text.len().is_multiple_of(4) && digits.bytes().all(legal)
}

/// A field that is true or anything else.
pub(crate) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Flag::deserialize(deserializer)?.0)
}

struct Flag(bool);

impl<'a> Leaf<'a> for Flag {
    fn other() -> Self {
        Self(false)
    }

    fn text(_: &str) -> Self {
        Self(false)
    }

    fn truth(is: bool) -> Self {
        Self(is)
    }
}

/// A string that holds JSON itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct JsonText {
    pub is_json: bool,
}

impl<'a> Leaf<'a> for JsonText {
    fn other() -> Self {
        Self::default()
    }

    fn text(text: &str) -> Self {
        Self {
            is_json: shape(text).is_some(),
        }
    }
}

/// An object read as a struct. Without it a list would pass for one, its values in the order of the fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Object<T> {
    /// There is a value, null but for.
    is_there: bool,
    pub fields: Option<T>,
}

impl<'a, T: Deserialize<'a>> Leaf<'a> for Object<T> {
    fn other() -> Self {
        Self {
            is_there: true,
            fields: None,
        }
    }

    fn null() -> Self {
        Self {
            is_there: false,
            fields: None,
        }
    }

    fn text(_: &str) -> Self {
        Self::other()
    }

    fn object<A: MapAccess<'a>>(object: A) -> Result<Self, A::Error> {
        Ok(Self {
            is_there: true,
            fields: Some(T::deserialize(MapAccessDeserializer::new(object))?),
        })
    }
}

/// A field that holds an object; a value of another kind is one without fields.
pub(crate) fn object<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    let object = Object::<T>::deserialize(deserializer)?;
    Ok(object.fields.unwrap_or_default())
}

/// A field that may hold an object; none where it is null.
pub(crate) fn maybe_object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    let object = Object::<T>::deserialize(deserializer)?;
    Ok(object.is_there.then(|| object.fields.unwrap_or_default()))
}

/// Text, or a list of parts, or neither. A part that is no object is one without fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Content<T> {
    #[default]
    Absent,
    Other,
    Text(Text),
    List(Vec<T>),
}

impl<'a, T: Deserialize<'a> + Default> Leaf<'a> for Content<T> {
    fn other() -> Self {
        Self::Other
    }

    fn null() -> Self {
        Self::Absent
    }

    fn text(text: &str) -> Self {
        Self::Text(Text::text(text))
    }

    fn list<A: SeqAccess<'a>>(mut list: A) -> Result<Self, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = list.next_element::<Object<T>>()? {
            parts.push(part.fields.unwrap_or_default());
        }
        Ok(Self::List(parts))
    }
}

impl<T> Content<T> {
    pub(crate) fn parts(&self) -> &[T] {
        match self {
            Self::List(parts) => parts,
            _ => &[],
        }
    }
}

leaves!(Shape, Text, Address, Flag, JsonText);

macro_rules! borrowing_leaves {
    ($($leaf:ident),+) => {$(
        impl<'de: 'a, 'a> Deserialize<'de> for $leaf<'a> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Reader(PhantomData))
            }
        }
    )+};
}

use super::chat::Audio;
borrowing_leaves!(Word, Audio);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader(PhantomData))
    }
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Content<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader(PhantomData))
    }
}
