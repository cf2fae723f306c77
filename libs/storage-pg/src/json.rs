//! Values as JSON bytes, and enums as the word they have in JSON.

use colloquy_types::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) fn to_bytes<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| Error::internal(format!("a value cannot be stored: {error}")))
}

/// For a parameter that is cast to `json`.
pub(crate) fn to_string<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| Error::internal(format!("a value cannot be stored: {error}")))
}

pub(crate) fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes)
        .map_err(|error| Error::internal(format!("a stored value cannot be read: {error}")))
}

/// The word of an enum without fields.
pub(crate) fn to_word<T: Serialize>(value: &T) -> Result<String> {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => Ok(word),
        _ => Err(Error::internal("a value has no word")),
    }
}

pub(crate) fn from_word<T: DeserializeOwned>(word: &str) -> Result<T> {
    serde_json::from_value(serde_json::Value::String(word.to_owned()))
        .map_err(|error| Error::internal(format!("a stored word cannot be read: {error}")))
}

/// Text that was stored as bytes.
pub(crate) fn text(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| Error::internal("a stored text is not UTF-8"))
}

/// Text for a column that is only looked at: the database keeps no NUL in text.
pub(crate) fn plain(text: &str) -> String {
    text.replace('\0', "")
}
