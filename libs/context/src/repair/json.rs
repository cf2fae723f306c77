//! Whether a call's arguments can stand in a request.

use super::plain::is_plain;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Deeper arguments would pass the parser's own limit once they are embedded in a request.
const MAX_DEPTH: usize = 100;

/// Whether the text is one JSON value of reasonable depth. Reads it as strictly as a parser that keeps the value,
/// and keeps nothing.
pub(crate) fn is_json(text: &str) -> bool {
    if is_plain(text, MAX_DEPTH) {
        return true;
    }
    let mut parser = serde_json::Deserializer::from_str(text);
    Level(MAX_DEPTH)
        .deserialize(&mut parser)
        .and_then(|()| parser.end())
        .is_ok()
}

/// A value that may contain this many levels of lists and objects.
struct Level(usize);

impl Level {
    fn below<E: Error>(&self) -> Result<Self, E> {
        let below = self.0.checked_sub(1).map(Self);
        below.ok_or_else(|| E::custom("nested too deeply"))
    }
}

impl<'de> DeserializeSeed<'de> for Level {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let below = self.below::<A::Error>()?.0;
        while list.next_element_seed(Level(below))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let below = self.below::<A::Error>()?.0;
        while object.next_key_seed(Level(below))?.is_some() {
            object.next_value_seed(Level(below))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::is_json;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4_096, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_text_is_read_otherwise_than_by_a_parser(pieces in prop::collection::vec(
            prop::sample::select(vec![
                "{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\"a\":", "1", "-", "0", ".", "e", "true", "null", "\\", "\\n",
                "\\u0041", "\\ud800", " ", "\n", "é", "\u{1}", "\"0123456789", "語語語語",
            ]),
            0..9,
        )) {
            let text = pieces.concat();
            let kept = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            prop_assert_eq!(is_json(&text), kept, "{:?}", text);
        }
    }

    #[test]
    fn reads_as_strictly_as_a_parser_that_keeps_the_value() {
        let texts = [
            "{}",
            " [1, -2.5e3, null, true] ",
            "\"\\u00e9\\n\"",
            "{\"a\":{\"a\":1}}",
            "3",
            "",
            "{",
            "{oops",
            "[1,]",
            "{} {}",
            "1e999",
            "-1e999",
            "\"\\ud800\"",
            "\"\\ud83d\\ude00\"",
            "\"\\x\"",
            "\"a\nb\"",
            "01",
            "{1:2}",
            "nul",
            "18446744073709551616",
            "{\"a\":\"b\\\"c\"}",
            "-",
            "-0",
            "0.",
            ".5",
            "1.5",
            "1 2",
            "[1}",
            "{]",
            "{\"a\"}",
            "{\"a\":1,}",
            "[,]",
            "[[],{}]",
            "tru",
            "true1",
            "\"open",
            "\"\\",
            "\"\\/\"",
            "\t[ ]\r\n",
            "{\"a\" : [ ] , \"b\":0}",
            "[1 2]",
            "123456789012345",
            "1234567890123456",
            "-01",
            "1e5",
            "{\"a\":1 \"b\":2}",
            "\u{a0}1",
        ];
        for text in texts {
            let kept = serde_json::from_str::<serde_json::Value>(text).is_ok();
            assert_eq!(is_json(text), kept, "{text:?}");
        }
    }

    #[test]
    fn a_hundred_levels_are_the_deepest() {
        let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        assert!(is_json(&nested(100)));
        assert!(!is_json(&nested(101)));
        assert!(!is_json(&nested(100_000)));
        assert!(is_json(&format!("{{\"a\":{}}}", nested(99))));
        assert!(is_json(&format!("\"{}\"", "[".repeat(1_000))));
    }
}
