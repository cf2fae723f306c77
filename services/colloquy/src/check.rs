//! What is wrong with the settings, as far as they alone can tell: nothing is connected to.

use crate::cli::Refused;
use crate::config::Config;
use crate::wiring;
use colloquy_service_kit::client::{ServiceKey, check_address};
use colloquy_types::{Error, Result};

/// Shortest service key, in characters.
const LEAST_KEY: usize = 32;

/// Every setting that cannot work, by its whole path.
pub fn problems(config: &Config) -> Vec<Error> {
    let below = |section: &'static str| move |problem: Error| problem.within(section);
    let mut problems: Vec<Error> = config
        .server
        .problems()
        .into_iter()
        .map(below("server"))
        .collect();
    problems.extend(config.telemetry.problems().into_iter().map(below("telemetry")));
    problems.extend(keys(config));
    problems.extend(wiring::problems(config));
    problems.extend(addresses(config));
    problems.extend(config.model.problems().into_iter().map(below("model")));
    problems.extend(numbers(config));
    problems
}

/// # Errors
/// All problems in one text, with exit code 2.
pub fn check(config: &Config) -> Result<(), Refused> {
    let problems = problems(config);
    if problems.is_empty() {
        return Ok(());
    }
    let lines = problems.iter().map(|problem| {
        let setting = problem.field.as_deref().unwrap_or_default();
        format!("\n  setting `{setting}`: {}", problem.message)
    });
    Err(Refused {
        message: format!("the settings cannot work:{}", lines.collect::<String>()),
        exit_code: 2,
    })
}

/// # Errors
/// `INVALID_FIELD` when it is too short to keep anybody out.
pub fn service_key(key: &str) -> Result<ServiceKey> {
    if key.len() < LEAST_KEY {
        let message = format!("must have at least {LEAST_KEY} characters, the same everywhere");
        return Err(Error::invalid("auth.service_key", message));
    }
    ServiceKey::new(key)
}

fn keys(config: &Config) -> Vec<Error> {
    let auth = &config.auth;
    let mut problems: Vec<Error> = service_key(&auth.service_key).err().into_iter().collect();
    if !auth.operator_key.bytes().all(|byte| byte.is_ascii_graphic()) {
        problems.push(Error::invalid("auth.operator_key", "must be printable ASCII"));
    }
    if !auth.operator_key.is_empty() && auth.operator_key == auth.service_key {
        problems.push(Error::invalid("auth.operator_key", "must not be the service key"));
    }
    problems
}

fn addresses(config: &Config) -> Vec<Error> {
    let services = &config.services;
    let named = [
        ("services.control", &services.control),
        ("services.history", &services.history),
        ("services.router", &services.router),
        ("services.memory", &services.memory),
        ("services.compactor", &services.compactor),
        ("services.ingress", &services.ingress),
    ];
    let given = named.into_iter().filter(|(_, url)| !url.is_empty());
    given
        .filter_map(|(setting, url)| check_address(setting, url).err())
        .collect()
}

