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

/// What this machine's compiler builds for by itself.
fn host() -> String {
    let told = std::process::Command::new("rustc").arg("-vV").output().unwrap();
    let text = String::from_utf8(told.stdout).unwrap();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.unwrap().to_owned()
}

/// The resolved tree, not the lock file, which also names what nothing asks for and shows no features.
#[test]
fn one_tls_provider_is_in_the_tree() {
    let mut metadata = MetadataCommand::new();
    metadata.manifest_path(root().join("Cargo.toml")).other_options(
        ["--offline", "--locked", "--filter-platform"]
            .map(str::to_owned)
            .into_iter()
            .chain([host()])
            .collect::<Vec<_>>(),
    );
    let metadata = metadata.exec().unwrap();
    let resolved = metadata.resolve.unwrap();
    let name = |id: &cargo_metadata::PackageId| {
        let package = metadata.packages.iter().find(|package| package.id == *id);
        package.unwrap().name.to_string()
    };
    let names: Vec<String> = resolved.nodes.iter().map(|node| name(&node.id)).collect();
    assert!(names.iter().any(|name| name == "ring"), "the tree was read");
    let second = names.iter().find(|name| name.starts_with("aws-lc"));
    assert_eq!(second, None, "two TLS providers panic at run time");
    for node in resolved
        .nodes
        .iter()
        .filter(|node| name(&node.id).contains("rustls"))
    {
        let asks = node.features.iter().find(|feature| feature.contains("aws"));
        assert_eq!(asks, None, "{}", node.id);
    }
}

/// What must hold however the product runs.
const BOTH_WAYS: &[&str] = &[
    "accounts",
    "bad_input",
    "context",
    "contract",
    "internal",
    "isolation",
    "lists",
    "rights",
    "turns",
    "workers",
];

#[test]
fn tests_across_services_run_both_ways() {
    let mut stamped = Vec::new();
    walk(&root().join("tests/it"), &mut |path, text| {
        let module = path.file_stem().unwrap().to_string_lossy().into_owned();
        if module == "structure" {
            return;
        }
        for past_the_stamp in ["Server::embedded(", "Server::distributed(", "embedded::start"] {
            assert!(
                !text.contains(past_the_stamp),
                "{module}: `{past_the_stamp}`: take a `Server` and name the test in `both_ways!`"
            );
        }
        if text.contains("\nboth_ways! {") {
            assert!(
                !text.contains("#[tokio::test"),
                "{module}: a test beside `both_ways!` runs one way only"
            );
            stamped.push(module);
        }
    });
    stamped.sort();
    assert_eq!(stamped, BOTH_WAYS);
}

/// Every backend that runs a conformance suite: crate, factory, and what the factory makes.
const SUITES: &[(&str, &str, &str)] = &[
    ("bus", "jetstream", "open().await?"),
    ("bus", "memory", "MemoryBus"),
    ("coord", "memory", "MemoryCoord"),
    ("coord", "redis", "RedisCoord"),
    ("storage-pg", "server_store", "empty_database().await?"),
    ("storage-sqlite", "file_store", "SqliteOptions::file"),
    ("storage-sqlite", "memory_store", "SqliteOptions::memory"),
];

/// The body of a function that begins a line.
fn body<'a>(text: &'a str, function: &str) -> Option<&'a str> {
    let rest = &text[text.find(&format!("async fn {function}()"))?..];
    rest.split("\n}").next()
}

#[test]
fn every_backend_runs_its_suite() {
    let mut run = Vec::new();
    for crate_name in ["bus", "coord", "storage-pg", "storage-sqlite"] {
        let (mut stamped, mut sources) = (Vec::new(), String::new());
        walk(
            &root().join("libs").join(crate_name).join("tests"),
            &mut |_, text| {
                // A line that is commented out, or asks to skip a category, is no whole suite.
                let lines = text.lines().map(str::trim);
                stamped.extend(lines.filter_map(|line| {
                    let call = line.strip_prefix("colloquy_storage::").unwrap_or(line);
                    call.strip_prefix("conformance!(")?
                        .strip_suffix(");")
                        .map(str::to_owned)
                }));
                sources.push_str(text);
            },
        );
        stamped.sort();
        for factory in stamped {
            let made = SUITES
                .iter()
                .find(|(name, known, _)| (*name, *known) == (crate_name, &factory));
            let (.., made) = made.unwrap_or_else(|| panic!("{crate_name}: `{factory}` is not listed"));
            let body = body(&sources, &factory).unwrap_or_else(|| panic!("{crate_name}: no `{factory}`"));
            assert!(body.contains(made), "{crate_name}: `{factory}` makes no {made}");
            assert!(!sources.contains("#[ignore"), "{crate_name}: a test is ignored");
            run.push((crate_name, factory));
        }
    }
    println!("suites ran on: {run:?}");
    let run: Vec<_> = run
        .iter()
        .map(|(name, factory)| (*name, factory.as_str()))
        .collect();
    let listed: Vec<_> = SUITES
        .iter()
        .map(|(name, factory, _)| (*name, *factory))
        .collect();
    assert_eq!(run, listed);
}
