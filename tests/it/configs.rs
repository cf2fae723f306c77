//! Sample configurations are configurations.

use colloquy::Config;
use colloquy_service_kit::config::load;
use std::collections::BTreeMap;
use std::path::Path;

#[test]
fn every_sample_is_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .join("deploy/config");
    let mut read = 0;
    for item in std::fs::read_dir(folder).unwrap() {
        let path = item.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let config: Config = load(Some(&path), &BTreeMap::new())
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            drop(config);
            read += 1;
        }
    }
    assert!(read > 0, "no samples");
}

#[test]
fn a_typo_is_named() {
    let variables = BTreeMap::from([("COLLOQUY_SERVER__GRPC_LISTN".to_owned(), "x".to_owned())]);
    let error = load::<Config>(None, &variables).err().unwrap().to_string();
    assert!(error.contains("did you mean `grpc_listen`"), "{error}");
}

#[test]
fn the_reference_is_a_configuration_and_shows_no_secret() {
    let mut config = Config::default();
    config.auth.service_key = "svc_secret".into();
    config.model.api_key = "sk-secret".into();
    let text = config.redacted().unwrap();
    assert!(!text.contains("secret\""), "{text}");
    toml::from_str::<toml::Table>(&text).unwrap();
}
