//! A quick look at JSON: most arguments are plain, and reading them costs less than parsing them.

/// Whether the text is for certain one JSON value of at most `deepest` levels. False says nothing: escapes by
/// number, numbers that are long or have an exponent, and every fault are left to the parser.
pub(super) fn is_plain(text: &str, deepest: usize) -> bool {
    let mut scan = Scan {
        bytes: text.as_bytes(),
        at: 0,
        levels: Vec::new(),
        deepest,
    };
    scan.whole().is_some()
}

struct Scan<'t> {
    bytes: &'t [u8],
    at: usize,
    /// The bracket that ends each open list or object.
    levels: Vec<u8>,
    deepest: usize,
}

impl Scan<'_> {
    /// None where the value is not plain.
    fn whole(&mut self) -> Option<()> {
        loop {
            if self.opens()? {
                continue;
            }
            while let Some(&end) = self.levels.last() {
                match self.next()? {
                    b',' if end == b'}' => {
                        self.key()?;
                        break;
                    }
                    b',' => break,
                    byte if byte == end => {
                        self.levels.pop();
                    }
                    _ => return None,
                }
            }
            if self.levels.is_empty() {
                return self.next().is_none().then_some(());
            }
        }
    }

    /// Reads a value up to where another value or its end follows; true where it is a value within it.
    fn opens(&mut self) -> Option<bool> {
        match self.next()? {
            b'{' => self.begins(b'}'),
            b'[' => self.begins(b']'),
            b'"' => self.string().map(|()| false),
            b't' => self.word(b"rue"),
            b'f' => self.word(b"alse"),
            b'n' => self.word(b"ull"),
            byte => self.number(byte).map(|()| false),
        }
    }

    fn begins(&mut self, end: u8) -> Option<bool> {
        if self.levels.len() == self.deepest {
            return None;
        }
        if self.peek()? == end {
            self.at += 1;
            return Some(false);
        }
        self.levels.push(end);
        if end == b'}' {
            self.key()?;
        }
        Some(true)
    }

    fn key(&mut self) -> Option<()> {
        (self.next()? == b'"').then_some(())?;
        self.string()?;
        (self.next()? == b':').then_some(())
    }

    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        while matches!(self.bytes.get(self.at)?, b' ' | b'\n' | b'\r' | b'\t') {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn string(&mut self) -> Option<()> {
        loop {
            self.at += run(&self.bytes[self.at..]);
            match self.bytes.get(self.at)? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => {
                    let escape = self.bytes.get(self.at + 1)?;
                    let is_short = matches!(escape, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't');
                    is_short.then_some(())?;
                    self.at += 2;
                }
                _ => return None,
            }
        }
    }

    fn word(&mut self, rest: &[u8]) -> Option<bool> {
        self.bytes[self.at..].starts_with(rest).then_some(())?;
        self.at += rest.len();
        Some(false)
    }

    /// Up to fifteen digits, with a point perhaps: any parser can hold that.
    fn number(&mut self, first: u8) -> Option<()> {
        let start = self.at - usize::from(first != b'-');
        self.at = start;
        let whole = self.digits()?;
        if whole > 1 && self.bytes[start] == b'0' {
            return None;
        }
        let fraction = if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?
        } else {
            0
        };
        (whole + fraction <= 15).then_some(())
    }

    /// How many digits follow, at least one.
    fn digits(&mut self) -> Option<usize> {
        let rest = &self.bytes[self.at..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += digits;
        (digits > 0).then_some(digits)
    }
}

const ONES: u64 = 0x0101_0101_0101_0101;

/// How many bytes of a string pass before a quote, a backslash or a control character; eight at a time.
fn run(bytes: &[u8]) -> usize {
    let (chunks, tail) = bytes.as_chunks::<8>();
    for (at, chunk) in chunks.iter().enumerate() {
        let special = specials(u64::from_le_bytes(*chunk));
        if special != 0 {
            return at * 8 + special.trailing_zeros() as usize / 8;
        }
    }
    let is_special = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
    chunks.len() * 8 + tail.iter().position(is_special).unwrap_or(tail.len())
}

/// The high bit of the bytes that end a run. Only the lowest one set is to be relied on.
fn specials(word: u64) -> u64 {
    let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word;
    let control = below(word, 0x20);
    let quote = below(word ^ (ONES * u64::from(b'"')), 1);
    let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
    (control | quote | backslash) & (ONES * 0x80)
}
