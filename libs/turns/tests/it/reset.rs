use colloquy_turns::reset_due;
use colloquy_types::UnixMillis;
use colloquy_types::policy::ResetRule;

fn instant(text: &str) -> UnixMillis {
    UnixMillis(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
}

#[test]
fn every_reset_case_holds() {
    for case in crate::cases("reset.jsonl") {
        let rule: ResetRule = serde_json::from_value(case["policy"].clone()).unwrap();
        let (mut last, mut transcript, mut transcripts) = (None, 1, Vec::new());
        for message in case["messages"].as_array().unwrap() {
            let text = message.as_str().unwrap();
            if let Some(system) = text.strip_prefix("system ") {
                let _ = instant(system);
                transcripts.push(transcript);
                continue;
            }
            let now = instant(text);
            if last.is_some_and(|last| reset_due(&rule, last, now).is_some()) {
                transcript += 1;
            }
            last = Some(now);
            transcripts.push(transcript);
        }
        assert_eq!(serde_json::json!(transcripts), case["expect"], "{}", case["name"]);
    }
}

#[test]
fn a_doubled_hour_fires_at_the_first() {
    let rule: ResetRule =
        serde_json::from_str(r#"{"daily":{"at_hour":2,"time_zone":"Europe/Berlin"}}"#).unwrap();
    // 25 October 2026: 03:00 CEST becomes 02:00 CET again.
    let (before, first) = (
        instant("2026-10-25T01:59+02:00"),
        instant("2026-10-25T02:00+02:00"),
    );
    assert!(reset_due(&rule, before, first).is_some());
    assert!(reset_due(&rule, first, instant("2026-10-25T02:30+01:00")).is_none());
}