/// Numbers of which zero would mean never, or without a pause.
fn numbers(config: &Config) -> Vec<Error> {
    let numbers = [
        ("history.sweep_ms", config.history.sweep_ms),
        ("history.relay_ms", config.history.relay_ms),
        ("history.republish_ms", config.history.republish_ms),
        ("history.jobs_per_tenant", config.history.jobs_per_tenant.into()),
        ("router.sweep_ms", config.router.sweep_ms),
        (
            "compactor.concurrency",
            u64::from(config.compactor.concurrency > 0),
        ),
        ("postgres.max_connections", config.postgres.max_connections.into()),
    ];
    let zero = numbers.into_iter().filter(|(_, number)| *number == 0);
    zero.map(|(setting, _)| Error::invalid(setting, "must be at least 1"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use colloquy_service_kit::config::load;
    use std::collections::BTreeMap;
    use std::path::Path;

    const KEY: &str = "0123456789abcdef0123456789abcdef";

    /// The settings that are wrong when these are given beside a good service key.
    fn wrong(settings: &[(&str, &str)]) -> Vec<String> {
        let mut variables = BTreeMap::from([("COLLOQUY_AUTH__SERVICE_KEY".to_owned(), KEY.to_owned())]);
        for (setting, value) in settings {
            let name = format!("COLLOQUY_{}", setting.replace('.', "__").to_uppercase());
            variables.insert(name, (*value).to_owned());
        }
        let config: Config = load(None, &variables).unwrap();
        let fields = problems(&config)
            .into_iter()
            .map(|problem| problem.field.unwrap_or_default());
        fields.collect()
    }

    #[test]
    fn a_setting_that_cannot_work_is_named() {
        assert!(wrong(&[]).is_empty());
        for (setting, value) in [
            ("auth.service_key", "short"),
            ("auth.operator_key", "two words"),
            ("auth.operator_key", KEY),
            ("postgres.url", "foo"),
            ("postgres.url", "mysql://host/db"),
            ("postgres.owner_url", "postgres://host:port/db"),
            ("postgres.max_connections", "0"),
            ("redis.url", "foo"),
            ("redis.url", "http://cache"),
            ("nats.url", "not a url"),
            ("nats.url", "nats://host:port"),
            ("server.grpc_listen", "nonsense"),
            ("server.http_listen", "127.0.0.1:7100"),
            ("server.admin_listen", "1.2.3.4:99999"),
            ("server.call_limit_s", "0"),
            ("telemetry.log", "info,[broken"),
            ("services.history", "???"),
            ("services.router", "router:7100"),
            ("services.control", "http://"),
            ("model.timeout_s", "0"),
            ("history.sweep_ms", "0"),
            ("history.relay_ms", "0"),
            ("history.republish_ms", "0"),
            ("history.jobs_per_tenant", "0"),
            ("router.sweep_ms", "0"),
            ("compactor.concurrency", "0"),
        ] {
            assert_eq!(wrong(&[(setting, value)]), [setting], "{value}");
        }
        assert_eq!(
            wrong(&[("model.provider", "openai")]),
            ["model.name", "model.api_key"]
        );
        let several = [("postgres.url", "foo"), ("services.history", "???")];
        assert_eq!(wrong(&several), ["postgres.url", "services.history"]);
    }

    #[test]
    fn what_is_said_holds_no_secret() {
        let secrets = [
            ("postgres.url", "postgres//u:s3cret@h/d"),
            ("postgres.owner_url", "postgres://u:s3cret@h:port/d"),
            ("redis.url", "redis//:s3cret@h"),
            ("nats.url", "nats://s3cret@h:port"),
            ("services.history", "u:s3cret@h:7100"),
            ("services.router", "grpc://u:s3cret@h:7100"),
        ];
        let variables = secrets
            .iter()
            .map(|(setting, value)| {
                let name = format!("COLLOQUY_{}", setting.replace('.', "__").to_uppercase());
                (name, (*value).to_owned())
            })
            .collect();
        let config: Config = load(None, &variables).unwrap();
        let refused = check(&config).unwrap_err();
        assert_eq!(refused.exit_code, 2);
        for (setting, _) in secrets {
            assert!(
                refused.message.contains(setting),
                "{setting}: {}",
                refused.message
            );
        }
        assert!(!refused.message.contains("s3cret"), "{}", refused.message);
    }

    #[test]
    fn the_samples_lack_nothing_but_their_secrets() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/config");
        let mut seen = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let config: Config = load(Some(&path), &BTreeMap::new()).unwrap();
            let wrong = problems(&config);
            let others: Vec<_> = wrong
                .iter()
                .filter(|problem| problem.field.as_deref() != Some("auth.service_key"))
                .collect();
            assert!(others.is_empty(), "{}: {others:?}", path.display());
            seen += 1;
        }
        assert!(seen >= 3);
    }
}
