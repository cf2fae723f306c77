//! Counting: texts, parts, images, overheads.

mod reference;
mod speed;
mod texts;

use crate::support::{call, calls, entry, tool};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use colloquy_context::tokens::{Family, MESSAGE_OVERHEAD, UNKNOWN_MEDIA_TOKENS};
use colloquy_context::{Counter, Format, Tokenizer, count_body, count_message, count_overhead};
use colloquy_types::EntryBody;
use colloquy_types::message::{Media, MediaData, MediaKind, Message, Part, Role, Thinking};

#[test]
fn vocabularies_count_exactly() {
    assert_eq!(Tokenizer::O200k.count_text("hello world"), 2);
    assert_eq!(Tokenizer::Cl100k.count_text("hello world"), 2);
    assert_eq!(Tokenizer::O200k.count_text(""), 0);
}

#[test]
fn models_have_a_family() {
    for (model, tokenizer, margin) in [
        ("openai/gpt-4o-mini", Tokenizer::O200k, 0),
        ("gpt-5.4-mini", Tokenizer::O200k, 0),
        ("o3-mini", Tokenizer::O200k, 0),
        ("gpt-4-turbo", Tokenizer::Cl100k, 0),
        ("gpt-3.5-turbo", Tokenizer::Cl100k, 0),
        ("claude-sonnet-4", Tokenizer::Claude, 10),
        ("anthropic.claude-3-haiku-20240307-v1:0", Tokenizer::Claude, 10),
        ("claude-opus-4-7", Tokenizer::Claude, 20),
        ("models/gemini-2.5-pro", Tokenizer::O200k, 20),
        ("meta-llama/Llama-3.3-70B-Instruct", Tokenizer::Cl100k, 15),
        ("mistral-large-latest", Tokenizer::O200k, 25),
        ("qwen3-coder", Tokenizer::Estimate, 40),
        ("", Tokenizer::Estimate, 40),
    ] {
        let family = Family::of(model);
        assert_eq!(
            (family.tokenizer, family.margin_percent),
            (tokenizer, margin),
            "{model}"
        );
        assert_eq!(Tokenizer::for_model(model), tokenizer);
        assert_eq!(Counter::for_model(model).images, family.images);
    }
}

#[test]
fn a_stored_name_is_read_again() {
    // These names stand beside stored counts and never change.
    let names = ["o200k", "cl100k", "claude", "estimate"];
    let all = [
        Tokenizer::O200k,
        Tokenizer::Cl100k,
        Tokenizer::Claude,
        Tokenizer::Estimate,
    ];
    for (tokenizer, name) in all.into_iter().zip(names) {
        assert_eq!(tokenizer.name(), name);
        assert_eq!(name.parse::<Tokenizer>().unwrap(), tokenizer);
        assert_eq!(serde_json::to_value(tokenizer).unwrap(), name);
    }
    assert!("words".parse::<Tokenizer>().is_err());
    assert_eq!(Tokenizer::default(), Tokenizer::O200k);
}

#[test]
fn every_part_counts() {
    let counted = |message: &Message| count_message(message, Tokenizer::O200k);
    let claude = |message: &Message| count_message(message, Tokenizer::Claude);
    let called = calls(vec![call("c1", "search", "{}")]);
    let thinking = Thinking {
        text: "hello world".into(),
        signature: None,
        provider: None,
        redacted: false,
    };
    assert_eq!(counted(&Message::user("hello world")), MESSAGE_OVERHEAD + 2);
    assert_eq!(counted(&called), MESSAGE_OVERHEAD + 4 + 1 + 1);
    assert_eq!(claude(&called), MESSAGE_OVERHEAD + 40 + 1 + 1);
    assert_eq!(counted(&tool("c1", "hello world")), MESSAGE_OVERHEAD + 4 + 2);
    assert_eq!(claude(&tool("c1", "hello world")), MESSAGE_OVERHEAD + 15 + 2);
    let thought = Message::new(Role::Assistant, vec![Part::Thinking(thinking)]);
    assert_eq!(counted(&thought), MESSAGE_OVERHEAD + 2);
}

fn media(kind: MediaKind, mime: &str, data: MediaData) -> Message {
    let media = Media {
        kind,
        mime: mime.into(),
        name: String::new(),
        data,
    };
    Message::new(Role::User, vec![Part::Media(media)])
}

fn inline(kind: MediaKind, mime: &str, bytes: &[u8]) -> Message {
    media(kind, mime, MediaData::Inline(STANDARD.encode(bytes)))
}

