//! JSON by hand, so that parts which must not change are copied instead of parsed.

/// A JSON string.
pub(super) fn string(text: &str) -> String {
    serde_json::to_string(text).expect("a string always has a JSON form")
}

pub(super) fn array<S: AsRef<str>>(values: &[S]) -> String {
    let values: Vec<&str> = values.iter().map(AsRef::as_ref).collect();
    format!("[{}]", values.join(","))
}
