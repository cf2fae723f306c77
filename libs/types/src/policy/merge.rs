//! Field-by-field merging, and errors that name the field.

use super::{Policy, Profile, validate};
use crate::SessionKey;
use crate::error::{Error, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A policy and where each of its values came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    pub policy: Policy,
    /// In the order of the policy's fields.
    pub values: Vec<Origin>,
}

/// One effective value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// For instance `queue.debounce_ms`.
    pub path: String,
    pub value: Value,
    /// The most specific layer that sets it, or `profile`.
    pub layer: String,
    /// The rule for one kind of chat that sets it, for instance `reset.by_chat_kind.group.idle.minutes`; `None` when
    /// `path` itself does.
    pub rule: Option<String>,
}

impl Explained {
    /// What is in force for one session: the reset rule that [`Reset::rule`](super::Reset::rule) finds stands in the
    /// place of the general one.
    #[must_use]
    pub fn within(mut self, key: &SessionKey) -> Self {
        let channel = key.channel().map(|name| format!("reset.by_channel.{name}"));
        let kinds = [key.kind(), key.chat_type().as_str()].map(|kind| format!("reset.by_chat_kind.{kind}"));
        let rules: Vec<String> = channel.into_iter().chain(kinds).collect();
        for field in ["daily", "idle"] {
            if let Some(rule) = rules
                .iter()
                .find_map(|rule| self.section(&format!("{rule}.{field}")))
            {
                self.replace(&format!("reset.{field}"), &rule);
            }
        }
        self
    }

    /// The section's path, when it is there and not null.
    fn section(&self, path: &str) -> Option<String> {
        let set = |value: &&Origin| below(&value.path, path) && !value.value.is_null();
        self.values.iter().find(set).map(|_| path.to_owned())
    }

    fn replace(&mut self, general: &str, rule: &str) {
        let is_general = |value: &Origin| below(&value.path, general);
        let place = self.values.iter().position(is_general).unwrap_or(0);
        let specific: Vec<Origin> = self
            .values
            .iter()
            .filter(|value| below(&value.path, rule))
            .map(|value| Origin {
                path: value.path.replacen(rule, general, 1),
                rule: Some(value.path.clone()),
                ..value.clone()
            })
            .collect();
        self.values.retain(|value| !is_general(value));
        self.values.splice(place..place, specific);
    }
}

/// Whether the path is the section or lies in it.
fn below(path: &str, section: &str) -> bool {
    path.strip_prefix(section)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

pub(super) fn resolve(profile: Profile, overrides: &[&str]) -> Result<Policy> {
    let layers: Vec<Value> = overrides.iter().map(|json| object(json)).collect::<Result<_>>()?;
    combine(&profile.policy(), layers)
}

pub(super) fn change(policy: &Policy, overrides: &str) -> Result<Policy> {
    combine(policy, [object(overrides)?])
}

pub(super) fn explain(profile: Profile, layers: &[(&str, &str)]) -> Result<Explained> {
    let named: Vec<(&str, Value)> = layers
        .iter()
        .map(|(name, json)| Ok((*name, object(json)?)))
        .collect::<Result<_>>()?;
    let policy = combine(&profile.policy(), named.iter().map(|(_, value)| value.clone()))?;
    let effective = serde_json::to_value(&policy).expect("a policy has string keys only");
    let mut values = Vec::new();
    walk(&effective, &mut Vec::new(), &mut |path, value| {
        let sets = |layer: &Value| path.iter().try_fold(layer, |at, key| at.get(key)).is_some();
        let layer = named.iter().rev().find(|(_, layer)| sets(layer));
        values.push(Origin {
            path: path.join("."),
            value: value.clone(),
            layer: layer.map_or("profile", |(name, _)| *name).to_owned(),
            rule: None,
        });
    });
    Ok(Explained { policy, values })
}

/// Visits every value that is no section.
fn walk<'a>(value: &'a Value, path: &mut Vec<&'a str>, visit: &mut impl FnMut(&[&str], &Value)) {
    match value {
        Value::Object(section) if !section.is_empty() => {
            for (key, value) in section {
                path.push(key);
                walk(value, path, visit);
                path.pop();
            }
        }
        value => visit(path, value),
    }
}

/// The object in an override; a blank text is one without fields.
fn object(json: &str) -> Result<Value> {
    if json.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    let value: Value = serde_json::from_str(json)
        .map_err(|error| Error::invalid("overrides_json", format!("not JSON: {error}")))?;
    if value.is_object() {
        Ok(value)
    } else {
        Err(Error::invalid("overrides_json", "must be a JSON object"))
    }
}

fn combine(base: &Policy, layers: impl IntoIterator<Item = Value>) -> Result<Policy> {
    let mut merged = serde_json::to_value(base).expect("a policy has string keys only");
    for layer in layers {
        merge(&mut merged, layer);
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
        let hint = unknown.map_or(String::new(), |name| {
            let known: Vec<&str> = message.split('`').skip(3).step_by(2).collect();
            nearest(name, &known)
        });
        Error::invalid(field, format!("{message}{hint}"))
    })
}