#[test]
fn an_inline_image_costs_by_its_size_and_its_model() {
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x04\0\0\0\x04\0\x08\x06\0\0\0";
    let image = inline(MediaKind::Image, "image/png", png);
    let reference = MediaData::Reference("https://example.com/a.png".into());
    let unknown = media(MediaKind::Image, "image/png", reference);
    for (model, known, otherwise) in [
        ("gpt-4o", 765, 1_105),
        ("gpt-4o-mini", 25_501, 36_835),
        ("o3", 675, 975),
        ("gpt-4.1-mini", 1_659, 2_489),
        ("claude-sonnet-4-5", 1_369, 1_536),
        ("claude-opus-4-8", 1_369, 2_035),
        ("gemini-2.5-flash", 258 * 4, 258 * 6),
        ("gemini-3-flash-preview", 1_120, 1_120),
        ("pixtral-12b", 65 * 64, 65 * 43),
    ] {
        let counter = Counter::for_model(model);
        let cost = |message| counter.message(message) - counter.message_overhead;
        assert_eq!((cost(&image), cost(&unknown)), (known, otherwise), "{model}");
    }
    let broken = media(
        MediaKind::Image,
        "image/png",
        MediaData::Inline("not base64!".into()),
    );
    assert_eq!(count_message(&broken, Tokenizer::O200k), MESSAGE_OVERHEAD + 1_105);
}

#[test]
fn files_and_sound_cost_by_what_is_in_them() {
    let counted = |message: &Message| count_message(message, Tokenizer::O200k) - MESSAGE_OVERHEAD;
    let text = inline(MediaKind::File, "text/plain", b"hello world");
    assert_eq!(counted(&text), 2);
    let document = inline(
        MediaKind::File,
        "application/pdf",
        b"%PDF-1.7 <</Type /Pages>> <</Type /Page>> <</Type/Page>>",
    );
    assert_eq!(counted(&document), 2 * 1_500);
    assert_eq!(
        count_message(&document, Tokenizer::Claude) - MESSAGE_OVERHEAD,
        2 * 3_000
    );
    let binary = inline(MediaKind::File, "", &[0xff; 40_000]);
    assert_eq!(counted(&binary), 10_000);
    let speech = inline(MediaKind::Audio, "audio/ogg", &[1; 40_000]);
    assert_eq!(counted(&speech), 100, "ten seconds");
    assert_eq!(Counter::for_model("gemini-2.5-pro").message(&speech), 1 + 320);
    for kind in [MediaKind::Audio, MediaKind::File] {
        let unknown = media(kind, "", MediaData::Reference("file_1".into()));
        assert_eq!(counted(&unknown), UNKNOWN_MEDIA_TOKENS);
    }
}

#[test]
fn what_stands_around_the_messages_depends_on_the_format() {
    let tools = r#"[{"name":"look","description":"Looks.","input_schema":{"type":"object","properties":{"at":{"type":"string"}}}}]"#;
    let count =
        |system: &[&str], tools: &str, format| count_overhead(system, tools, format, Tokenizer::O200k);
    assert_eq!(count(&[], "", Format::OpenaiChat), 3);
    assert_eq!(count(&["hello world", ""], "", Format::OpenaiChat), 3 + 4 + 2);
    assert_eq!(count(&["hello world"], "", Format::Anthropic), 3 + 2);
    assert_eq!(count(&["hello world"], "", Format::Gemini), 2);
    let openai = count(&[], tools, Format::OpenaiResponses);
    let anthropic = count(&[], tools, Format::Anthropic);
    assert!((25..40).contains(&openai), "{openai}");
    assert_eq!(
        anthropic,
        503 + Tokenizer::O200k.count_text(tools) - 2,
        "without the list's brackets"
    );
    assert!(count(&[], tools, Format::Gemini) < 40);
}

#[test]
fn the_expectation_of_a_model_depends_on_who_counted() {
    let expected = |model, counted_by| Family::of(model).expected_percent_of(counted_by);
    assert_eq!(expected("claude-sonnet-4-5", Tokenizer::Claude), 100);
    assert_eq!(expected("claude-sonnet-4-5", Tokenizer::O200k), 123);
    assert_eq!(expected("claude-opus-5", Tokenizer::Claude), 130);
    assert_eq!(expected("claude-opus-5", Tokenizer::O200k), 159);
    assert_eq!(expected("gpt-4o", Tokenizer::O200k), 100);
}

#[test]
fn what_no_model_sees_counts_nothing() {
    let hidden = entry(
        1,
        EntryBody::Label {
            label: "holiday".into(),
        },
    );
    assert_eq!(count_body(&hidden.body, Tokenizer::O200k), 0);
}
