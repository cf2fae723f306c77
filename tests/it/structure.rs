//! The architecture as a test: who may use whom, and what stands where.

use cargo_metadata::{DependencyKind, MetadataCommand};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Crates of the workspace and those of the workspace they use; with or without dev-dependencies.
fn arrows(with_tests: bool) -> BTreeMap<String, Vec<String>> {
    let mut metadata = MetadataCommand::new();
    metadata
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .other_options(["--offline".to_owned()]);
    let metadata = metadata.exec().unwrap();
    let short = |name: &str| name.strip_prefix("colloquy-").unwrap_or(name).to_owned();
    let used = |package: &cargo_metadata::Package| {
        let own = package
            .dependencies
            .iter()
            .filter(|used| with_tests || used.kind != DependencyKind::Development);
        own.filter(|used| used.path.is_some())
            .map(|used| short(&used.name))
            .collect::<Vec<_>>()
    };
    metadata
        .packages
        .iter()
        .map(|package| (short(&package.name), used(package)))
        .collect()
}

#[test]
fn arrows_point_down() {
    let libraries = [
        "turns",
        "context",
        "proto",
        "storage",
        "coord",
        "bus",
        "llm",
        "service-kit",
    ];
    let services = ["ingress", "router", "history", "compactor", "memory", "control"];
    let allowed = |name: &str, used: &str| match name {
        "types" => false,
        name if libraries.contains(&name) => used == "types",
        "client" => ["types", "proto"].contains(&used),
        "storage-pg" | "storage-sqlite" => ["types", "storage"].contains(&used),
        name if services.contains(&name) => used == "types" || libraries.contains(&used) || used == "client",
        "colloquy" => used != "tests",
        "tests" => true,
        other => panic!("`{other}` has no place in the architecture"),
    };
    let arrows = arrows(false);
    assert!(arrows.len() >= 20, "the workspace was read: {arrows:?}");
    for (name, used) in arrows {
        for other in used {
            assert!(allowed(&name, &other), "{name} must not use {other}");
        }
    }
}

#[test]
fn nothing_sees_the_tests() {
    for (name, used) in arrows(true) {
        assert!(
            !used.contains(&"tests".to_owned()),
            "{name} must not use the tests"
        );
    }
}

#[test]
fn only_wiring_names_the_stores() {
    let mut named = Vec::new();
    walk(&root().join("services"), &mut |path, text| {
        if text.contains("colloquy_storage_pg") || text.contains("colloquy_storage_sqlite") {
            named.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    });
    assert!(!named.is_empty(), "the sources were read");
    assert!(named.iter().all(|file| file == "wiring.rs"), "{named:?}");
}

#[test]
fn a_main_is_a_dozen_lines() {
    walk(&root().join("services"), &mut |path, text| {
        if path.ends_with("src/main.rs") {
            assert!(text.lines().count() <= 40, "{}", path.display());
        }
    });
}

/// Rust sources under a folder.
fn walk(folder: &Path, visit: &mut impl FnMut(&Path, &str)) {
    for item in std::fs::read_dir(folder).unwrap() {
        let path = item.unwrap().path();
        if path.is_dir() {
            walk(&path, visit);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            visit(&path, &std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn the_top_level_is_what_it_should_be() {
    let listed = std::process::Command::new("git")
        .arg("-C")
        .arg(root())
        .args(["ls-files"])
        .output();
    let Some(listed) = listed.ok().filter(|listed| listed.status.success()) else {
        println!("skipped: not a git checkout");
        return;
    };
    let text = String::from_utf8(listed.stdout).unwrap();
    let mut top: Vec<&str> = text.lines().filter_map(|line| line.split('/').next()).collect();
    top.sort_unstable();
    top.dedup();
    top.retain(|name| !name.starts_with('.'));
    let expected = [
        "Cargo.lock",
        "Cargo.toml",
        "LICENSE",
        "README.md",
        "clippy.toml",
        "deploy",
        "helm",
        "libs",
        "proto",
        "rust-toolchain.toml",
        "rustfmt.toml",
        "services",
        "tests",
    ];
    assert_eq!(top, expected);
}

#[test]
fn one_tls_provider_is_in_the_tree() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    assert!(
        !lock.contains("name = \"aws-lc"),
        "two TLS providers panic at run time"
    );
}
