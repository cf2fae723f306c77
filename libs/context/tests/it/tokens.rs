use crate::support::{call, calls, entry, tool};
use colloquy_context::tokens::{IMAGE_TOKENS, MESSAGE_OVERHEAD, TOOL_OVERHEAD};
use colloquy_context::{Tokenizer, count_body, count_message};
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
    assert_eq!(Tokenizer::for_model("openai/gpt-4o-mini"), Tokenizer::O200k);
    assert_eq!(Tokenizer::for_model("gpt-4-turbo"), Tokenizer::Cl100k);
    assert_eq!(Tokenizer::for_model("claude-sonnet-4"), Tokenizer::Estimate);
    for tokenizer in [Tokenizer::O200k, Tokenizer::Cl100k, Tokenizer::Estimate] {
        assert_eq!(tokenizer.name().parse::<Tokenizer>().unwrap(), tokenizer);
    }
    assert!("words".parse::<Tokenizer>().is_err());
}

#[test]
fn every_part_counts() {
    let counted = |message: &Message| count_message(message, Tokenizer::O200k);
    assert_eq!(counted(&Message::user("hello world")), MESSAGE_OVERHEAD + 2);
    assert!(
        counted(&calls(vec![call("c1", "search", r#"{"q":"hello world"}"#)]))
            > MESSAGE_OVERHEAD + TOOL_OVERHEAD + 4
    );
    assert_eq!(
        counted(&tool("c1", "hello world")),
        MESSAGE_OVERHEAD + TOOL_OVERHEAD + 2
    );
    let thinking = Thinking {
        text: "hello world".into(),
        signature: None,
        provider: None,
        redacted: false,
    };
    assert_eq!(
        counted(&Message::new(Role::Assistant, vec![Part::Thinking(thinking)])),
        MESSAGE_OVERHEAD + 2
    );
    let data = MediaData::Reference("https://example.com/a.png".into());
    let image = Media {
        kind: MediaKind::Image,
        mime: "image/png".into(),
        name: String::new(),
        data,
    };
    assert_eq!(
        counted(&Message::new(Role::User, vec![Part::Media(image)])),
        MESSAGE_OVERHEAD + IMAGE_TOKENS
    );
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
