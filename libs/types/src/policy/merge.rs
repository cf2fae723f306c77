//! Field-by-field merging, and errors that name the field.

use super::{Policy, Profile, validate};
use crate::error::{Error, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(super) fn resolve(profile: Profile, overrides: &[&str]) -> Result<Policy> {
    let mut merged = serde_json::to_value(profile.policy()).expect("a policy has string keys only");
    for json in overrides.iter().filter(|json| !json.trim().is_empty()) {
        let value: Value = serde_json::from_str(json)
            .map_err(|error| Error::invalid("overrides_json", format!("not JSON: {error}")))?;
        if !value.is_object() {
            return Err(Error::invalid("overrides_json", "must be a JSON object"));
        }
        merge(&mut merged, value);
    }
    let policy: Policy = typed(merged)?;
    validate::check(&policy)?;
    Ok(policy)
}

pub(super) fn parse(json: &str) -> Result<Policy> {
    let value: Value = serde_json::from_str(json)
        .map_err(|error| Error::invalid("policy_json", format!("not JSON: {error}")))?;
    typed(value)
}

/// Objects merge, everything else replaces. An optional section that was absent is put in whole.
fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

fn typed<T: DeserializeOwned>(value: Value) -> Result<T> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let message = error.into_inner().to_string();
        // serde puts an unknown field's parent into the path; the name is in the message.
        let unknown = message
            .strip_prefix("unknown field `")
            .and_then(|rest| rest.split('`').next());
        let field = match unknown {
            Some(name) if path.ends_with(name) => path,
            Some(name) if path == "." => name.to_owned(),
            Some(name) => format!("{path}.{name}"),
            None => path,
        };
        Error::invalid(field, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Reason;

    #[test]
    fn the_most_specific_field_wins_and_the_rest_stays() {
        let policy = resolve(
            Profile::Goclaw,
            &[
                r#"{"queue":{"debounce_ms":0,"capacity":3}}"#,
                "",
                r#"{"queue":{"capacity":5}}"#,
            ],
        )
        .unwrap();
        assert_eq!((policy.queue.debounce_ms, policy.queue.capacity), (0, 5));
        assert_eq!(policy.queue.lease_ms, 60_000);
    }

    #[test]
    fn unknown_fields_and_impossible_numbers_are_named() {
        for (json, field) in [
            (r#"{"queue":{"debounce":1}}"#, "queue.debounce"),
            (r#"{"quue":{}}"#, "quue"),
            (r#"{"queue":{"capacity":-1}}"#, "queue.capacity"),
            (r#"{"queue":{"capacity":0}}"#, "queue.capacity"),
            (
                r#"{"context":{"prune":{"soft_ratio":1.5}}}"#,
                "context.prune.soft_ratio",
            ),
            (
                r#"{"reset":{"daily":{"at_hour":24,"time_zone":"UTC"}}}"#,
                "reset.daily.at_hour",
            ),
            (
                r#"{"reset":{"daily":{"at_hour":4,"time_zone":"Mars/Olympus"}}}"#,
                "reset.daily.time_zone",
            ),
            ("[]", "overrides_json"),
            ("{", "overrides_json"),
        ] {
            let error = resolve(Profile::Goclaw, &[json]).unwrap_err();
            assert_eq!(
                (error.reason, error.field.as_deref()),
                (Reason::InvalidField, Some(field)),
                "{json}"
            );
        }
    }

    #[test]
    fn every_profile_is_valid_and_survives_its_json() {
        for profile in Profile::ALL {
            let policy = resolve(profile, &[]).unwrap();
            assert_eq!(parse(&policy.to_json()).unwrap(), policy);
        }
    }

    #[test]
    fn small_windows_keep_room_for_the_conversation() {
        let openclaw = resolve(Profile::Openclaw, &[]).unwrap();
        assert_eq!(openclaw.compaction_threshold(200_000), Some(180_000));
        assert_eq!(openclaw.compaction_threshold(16_000), Some(8_000));
        let goclaw = resolve(Profile::Goclaw, &[]).unwrap();
        assert_eq!(goclaw.compaction_threshold(1_000), Some(750));
        assert_eq!(goclaw.reserve(8_000), 1_600);
    }
}
