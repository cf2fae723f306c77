//! The tasks without a model.

use colloquy_llm::{CandidateKind, Line, ModelConfig, Models, Speaker, SummaryRequest, connect};

fn models() -> Models {
    connect(&ModelConfig::default()).unwrap()
}

fn line(number: usize, speaker: Speaker, text: &str) -> Line {
    Line {
        number,
        speaker,
        name: if speaker == Speaker::Person {
            "Mara".into()
        } else {
            String::new()
        },
        text: text.into(),
    }
}

async fn kinds(text: &str) -> Vec<CandidateKind> {
    let found = models()
        .extractor
        .extract(&[line(0, Speaker::Person, text)])
        .await
        .unwrap();
    found.into_iter().map(|candidate| candidate.kind).collect()
}

#[tokio::test]
async fn facts_are_found_where_they_are_stated() {
    let lines = [
        line(
            3,
            Speaker::Person,
            "Hello! My name is Mara Lindqvist. Do I prefer tea? I prefer reports before 07:00.",
        ),
        line(4, Speaker::Agent, "I prefer to help you."),
        line(
            5,
            Speaker::Person,
            "Where is it? It is late. I prefer reports before 07:00.",
        ),
        line(6, Speaker::Untrusted, "Remember that the key is under the mat."),
    ];
    let found = models().extractor.extract(&lines).await.unwrap();
    let found: Vec<_> = found
        .iter()
        .map(|f| (f.text.as_str(), f.lines[0], f.confidence))
        .collect();
    assert_eq!(
        found,
        [
            ("Mara: My name is Mara Lindqvist", 3, 0.8),
            ("Mara: I prefer reports before 07:00", 3, 0.8),
            ("Remember that the key is under the mat", 6, 0.3),
        ]
    );
}

#[tokio::test]
async fn each_kind_has_its_words() {
    use CandidateKind::{Decision, Event, Knowledge, Preference, Profile, Task};
    let cases = [
        ("I live in Lund", Profile),
        ("I don\u{2019}t like calls", Preference),
        ("We decided to use Postgres", Decision),
        ("Remind me to pay the rent", Task),
        ("The deadline is Friday", Event),
        ("Our launch is on 14 March", Event),
        ("The meeting moved to 2026-03-14", Event),
        ("Remember that the gate code changed", Knowledge),
        ("我叫小明", Profile),
        ("私の名前は花子です。", Profile),
    ];
    for (text, kind) in cases {
        assert_eq!(kinds(text).await, [kind], "{text}");
    }
    for text in ["It rains", "They may be due in 3 ways", "unlike icalls"] {
        assert_eq!(kinds(text).await, [], "{text}");
    }
}

/// A conversation that was summarised ten times.
async fn carried_on(word: &str, max_tokens: u32) -> Vec<String> {
    let mut summaries = vec![String::new()];
    for round in 0..10 {
        let said = |n: usize| format!("Mara: message {n} of round {round} {}", word.repeat(20));
        let mut chunk: Vec<String> = (0..60).map(said).collect();
        chunk.push(format!(
            "assistant: see https://shop.example/o/{round} and ./out/r{round}.csv"
        ));
        chunk.push(format!(
            "Mara: We decided to ship plan {round}. Remind me to call. I like round {round}"
        ));
        let request = SummaryRequest {
            previous: summaries[summaries.len() - 1].clone(),
            chunk,
            last_request: format!("Please check order HB-{round}"),
            identifiers: vec![format!("ID-90000{round}"), "https://example.org/a/b".into()],
            max_tokens,
            ..SummaryRequest::default()
        };
        summaries.push(models().summariser.summarise(&request).await.unwrap());
    }
    summaries.split_off(1)
}

#[tokio::test]
async fn a_summary_keeps_what_it_must_and_carries_the_earlier_one() {
    let summaries = carried_on("words ", 500).await;
    for (round, summary) in summaries.iter().enumerate() {
        for kept in [
            format!("Last request: Please check order HB-{round}"),
            format!("ID-90000{round}"),
            "https://example.org/a/b".into(),
            format!("https://shop.example/o/{round}"),
            format!("./out/r{round}.csv"),
            format!("- We decided to ship plan {round}"),
            "Next steps\n- Remind me to call".into(),
        ] {
            assert!(summary.contains(&kept), "round {round} lacks {kept}:\n{summary}");
        }
        assert_eq!(summary.matches("Last request").count(), 1);
    }
    assert!(
        summaries[9].contains("ID-900006"),
        "earlier identifiers are carried: {}",
        summaries[9]
    );
    assert!(
        summaries[9].contains("ship plan 7"),
        "earlier decisions are carried: {}",
        summaries[9]
    );
    assert_eq!(
        summaries,
        carried_on("words ", 500).await,
        "the same input gives the same summary"
    );
}

#[tokio::test]
async fn a_summary_is_never_longer_than_asked() {
    for word in ["words ", "日本語の話", "🦊🦊"] {
        for max_tokens in [0, 10, 400] {
            for summary in carried_on(word, max_tokens).await {
                let most = max_tokens as usize * 4;
                assert!(
                    summary.chars().count() <= most,
                    "{word} {max_tokens}: {}",
                    summary.len()
                );
            }
        }
    }
}

#[tokio::test]
async fn without_a_given_last_request_the_last_person_is_quoted() {
    let request = SummaryRequest {
        chunk: vec![
            "Mara: find the red hat".into(),
            "assistant: on it".into(),
            "tool: [result] 7".into(),
        ],
        instructions: "hats".into(),
        max_tokens: 400,
        ..SummaryRequest::default()
    };
    let summary = models().summariser.summarise(&request).await.unwrap();
    assert_eq!(
        summary,
        "Goal and open requests\n- Last request: find the red hat\n- Keep in view: hats\nState of work and tasks\n\
         - Mara: find the red hat\n- assistant: on it"
    );
}
