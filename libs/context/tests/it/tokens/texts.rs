//! Texts of many scripts, the same ones in every run.

/// A kind of text and the strings it is put together from.
pub struct Script {
    pub name: &'static str,
    words: &'static [&'static str],
    /// What stands between two of them.
    between: &'static [&'static str],
}

const fn script(
    name: &'static str,
    words: &'static [&'static str],
    between: &'static [&'static str],
) -> Script {
    Script { name, words, between }
}

const SPACED: &[&str] = &[" ", " ", " ", ", ", ". ", "\n", "  ", "\n\n"];
const CLOSE: &[&str] = &["", "", "", ",", "。", " ", "\n"];

pub const SCRIPTS: &[Script] = &[
    script(
        "latin",
        &[
            "the",
            "Budget",
            "it's",
            "we'll",
            "WE'LL",
            "naïve",
            "Straße",
            "façade",
            "don’t",
            "internationalisation",
            "a",
            "Zażółć",
            "Ærøskøbing",
            "e\u{301}te\u{301}",
            "ſ",
            "ﬁnal",
            "I'm",
            "DON'T",
            "x²",
            "№5",
        ],
        SPACED,
    ),
    script(
        "cyrillic",
        &[
            "привет",
            "Мир",
            "объём",
            "щука",
            "її",
            "Ёлка",
            "нельзя",
            "по-русски",
            "ѣ",
            "СССР",
        ],
        SPACED,
    ),
    script("greek", &["γειά", "σου", "Κόσμε", "ὕδωρ", "ΑΒΓ", "ά"], SPACED),
    script(
        "cjk",
        &[
            "語",
            "你好世界",
            "日本語",
            "カタカナ",
            "ひらがな",
            "한국어",
            "한",
            "ﾊﾝｶｸ",
            "株式会社",
            "㈱",
            "𠮷野家",
            "｢引用｣",
            "１２３",
        ],
        CLOSE,
    ),
    script(
        "arabic",
        &["مرحبا", "بِسْمِ", "العالم", "٣٤٥", "ﷺ", "لا", "كتاب\u{200f}"],
        SPACED,
    ),
    script("hebrew", &["שלום", "עולם", "בְּרֵאשִׁית", "צה״ל", "אבג"], SPACED),
    script(
        "devanagari",
        &["नमस्ते", "दुनिया", "क्षत्रिय", "१२३", "हिन्दी", "ज़"],
        SPACED,
    ),
    script("thai", &["สวัสดี", "ชาวโลก", "ภาษาไทย", "๑๒๓", "น้ำ"], CLOSE),
    script(
        "other",
        &["გამარჯობა", "Բարեւ", "សួស្តី", "வணக்கம்", "ሰላም", "བོད", "ᚠᚢᚦ", "ⴰⵣⵓⵍ"],
        SPACED,
    ),
    script(
        "emoji",
        &["👩‍👩‍👧‍👦", "🇩🇪", "👍🏽", "❤️", "🏳️‍🌈", "🙂", "☺", "1️⃣", "🧑🏿‍🚀", "™", "ok"],
        &["", " ", "", "\n"],
    ),
    script(
        "code",
        &[
            "fn main() {",
            "    let x = vec![1, 2];",
            "}",
            "if (a != b) return;",
            "\t\tfor i in 0..n:",
            "// don't",
            "self.__init__(*args)",
            "<div class=\"a\">",
            "SELECT * FROM t WHERE id='x';",
            "#include <stdio.h>",
            "a->b",
            "=>",
            "0xDEADBEEF",
            "x//y",
            "/*/*/",
            "$HOME/bin",
        ],
        &["\n", "\r\n", "\n\n", " ", "\n    ", ";\n\t"],
    ),
    script(
        "json",
        &[
            "{\"path\":\"/usr/bin\",\"n\":1.5e-7}",
            "[true,false,null]",
            "{\"q\":\"caf\\u00e9\"}",
            "{\n  \"a\": [\n    1\n  ]\n}",
            "\"\\n\\t\"",
            "{}",
            ":",
            "[[],[]]",
        ],
        &[",", ", ", "\n", ""],
    ),
    script(
        "numbers",
        &[
            "0",
            "42",
            "1234567890",
            "3.14159",
            "1,000,000",
            "-7",
            "½",
            "Ⅷ",
            "2026-12-01T05:40:00Z",
            "²",
            "1e9",
            "٣",
        ],
        &[" ", "", "/", "-", "\n"],
    ),
    script(
        "whitespace",
        &[
            " ", "  ", "\t", "\n", "\r\n", "\u{a0}", "\u{3000}", "\u{2028}", "a", "    ", "\u{200b}",
            "\u{feff}", ".", "\n\n\n",
        ],
        &["", " ", "\n", "\t"],
    ),
    script(
        "control",
        &[
            "\0",
            "\u{1}",
            "\u{7f}",
            "\u{1b}[0m",
            "\0\0\0",
            "a\0b",
            "\u{fffd}",
            "\u{e000}",
            "\u{10ffff}",
            "\u{85}",
            "x",
        ],
        &["", " ", "\n"],
    ),
    script(
        "mixed",
        &[
            "hello", "мир", "語", "🙂", "42", "\0", "שלום", "fn", "{", "ﬃ", "Å", "\u{301}", "  ", "'s", "’",
            "a\u{308}",
        ],
        &["", " ", "\n", "-"],
    ),
];

/// A small generator (SplitMix64), so that the texts do not depend on a crate's version.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % (bound as u64)).unwrap()
    }

    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

impl Script {
    /// Texts of one to about forty words.
    pub fn texts(&self, how_many: usize) -> Vec<String> {
        let mut random = Random(
            self.name
                .bytes()
                .fold(7, |seed, byte| seed * 31 + u64::from(byte)),
        );
        let text = |index: usize| {
            let mut text = String::new();
            for _ in 0..=random.below(1 + index % 40) {
                text.push_str(random.pick(self.words));
                text.push_str(random.pick(self.between));
            }
            text
        };
        (0..how_many).map(text).collect()
    }

    /// Every character of the script alone.
    pub fn characters(&self) -> impl Iterator<Item = String> {
        let strings = self.words.iter().chain(self.between);
        strings.flat_map(|string| string.chars()).map(String::from)
    }
}
