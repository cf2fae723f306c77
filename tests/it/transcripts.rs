//! `demo --transcript` over real transcripts: nothing lost, doubled or moved, no invalid context.

use colloquy_tests::cluster::program;
use colloquy_tests::servers::{database, own};
use colloquy_tests::shared::folder;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn play(arguments: &[&str]) -> Value {
    let played = Command::new(program())
        .arg("demo")
        .arg("--json")
        .args(arguments)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&played.stdout).into_owned();
    let said = String::from_utf8_lossy(&played.stderr).into_owned();
    assert!(played.status.success(), "{arguments:?}: {text} {said}");
    let summary: Value = serde_json::from_str(text.trim()).unwrap();
    for count in ["lost", "duplicated", "out_of_order"] {
        assert_eq!(summary[count], 0, "{summary}");
    }
    assert_eq!(summary["context"]["invalid"], 0, "{summary}");
    summary
}

fn transcripts(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.join("swe-agent"), folder.join("tau-bench")];
    while let Some(folder) = open.pop() {
        for item in std::fs::read_dir(folder).into_iter().flatten() {
            let path = item.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn the_bundled_conversation_plays_embedded() {
    let summary = play(&[]);
    assert!(summary["compactions"].as_i64().unwrap() >= 1, "{summary}");
    assert!(summary["memories"].as_i64().unwrap() >= 3, "{summary}");
    assert_eq!(summary["turns"], summary["committed"], "{summary}");
}

/// The messages of a run, as they were read back.
fn played_entries(arguments: &[&str]) -> (Value, String) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut all = vec!["--entries", file.path().to_str().unwrap()];
    all.extend(arguments);
    let summary = play(&all);
    (summary, std::fs::read_to_string(file.path()).unwrap())
}

/// Both ways to run give the same counts and, message by message, the same transcripts. Redis and NATS are the test's
/// own: two deployments that shared them would take each other's jobs.
async fn compare(test: &str, arguments: &[&str]) {
    let Some(postgres) = database().await else { return };
    let redis = own("redis", &format!("redis{test}"));
    let nats = own("nats", &format!("nats{test}"));
    let stores = format!("postgres={postgres},redis={redis},nats={nats}");
    let (embedded, here) = played_entries(arguments);
    let (distributed, there) = played_entries(&[arguments, &["--stores", &stores]].concat());
    assert!(!here.is_empty());
    for (place, (one, other)) in here.lines().zip(there.lines()).enumerate() {
        assert_eq!(one, other, "message {place}");
    }
    assert_eq!(here.lines().count(), there.lines().count());
    // Not memories: which of two like facts stands depends on where the extraction came by.
    for count in ["accepted", "turns", "committed", "entries", "deliveries"] {
        assert_eq!(embedded[count], distributed[count], "{count}");
    }
}

#[tokio::test]
async fn embedded_and_distributed_store_the_same_entries() {
    compare("bundled", &[]).await;
}

#[tokio::test]
async fn embedded_and_distributed_store_the_same_entries_of_real_transcripts() {
    let Some(folder) = folder("data/transcripts") else {
        return;
    };
    let files = transcripts(&folder);
    assert!(!files.is_empty());
    for file in files {
        compare("real", &["--transcript", file.to_str().unwrap()]).await;
    }
}
