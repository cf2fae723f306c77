//! Values with fields or parts, and flags.

use super::{Leaf, Text, leaf};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, SeqAccess};

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

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        leaf(deserializer)
    }
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

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Content<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        leaf(deserializer)
    }
}

/// A field that is true or anything else.
pub(crate) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(leaf::<Flag, D>(deserializer)?.0)
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