/// `; did you mean …?` when one of the known names is near, else nothing.
pub(super) fn nearest(name: &str, known: &[&str]) -> String {
    let near = known
        .iter()
        .map(|known| (strsim::jaro_winkler(name, known), *known))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    near.map_or(String::new(), |(_, known)| format!("; did you mean `{known}`?"))
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
            (
                r#"{"reset":{"by_chat_kind":{"grup":{}}}}"#,
                "reset.by_chat_kind.grup",
            ),
            (r#"{"reset":{"triggers":["/new now"]}}"#, "reset.triggers[0]"),
            (r#"{"memory":{"vector_weight":2}}"#, "memory.vector_weight"),
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
    fn a_typo_is_answered_with_the_nearest_name() {
        for (json, name) in [
            (r#"{"queue":{"debounce":1}}"#, "`debounce_ms`"),
            (r#"{"quue":{}}"#, "`queue`"),
            (r#"{"queue":{"drop":"summarise"}}"#, "`summarize`"),
            (r#"{"reset":{"by_chat_kind":{"grup":{}}}}"#, "`group`"),
        ] {
            let error = resolve(Profile::Goclaw, &[json]).unwrap_err();
            assert!(error.message.contains(name), "{json}: {error}");
        }
    }

    #[test]
    fn every_value_names_the_layer_it_came_from() {
        let agent = r#"{"queue":{"capacity":3,"debounce_ms":0},"reset":{"by_channel":{"web.chat":{"idle":{"minutes":5}}}}}"#;
        let session = r#"{"queue":{"capacity":5},"context":{"prune":{"cache_ttl_ms":null}}}"#;
        let explained = explain(Profile::Openclaw, &[("agent", agent), ("session", session)]).unwrap();
        assert_eq!(
            explained.policy,
            resolve(Profile::Openclaw, &[agent, session]).unwrap()
        );
        let origin = |path: &str| {
            let found = explained.values.iter().find(|value| value.path == path);
            found
                .map(|value| (value.layer.as_str(), value.value.to_string()))
                .unwrap()
        };
        assert_eq!(origin("queue.capacity"), ("session", "5".into()));
        assert_eq!(origin("queue.debounce_ms"), ("agent", "0".into()));
        assert_eq!(
            origin("reset.by_channel.web.chat.idle.minutes"),
            ("agent", "5".into())
        );
        assert_eq!(origin("context.prune.cache_ttl_ms"), ("session", "null".into()));
        assert_eq!(origin("queue.drop"), ("profile", "\"summarize\"".into()));
    }

    #[test]
    fn a_reset_rule_is_the_most_specific_field_by_field() {
        let json = r#"{"reset":{"idle":{"minutes":60},"by_chat_kind":{"group":{"idle":{"minutes":5}},
            "channel":{"daily":{"at_hour":1,"time_zone":"UTC"}}},"by_channel":{"slack":{"idle":{"minutes":7}}}}}"#;
        let reset = resolve(Profile::Goclaw, &[json]).unwrap().reset;
        for (key, minutes, daily) in [
            ("agent:a:telegram:direct:1", 60, false),
            ("agent:a:main", 60, false),
            ("agent:a:telegram:group:1", 5, false),
            ("agent:a:discord:channel:1", 5, true),
            ("agent:a:slack:channel:1", 7, true),
        ] {
            let rule = reset.rule(&crate::SessionKey::parse(key).unwrap());
            assert_eq!(
                (rule.idle.unwrap().minutes, rule.daily.is_some()),
                (minutes, daily),
                "{key}"
            );
        }
    }

    #[test]
    fn what_is_explained_for_a_session_is_the_rule_in_force() {
        let agent = r#"{"reset":{"idle":{"minutes":60},"by_chat_kind":{"group":{"idle":{"minutes":5}}}}}"#;
        let account = r#"{"reset":{"by_channel":{"slack":{"daily":{"at_hour":1,"time_zone":"UTC"}}}}}"#;
        let explained = explain(Profile::Goclaw, &[("agent", agent), ("channel", account)]).unwrap();
        for (key, minutes, rule, hour) in [
            ("agent:a:telegram:direct:1", "60", None, None),
            (
                "agent:a:telegram:group:1",
                "5",
                Some("reset.by_chat_kind.group.idle.minutes"),
                None,
            ),
            (
                "agent:a:slack:channel:1",
                "5",
                Some("reset.by_chat_kind.group.idle.minutes"),
                Some("channel"),
            ),
        ] {
            let key = SessionKey::parse(key).unwrap();
            let within = explained.clone().within(&key);
            let find = |path: &str| within.values.iter().find(|value| value.path == path);
            let idle = find("reset.idle.minutes").unwrap();
            assert_eq!(
                (idle.value.to_string().as_str(), idle.rule.as_deref()),
                (minutes, rule)
            );
            let daily = find("reset.daily.at_hour").map(|value| value.layer.as_str());
            assert_eq!(daily, hour, "{key:?}");
            let shown = within
                .values
                .iter()
                .filter(|value| value.path == "reset.idle.minutes");
            assert_eq!(shown.count(), 1);
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
