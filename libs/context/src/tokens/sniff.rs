//! What the first bytes of a file say of it: an image's size, a recording's rate, a document's pages.

/// Width and height in pixels, from the header of a PNG, GIF, JPEG or WebP.
pub(super) fn image_size(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some((big32(bytes, 16)?, big32(bytes, 20)?)),
        [b'G', b'I', b'F', b'8', ..] => Some((little16(bytes, 6)?, little16(bytes, 8)?)),
        [0xff, 0xd8, ..] => jpeg(bytes),
        [b'R', b'I', b'F', b'F', ..] if bytes.get(8..12)? == b"WEBP" => webp(bytes),
        _ => None,
    }
}

/// Bytes of a second of a WAV file.
pub(super) fn wave_rate(bytes: &[u8]) -> Option<u32> {
    let is_wave = bytes.starts_with(b"RIFF") && bytes.get(8..16)? == b"WAVEfmt ";
    is_wave
        .then(|| little32(bytes, 28))
        .flatten()
        .filter(|&rate| rate > 0)
}

/// Page objects of a PDF; 0 where they are all in compressed streams.
pub(super) fn pdf_pages(bytes: &[u8]) -> usize {
    let is_page = |at: usize| {
        let rest = bytes[at..].trim_ascii_start();
        rest.strip_prefix(b"/Page")
            .is_some_and(|after| after.first() != Some(&b's'))
    };
    let marks = bytes.windows(5).enumerate();
    marks
        .filter(|(at, mark)| mark == b"/Type" && is_page(at + 5))
        .count()
}

fn take<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn big32(bytes: &[u8], at: usize) -> Option<u32> {
    take(bytes, at).map(u32::from_be_bytes)
}

fn little32(bytes: &[u8], at: usize) -> Option<u32> {
    take(bytes, at).map(u32::from_le_bytes)
}

fn little16(bytes: &[u8], at: usize) -> Option<u32> {
    take(bytes, at).map(|two| u32::from(u16::from_le_bytes(two)))
}

fn big16(bytes: &[u8], at: usize) -> Option<u32> {
    take(bytes, at).map(|two| u32::from(u16::from_be_bytes(two)))
}

/// Walks the segments to the frame header.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let [mark, kind] = take(bytes, at)?;
        if mark != 0xff {
            return None;
        }
        let is_frame = matches!(kind, 0xc0..=0xcf) && !matches!(kind, 0xc4 | 0xc8 | 0xcc);
        if is_frame {
            return Some((big16(bytes, at + 7)?, big16(bytes, at + 5)?));
        }
        at += match kind {
            0xff => 1,
            0x01 | 0xd0..=0xd7 => 2,
            _ => 2 + big16(bytes, at + 2)? as usize,
        };
    }
}

fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8 " => Some((little16(bytes, 26)? & 0x3fff, little16(bytes, 28)? & 0x3fff)),
        b"VP8L" => {
            let packed = little32(bytes, 21)?;
            Some(((packed & 0x3fff) + 1, (packed >> 14 & 0x3fff) + 1))
        }
        b"VP8X" => {
            let three = |at| little32(bytes, at).map(|four| (four & 0x00ff_ffff) + 1);
            // The height's three bytes may be the last of the header: read from one byte before.
            let height = little32(bytes, 26).map(|four| (four >> 8) + 1);
            Some((three(24)?, height?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_tell_the_size() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x03\x20\0\0\x02\x58";
        assert_eq!(image_size(png), Some((800, 600)));
        assert_eq!(image_size(b"GIF89a\x20\x03\x58\x02"), Some((800, 600)));
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc2\0\x11\x08\x02\x58\x03\x20\x03";
        assert_eq!(image_size(jpeg), Some((800, 600)));
        let vp8 = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x20\x03\x58\x02";
        assert_eq!(image_size(vp8), Some((800, 600)));
        let packed = (799_u32 | 599 << 14).to_le_bytes();
        let lossless = [b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f".as_slice(), &packed].concat();
        assert_eq!(image_size(&lossless), Some((800, 600)));
        let extended = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x1f\x03\0\x57\x02\0";
        assert_eq!(image_size(extended), Some((800, 600)));
    }

    #[test]
    fn cut_headers_and_other_files_tell_nothing() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x03\x20\0\0\x02";
        for bytes in [
            b"".as_slice(),
            b"\xff\xd8",
            b"\xff\xd8\xff\xe0\xff\xff",
            b"RIFF",
            b"%PDF-1.4",
            png,
        ] {
            assert_eq!(image_size(bytes), None);
        }
        assert_eq!(wave_rate(b"RIFF\0\0\0\0WAVEfmt "), None);
    }

    #[test]
    fn pages_and_rates_are_read() {
        assert_eq!(
            pdf_pages(b"<</Type /Pages>> <</Type/Page>> <</Type /Page /X>>"),
            2
        );
        assert_eq!(pdf_pages(b"/Type"), 0);
        let wave = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\0\x7d\0\0";
        assert_eq!(wave_rate(wave), Some(32_000));
    }
}
