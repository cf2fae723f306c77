//! A count for models whose vocabulary is not public.

/// ASCII text is about four characters a token; scripts written without spaces (CJK, kana, hangul) about one
/// and other letters about two.
pub(super) fn count(text: &str) -> usize {
    let quarters: usize = text.chars().map(quarters).sum();
    quarters.div_ceil(4)
}

fn quarters(character: char) -> usize {
    match u32::from(character) {
        0..=0x7f => 1,
        0x2e80..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff | 0x20000..=0x3ffff => 4,
        0x1f000..=0x1faff => 8,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn scripts_weigh_differently() {
        assert_eq!(count("abcdefgh"), 2);
        assert_eq!(count("語語語"), 3);
        assert_eq!(count("éé"), 1);
    }
}
