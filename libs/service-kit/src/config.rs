//! Strict configuration: defaults, then a TOML file, then environment variables `COLLOQUY_SECTION__KEY`.
//!
//! An unknown key is an error that names the nearest known one. Only variables with `__` are settings:
//! Kubernetes injects others with the same prefix. The environment comes in as a map, so tests need none.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

const PREFIX: &str = "COLLOQUY_";

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {path}: {source}")]
    Read { path: String, source: std::io::Error },
    #[error("{path} is not TOML: {source}")]
    Parse {
        path: String,
        source: Box<toml::de::Error>,
    },
    #[error("setting `{path}`: {message}")]
    Setting { path: String, message: String },
}

/// The process's environment as a map; the only place where it is read.
pub fn environment() -> BTreeMap<String, String> {
    std::env::vars().collect()
}

/// # Errors
/// When the file cannot be read or parsed, a key is unknown, or a value does not fit.
pub fn load<T: DeserializeOwned>(
    file: Option<&Path>,
    environment: &BTreeMap<String, String>,
) -> Result<T, ConfigError> {
    let mut root = match file {
        Some(path) => read(path)?,
        None => Value::Object(Map::new()),
    };
    let mut from_environment = Vec::new();
    for (name, text) in environment {
        if let Some(path) = setting_path(name) {
            insert(&mut root, &path, text)?;
            from_environment.push(path.join("."));
        }
    }
    deserialize(root, from_environment)
}

fn read(path: &Path) -> Result<Value, ConfigError> {
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
        path: shown.clone(),
        source,
    })?;
    toml::from_str(&text).map_err(|source| ConfigError::Parse {
        path: shown,
        source: Box::new(source),
    })
}

fn setting_path(name: &str) -> Option<Vec<String>> {
    let rest = name.strip_prefix(PREFIX)?;
    rest.contains("__")
        .then(|| rest.split("__").map(str::to_ascii_lowercase).collect())
}

fn insert(root: &mut Value, path: &[String], text: &str) -> Result<(), ConfigError> {
    let mut node = root;
    for key in path {
        let Value::Object(object) = node else {
            return Err(ConfigError::Setting {
                path: path.join("."),
                message: "is not a section".into(),
            });
        };
        node = object
            .entry(key.clone())
            .or_insert_with(|| Value::Object(Map::new()));
    }
    *node = Value::String(text.to_owned());
    Ok(())
}

/// A variable is text; where the setting wants a number, a switch or a list, the text is read as TOML.
fn deserialize<T: DeserializeOwned>(mut root: Value, mut textual: Vec<String>) -> Result<T, ConfigError> {
    loop {
        let error = match serde_path_to_error::deserialize::<_, T>(&root) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let path = error.path().to_string();
        let position = textual.iter().position(|candidate| *candidate == path);
        let retyped = position.is_some_and(|_| retype(&mut root, &path));
        if let (Some(position), true) = (position, retyped) {
            textual.swap_remove(position);
            continue;
        }
        return Err(ConfigError::Setting {
            path,
            message: explain(&error.into_inner().to_string()),
        });
    }
}

fn retype(root: &mut Value, path: &str) -> bool {
    let pointer = format!("/{}", path.replace('.', "/"));
    let Some(node) = root.pointer_mut(&pointer) else {
        return false;
    };
    let Some(text) = node.as_str() else { return false };
    let parsed = toml::from_str::<BTreeMap<String, Value>>(&format!("value = {text}"));
    match parsed.ok().and_then(|mut table| table.remove("value")) {
        Some(value) => {
            *node = value;
            true
        }
        None => false,
    }
}

/// Adds the nearest known name to serde's message about an unknown field.
fn explain(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let Some(unknown) = quoted.next().filter(|_| message.starts_with("unknown field")) else {
        return message.to_owned();
    };
    let nearest =
        quoted.max_by(|a, b| strsim::jaro_winkler(a, unknown).total_cmp(&strsim::jaro_winkler(b, unknown)));
    match nearest {
        Some(name) => format!("unknown key `{unknown}`; did you mean `{name}`?"),
        None => format!("unknown key `{unknown}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Section {
        listen: String,
        limit: u32,
        on: bool,
        names: Vec<String>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Root {
        server: Section,
    }

    fn vars(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn variables_fill_text_numbers_switches_and_lists() {
        let root: Root = load(
            None,
            &vars(&[
                ("COLLOQUY_SERVER__LISTEN", "12345"),
                ("COLLOQUY_SERVER__LIMIT", "7"),
                ("COLLOQUY_SERVER__ON", "true"),
                ("COLLOQUY_SERVER__NAMES", "[\"a\"]"),
            ]),
        )
        .unwrap();
        assert_eq!(
            root.server,
            Section {
                listen: "12345".into(),
                limit: 7,
                on: true,
                names: vec!["a".into()]
            }
        );
    }

    #[test]
    fn what_an_orchestrator_injects_is_no_setting() {
        let root: Root = load(None, &vars(&[("COLLOQUY_ROUTER_SERVICE_HOST", "10.0.0.1")])).unwrap();
        assert_eq!(root, Root::default());
    }

    #[test]
    fn an_unknown_key_names_the_nearest_known_one() {
        let error = load::<Root>(None, &vars(&[("COLLOQUY_SERVER__LIMTI", "7")]))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("`limti`") && error.contains("did you mean `limit`"),
            "{error}"
        );
    }

    #[test]
    fn a_value_that_does_not_fit_names_its_setting() {
        let error = load::<Root>(None, &vars(&[("COLLOQUY_SERVER__LIMIT", "many")]))
            .unwrap_err()
            .to_string();
        assert!(error.contains("server.limit"), "{error}");
    }
}
