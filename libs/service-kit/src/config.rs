//! Strict configuration: defaults, then a TOML file, then environment variables `COLLOQUY_SECTION__KEY`.
//!
//! An unknown key is an error that names the nearest known one. Only variables with `__` are settings:
//! Kubernetes injects others with the same prefix. The environment comes in as a map, so tests need none.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

const PREFIX: &str = "COLLOQUY_";

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The cause is the source's to say.
    #[error("cannot read {path}")]
    Read { path: String, source: std::io::Error },
    /// Without the line itself: it may hold a key.
    #[error("{path}, line {line}, is not TOML: {message}")]
    Parse {
        path: String,
        line: usize,
        message: String,
    },
    #[error("setting `{path}`: {message}")]
    Setting { path: String, message: String },
}

/// The process's environment as a map; the only place where it is read.
///
/// # Errors
/// When a setting is not UTF-8. What else is none is somebody else's and is left out.
pub fn environment() -> Result<BTreeMap<String, String>, ConfigError> {
    readable(std::env::vars_os())
}

/// Names of the variables that a Colloquy would read, settings and others.
pub fn own_variables() -> Vec<OsString> {
    let names = std::env::vars_os().map(|(name, _)| name);
    names
        .filter(|name| name.to_string_lossy().starts_with(PREFIX))
        .collect()
}

fn readable(
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Result<BTreeMap<String, String>, ConfigError> {
    let mut read = BTreeMap::new();
    for (name, value) in variables {
        match (name.into_string(), value.into_string()) {
            (Ok(name), Ok(value)) => {
                read.insert(name, value);
            }
            (Ok(name), Err(_)) => {
                if let Some(path) = setting_path(&name) {
                    return Err(ConfigError::Setting {
                        path: path.join("."),
                        message: format!("the variable {name} is not UTF-8"),
                    });
                }
            }
            (Err(_), _) => {}
        }
    }
    Ok(read)
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
    toml::from_str(&text).map_err(|error| ConfigError::Parse {
        path: shown,
        line: error.span().map_or(1, |span| line_of(&text, span.start)),
        message: error.message().to_owned(),
    })
}

fn line_of(text: &str, byte: usize) -> usize {
    1 + text.bytes().take(byte).filter(|byte| *byte == b'\n').count()
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
    fn a_variable_that_is_not_utf8_is_an_error_only_where_it_is_a_setting() {
        use std::os::unix::ffi::OsStringExt;
        let broken = || OsString::from_vec(vec![b'a', 0xff]);
        let others = [
            ("FOO".into(), broken()),
            (broken(), "x".into()),
            ("COLLOQUY_SERVER__LIMIT".into(), "7".into()),
        ];
        assert_eq!(
            readable(others.into_iter()).unwrap(),
            vars(&[("COLLOQUY_SERVER__LIMIT", "7")])
        );
        let setting = [("COLLOQUY_SERVER__LISTEN".into(), broken())];
        let error = readable(setting.into_iter()).unwrap_err().to_string();
        assert!(error.contains("server.listen"), "{error}");
    }

    #[test]
    fn a_file_that_cannot_be_used_is_said_once_and_without_its_secrets() {
        let said = |file: &Path| {
            let error = load::<Root>(Some(file), &BTreeMap::new()).unwrap_err();
            let source = std::error::Error::source(&error).map(ToString::to_string);
            (error.to_string(), source.unwrap_or_default())
        };
        let (text, cause) = said(Path::new("/no/such/file.toml"));
        assert!(
            text.contains("/no/such/file.toml") && !text.contains(&cause),
            "{text}: {cause}"
        );
        let file = std::env::temp_dir().join(format!("colloquy-{}.toml", uuid::Uuid::new_v4()));
        std::fs::write(&file, "[server]\nlisten = \"s3cret\n").unwrap();
        let (text, cause) = said(&file);
        std::fs::remove_file(&file).unwrap();
        assert!(
            text.contains("line 2") && !format!("{text}{cause}").contains("s3cret"),
            "{text}: {cause}"
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
