use crate::support::{call, calls, items, quarter_chars, tool};
use colloquy_context::prune::{CLEARED, Held, MEDIA_MARKER, PruneInput, Pruned, prune};
use colloquy_context::{Item, PruneOptions, Watermarks};
use colloquy_types::Seq;
use colloquy_types::message::{Media, MediaData, MediaKind, Message, Part, ToolResult};
use colloquy_types::policy::Profile;

const INPUT: PruneInput = PruneInput {
    window: 5_000,
    watermarks: Watermarks {
        soft: Seq(0),
        hard: Seq(0),
    },
    cache_cold: false,
    may_move: true,
};

/// A user message, `results` calls with results of the given size, and three answers.
fn conversation(results: usize, size: usize) -> Vec<Message> {
    let mut messages = vec![Message::user("q".repeat(400))];
    for at in 0..results {
        let id = format!("c{at}");
        messages.extend([calls(vec![call(&id, "f", "{}")]), tool(&id, &"x".repeat(size))]);
    }
    messages.extend(["a", "b", "c"].map(|text| Message::assistant(text.repeat(400))));
    messages
}

fn run(view: &mut [Item<'_>], options: &PruneOptions, input: &PruneInput) -> Pruned {
    prune(view, options, input, &quarter_chars)
}

fn text_of(message: &Message) -> &str {
    let result = message.tool_results().next().unwrap();
    let Part::Text { text } = &result.parts[0] else {
        panic!("a text")
    };
    text
}

#[test]
fn what_was_trimmed_stays_trimmed_when_the_ratio_falls() {
    let messages = conversation(1, 8_000);
    let mut view = items(&messages, &quarter_chars);
    let first = run(&mut view, &PruneOptions::goclaw(), &INPUT);
    assert_eq!(
        (first.watermarks.soft, first.watermarks.hard, first.trimmed),
        (Seq(3), Seq(0), 1)
    );
    let mut again = items(&messages, &quarter_chars);
    let roomy = PruneInput {
        window: 1_000_000,
        watermarks: first.watermarks,
        ..INPUT
    };
    assert_eq!(run(&mut again, &PruneOptions::goclaw(), &roomy), first);
    assert_eq!(again[2].message, view[2].message);
}

#[test]
fn a_mark_moves_only_for_the_least_gain() {
    let messages = conversation(1, 8_000);
    let stingy = PruneOptions {
        min_gain: 0.3,
        ..PruneOptions::goclaw()
    };
    let mut view = items(&messages, &quarter_chars);
    let held = Pruned {
        held: Some(Held::LittleGain),
        ..Pruned::default()
    };
    assert_eq!(run(&mut view, &stingy, &INPUT), held);
    let willing = PruneOptions {
        min_gain: 0.2,
        ..PruneOptions::goclaw()
    };
    assert_eq!(run(&mut view, &willing, &INPUT).trimmed, 1);
}

#[test]
fn a_warm_cache_gives_way_past_the_hard_ratio() {
    let messages = conversation(15, 3_900);
    let options = PruneOptions::openclaw();
    let mut view = items(&messages, &quarter_chars);
    let pruned = run(
        &mut view,
        &options,
        &PruneInput {
            window: 20_000,
            ..INPUT
        },
    );
    assert!(pruned.cleared > 0);
    assert_eq!(text_of(&view[2].message), CLEARED);
    let tokens: u32 = view.iter().map(|item| item.tokens).sum();
    assert!(tokens < 10_000, "cleared until below the ratio: {tokens}");
    assert!(tokens + 975 >= 10_000, "and no further: {tokens}");
}

#[test]
fn a_build_that_may_not_move_marks_prunes_nothing_new() {
    let messages = conversation(1, 8_000);
    let mut view = items(&messages, &quarter_chars);
    let pruned = run(
        &mut view,
        &PruneOptions::goclaw(),
        &PruneInput {
            may_move: false,
            ..INPUT
        },
    );
    assert_eq!(pruned, Pruned::default());
    assert_eq!(view[2].message.as_ref(), &messages[2]);
}

#[test]
fn images_of_results_count_and_become_a_marker() {
    let image = Media {
        kind: MediaKind::Image,
        mime: "image/png".into(),
        name: String::new(),
        data: MediaData::Inline("AAAA".into()),
    };
    let mut messages = conversation(1, 10);
    messages[2].parts = vec![Part::ToolResult(ToolResult {
        call_id: "c0".into(),
        name: String::new(),
        parts: vec![Part::text("a chart"), Part::Media(image)],
        is_error: false,
    })];
    let heavy = |message: &Message| quarter_chars(message) + if message == &messages[2] { 2_000 } else { 0 };
    let mut view = items(&messages, &heavy);
    let pruned = prune(&mut view, &PruneOptions::goclaw(), &INPUT, &heavy);
    assert_eq!(pruned.trimmed, 1);
    let parts = &view[2].message.tool_results().next().unwrap().parts;
    assert_eq!(parts, &[Part::text("a chart"), Part::text(MEDIA_MARKER)]);
}

#[test]
fn a_result_that_would_not_shrink_is_not_cleared() {
    let messages = conversation(4, 20);
    let mut view = items(&messages, &quarter_chars);
    let pruned = run(
        &mut view,
        &PruneOptions::goclaw(),
        &PruneInput { window: 400, ..INPUT },
    );
    assert_eq!(pruned, Pruned::default());
}

#[test]
fn a_rewind_cuts_the_marks() {
    let marks = Watermarks {
        soft: Seq(9),
        hard: Seq(4),
    };
    assert_eq!(
        marks.cut_to(Seq(6)),
        Watermarks {
            soft: Seq(6),
            hard: Seq(4)
        }
    );
    assert_eq!(
        marks.cut_to(Seq(2)),
        Watermarks {
            soft: Seq(2),
            hard: Seq(2)
        }
    );
}

#[test]
fn the_options_of_a_policy_are_those_of_its_profile() {
    let of = |profile: Profile| PruneOptions::from(&profile.policy().context.prune);
    assert_eq!(of(Profile::Goclaw), PruneOptions::goclaw());
    assert_eq!(of(Profile::Openclaw), PruneOptions::openclaw());
}

#[test]
fn turned_off_it_leaves_what_the_marks_name_and_adds_nothing() {
    let messages = conversation(2, 8_000);
    let off = PruneOptions {
        enabled: false,
        ..PruneOptions::goclaw()
    };
    let mut view = items(&messages, &quarter_chars);
    let marks = Watermarks {
        soft: Seq(3),
        hard: Seq(0),
    };
    let pruned = run(
        &mut view,
        &off,
        &PruneInput {
            watermarks: marks,
            ..INPUT
        },
    );
    assert_eq!((pruned.watermarks, pruned.trimmed, pruned.cleared), (marks, 1, 0));
}
