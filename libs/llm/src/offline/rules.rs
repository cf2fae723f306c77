//! Words that give a fact away.

use crate::CandidateKind::{self, Decision, Event, Knowledge, Preference, Profile, Task};

/// Words, the kind of what a sentence with them says, its importance. The first that fits counts.
const RULES: [(&str, CandidateKind, f32); 68] = [
    ("my name is ", Profile, 0.9),
    ("i live in ", Profile, 0.8),
    ("i moved to ", Profile, 0.8),
    ("i work at ", Profile, 0.7),
    ("i work for ", Profile, 0.7),
    ("i work as ", Profile, 0.7),
    ("i speak ", Profile, 0.6),
    ("my birthday is ", Profile, 0.8),
    ("my email is ", Profile, 0.8),
    ("my email address is ", Profile, 0.8),
    ("my phone number is ", Profile, 0.8),
    ("my address is ", Profile, 0.8),
    ("my time zone is ", Profile, 0.8),
    ("my timezone is ", Profile, 0.8),
    ("i'm allergic to ", Profile, 0.9),
    ("i am allergic to ", Profile, 0.9),
    ("i run the ", Profile, 0.6),
    ("i prefer ", Preference, 0.8),
    ("i'd prefer ", Preference, 0.7),
    ("i would prefer ", Preference, 0.7),
    ("my favourite ", Preference, 0.7),
    ("my favorite ", Preference, 0.7),
    ("i like ", Preference, 0.6),
    ("i love ", Preference, 0.6),
    ("i don't like ", Preference, 0.6),
    ("i do not like ", Preference, 0.6),
    ("i hate ", Preference, 0.6),
    ("please always ", Preference, 0.8),
    ("please never ", Preference, 0.8),
    ("from now on ", Preference, 0.8),
    ("call me ", Preference, 0.7),
    ("we decided ", Decision, 0.8),
    ("i decided ", Decision, 0.7),
    ("i've decided ", Decision, 0.7),
    ("we agreed ", Decision, 0.8),
    ("we chose ", Decision, 0.7),
    ("we'll go with ", Decision, 0.7),
    ("let's go with ", Decision, 0.7),
    ("we will use ", Decision, 0.6),
    ("don't forget ", Task, 0.7),
    ("do not forget ", Task, 0.7),
    ("remind me ", Task, 0.7),
    ("todo: ", Task, 0.7),
    ("i need to ", Task, 0.5),
    ("we need to ", Task, 0.5),
    ("we still have to ", Task, 0.6),
    ("the deadline is ", Event, 0.8),
    ("deadline: ", Event, 0.8),
    ("is due on ", Event, 0.7),
    ("is due by ", Event, 0.7),
    ("remember that ", Knowledge, 0.9),
    ("remember: ", Knowledge, 0.9),
    ("please remember ", Knowledge, 0.9),
    ("note that ", Knowledge, 0.6),
    ("for your information", Knowledge, 0.6),
    ("i am a ", Profile, 0.5),
    ("i'm a ", Profile, 0.5),
    ("名前は", Profile, 0.8),
    ("に住んで", Profile, 0.8),
    ("好きです", Preference, 0.6),
    ("覚えて", Knowledge, 0.8),
    ("我叫", Profile, 0.9),
    ("我住在", Profile, 0.8),
    ("我喜欢", Preference, 0.6),
    ("我们决定", Decision, 0.8),
    ("记住", Knowledge, 0.8),
    ("我的名字", Profile, 0.9),
    ("截止日期", Event, 0.8),
];

/// What makes a sentence with a date an event.
const OCCASIONS: [&str; 18] = [
    "deadline",
    "due",
    "meeting",
    "appointment",
    "launch",
    "release",
    "flight",
    "birthday",
    "wedding",
    "exam",
    "interview",
    "departure",
    "arrival",
    "delivery",
    "expires",
    "starts",
    "opens",
    "closes",
];

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// The kind and importance of what a sentence says, if it is worth remembering.
pub fn kind_of(sentence: &str) -> Option<(CandidateKind, f32)> {
    let lower = sentence.to_lowercase().replace('\u{2019}', "'");
    let rule = RULES.iter().find(|(words, ..)| has_words(&lower, words));
    match rule {
        Some((_, kind, importance)) => Some((*kind, *importance)),
        None => is_event(&lower).then_some((Event, 0.7)),
    }
}

fn is_event(lower: &str) -> bool {
    let words: Vec<&str> = lower
        .split(|c: char| !(c.is_alphanumeric() || c == '-'))
        .filter(|word| !word.is_empty())
        .collect();
    words.iter().any(|word| OCCASIONS.contains(word)) && has_date(&words)
}

/// `2026-03-14`, or a month's name beside a number.
fn has_date(words: &[&str]) -> bool {
    let begins_with_digit = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let beside = |pair: &[&str]| {
        (MONTHS.contains(&pair[0]) && begins_with_digit(&pair[1]))
            || (MONTHS.contains(&pair[1]) && begins_with_digit(&pair[0]))
    };
    words.iter().any(|word| is_iso_date(word)) || words.windows(2).any(beside)
}

fn is_iso_date(word: &str) -> bool {
    let fits = |(at, b): (usize, u8)| match at {
        4 | 7 => b == b'-',
        _ => b.is_ascii_digit(),
    };
    word.len() == 10 && word.bytes().enumerate().all(fits)
}

/// Whether the words stand in the text, not in the middle of another word.
fn has_words(text: &str, words: &str) -> bool {
    text.match_indices(words).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        !words.is_ascii() || before.is_none_or(|c| !c.is_alphanumeric())
    })
}
