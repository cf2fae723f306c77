//! Session keys against the acceptance cases, and their algebra.

#![allow(clippy::unwrap_used)] // a test may panic

use colloquy_types::key::{ChatKind, ChatType, DmScope, KeyRoute, Place};
use colloquy_types::policy::Profile;
use colloquy_types::{AgentId, SessionKey};
use proptest::prelude::*;
use std::path::PathBuf;

fn cases(name: &str) -> Option<Vec<serde_json::Value>> {
    let default = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("COLLOQUY_SHARED").map_or_else(default, PathBuf::from);
    let Ok(text) = std::fs::read_to_string(shared.join("cases").join(name)) else {
        println!("skipped: no acceptance cases here");
        return None;
    };
    Some(
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
    )
}

#[test]
fn canonical_strings_and_errors_are_those_of_the_cases() {
    for case in cases("keys.jsonl").unwrap_or_default() {
        let name = case["name"].as_str().unwrap();
        if let Some(text) = case["parse"].as_str() {
            let profile = Profile::parse(case["profile"].as_str().unwrap()).unwrap();
            let key = SessionKey::parse_for(profile, text).unwrap();
            assert_eq!(key.canonical(), case["canonical"].as_str().unwrap(), "{name}");
            continue;
        }
        let route: KeyRoute = serde_json::from_value(case["route"].clone()).unwrap();
        let scope = case
            .get("dm_scope")
            .map_or(DmScope::default(), |s| serde_json::from_value(s.clone()).unwrap());
        match (route.resolve(scope), case["error"].as_str()) {
            (Ok(key), None) => {
                if let Some(canonical) = case["canonical"].as_str() {
                    assert_eq!(key.canonical(), canonical, "{name}");
                }
                assert_eq!(SessionKey::parse(&key.canonical()).unwrap(), key, "{name}");
            }
            (Err(error), Some(field)) => assert_eq!(error.field.as_deref(), Some(field), "{name}"),
            (result, expected) => panic!("{name}: {result:?}, expected error {expected:?}"),
        }
    }
}

#[test]
fn a_second_spelling_of_a_key_is_refused() {
    for text in [
        "agent:default:telegram:direct:%35",
        "agent:default:telegram:direct:a%3ab",
        "agent:default:telegram:direct:5:thread:1:topic:2",
        "agent:default:telegram:direct",
        "agent:default:telegram:dm:5",
        "agent:default:",
        "agent:default:main:",
        "agent:Default:main",
        "telegram:direct:5",
        "agent:default:telegram:direct:%FF",
        "agent:default:telegram:direct: ",
    ] {
        assert!(SessionKey::parse(text).is_err(), "{text}");
    }
}

#[test]
fn the_old_direct_marker_is_read_under_openclaw_only() {
    for (old, now) in [
        ("agent:main:telegram:dm:5", "agent:main:telegram:direct:5"),
        (
            "agent:main:telegram:account:b:dm:5",
            "agent:main:telegram:account:b:direct:5",
        ),
        (
            "agent:main:telegram:group:dm:thread:dm",
            "agent:main:telegram:group:dm:thread:dm",
        ),
        ("agent:main:cron:dm", "agent:main:cron:dm"),
    ] {
        assert_eq!(
            SessionKey::parse_for(Profile::Openclaw, old).unwrap().canonical(),
            now
        );
    }
    assert!(SessionKey::parse_for(Profile::Goclaw, "agent:main:telegram:dm:5").is_err());
}

#[test]
fn only_structure_and_control_characters_are_encoded() {
    let place = Place::Subagent("a%b:c/d é語\n@?#".into());
    let key = SessionKey::new(AgentId::parse("a").unwrap(), place).unwrap();
    assert_eq!(key.canonical(), "agent:a:subagent:a%25b%3Ac%2Fd é語%0A@?#");
    assert_eq!(SessionKey::parse(&key.canonical()).unwrap(), key);
}

#[test]
fn a_key_says_who_can_be_there() {
    for (text, chat_type, thread) in [
        ("agent:a:telegram:direct:1:thread:5", ChatType::Direct, Some("5")),
        ("agent:a:main", ChatType::Direct, None),
        ("agent:a:telegram:group:1:topic:9", ChatType::Group, Some("9")),
        ("agent:a:discord:channel:1:user:2", ChatType::Group, None),
        ("agent:a:team:red:1", ChatType::Group, None),
        ("agent:a:cron:nightly", ChatType::Other, None),
    ] {
        let key = SessionKey::parse(text).unwrap();
        assert_eq!((key.chat_type(), key.thread()), (chat_type, thread), "{text}");
    }
}

#[test]
fn an_overlong_key_is_refused() {
    let route = KeyRoute {
        agent: "a".into(),
        channel: Some("telegram".into()),
        kind: "direct".into(),
        chat: Some("x".repeat(1_024)),
        ..KeyRoute::default()
    };
    assert_eq!(
        route.resolve(DmScope::default()).unwrap_err().field.as_deref(),
        Some("key")
    );
}

fn component() -> impl Strategy<Value = String> {
    proptest::string::string_regex("[a-zA-Z0-9:/%@ ._語é😀+-]{1,20}")
        .unwrap()
        .prop_filter("not blank", |text| !text.trim().is_empty())
}

fn place() -> impl Strategy<Value = Place> {
    let kind = prop_oneof![
        Just(ChatKind::Direct),
        Just(ChatKind::Group),
        Just(ChatKind::Channel),
        Just(ChatKind::Room)
    ];
    let maybe = || proptest::option::of(component());
    let chat = (
        ("[a-z][a-z0-9_-]{0,10}", maybe(), kind),
        (component(), maybe(), maybe(), maybe()),
    )
        .prop_map(
            |((channel, account, kind), (chat, user, topic, thread))| Place::Chat {
                channel: format!("x{channel}"),
                account,
                kind,
                chat,
                user,
                topic,
                thread,
            },
        );
    prop_oneof![
        chat,
        component().prop_map(Place::Person),
        Just(Place::Main),
        component().prop_map(Place::Subagent),
        (component(), maybe()).prop_map(|(job, run)| Place::Cron { job, run }),
        (component(), maybe()).prop_map(|(peer, subject)| Place::Peer { peer, subject }),
        (component(), maybe()).prop_map(|(user, session)| Place::App { user, session }),
        (component(), component()).prop_map(|(kind, event)| Place::WebhookEvent { kind, event }),
        (component(), component()).prop_map(|(name, batch)| Place::ProcedureBatch { name, batch }),
        (component(), component()).prop_map(|(team, chat)| Place::Team { team, chat }),
    ]
}

proptest! {
    #[test]
    fn a_key_parses_back_exactly(place in place()) {
        let key = SessionKey::new(AgentId::parse("default").unwrap(), place).unwrap();
        prop_assert_eq!(SessionKey::parse(&key.canonical()).unwrap(), key);
    }

    #[test]
    fn what_parses_renders_the_same(text in "agent:a:[a-z:%/0-9]{0,30}") {
        if let Ok(key) = SessionKey::parse(&text) {
            prop_assert_eq!(key.canonical(), text);
        }
    }
}
