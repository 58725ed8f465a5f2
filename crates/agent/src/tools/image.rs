//! What a file is by its first bytes, and the size of an image without decoding it.

/// An image format that models read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Image {
    Png,
    Jpeg,
    Gif,
    Webp,
}

impl Image {
    /// By content, never by name: an image that is not of its declared type poisons a session.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
            Some(Image::Png)
        } else if bytes.starts_with(b"\xff\xd8\xff") {
            Some(Image::Jpeg)
        } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
            Some(Image::Gif)
        } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
            Some(Image::Webp)
        } else {
            None
        }
    }

    pub(super) fn media_type(self) -> &'static str {
        match self {
            Image::Png => "image/png",
            Image::Jpeg => "image/jpeg",
            Image::Gif => "image/gif",
            Image::Webp => "image/webp",
        }
    }

    /// Width and height in pixels; none if the header is broken.
    pub(super) fn size(self, bytes: &[u8]) -> Option<(u32, u32)> {
        let size = match self {
            Image::Png => (big(bytes.get(16..20)?), big(bytes.get(20..24)?)),
            Image::Gif => (little(bytes.get(6..8)?), little(bytes.get(8..10)?)),
            Image::Jpeg => jpeg_size(bytes)?,
            Image::Webp => webp_size(bytes)?,
        };
        (size.0 > 0 && size.1 > 0).then_some(size)
    }
}

fn big(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte))
}

fn little(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte))
}

/// Walks the segments to the frame header.
fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        if *bytes.get(at)? != 0xff {
            return None;
        }
        match *bytes.get(at + 1)? {
            // Padding.
            0xff => at += 1,
            // Markers without a body.
            0x01 | 0xd0..=0xd8 => at += 2,
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Some((big(bytes.get(at + 7..at + 9)?), big(bytes.get(at + 5..at + 7)?)));
            }
            _ => at += 2 + (big(bytes.get(at + 2..at + 4)?) as usize).max(2),
        }
    }
}

fn webp_size(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8 " => Some((little(bytes.get(26..28)?) & 0x3fff, little(bytes.get(28..30)?) & 0x3fff)),
        b"VP8L" => {
            let bits = little(bytes.get(21..25)?);
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"VP8X" => Some((little(bytes.get(24..27)?) + 1, little(bytes.get(27..30)?) + 1)),
        _ => None,
    }
}

/// What a file that is not text is, for people.
pub(super) fn kind(bytes: &[u8]) -> &'static str {
    const KINDS: [(&[u8], &str); 12] = [
        (b"%PDF-", "PDF document"),
        (b"\x7fELF", "ELF executable or library"),
        (b"\xcf\xfa\xed\xfe", "Mach-O executable or library"),
        (b"MZ", "Windows executable"),
        (b"PK\x03\x04", "zip archive"),
        (b"\x1f\x8b", "gzip data"),
        (b"\x28\xb5\x2f\xfd", "zstd data"),
        (b"\xfd7zXZ\0", "xz data"),
        (b"SQLite format 3\0", "SQLite database"),
        (b"\0asm", "WebAssembly module"),
        (b"\xff\xfe", "UTF-16 text"),
        (b"\xfe\xff", "UTF-16 text"),
    ];
    KINDS.iter().find(|(magic, _)| bytes.starts_with(magic)).map_or("binary data", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_from_headers() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x06";
        let gif = b"GIF89a\x80\x02\xe0\x01\0\0";
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc2\0\x11\x08\x01\xe0\x02\x80\x03";
        let vp8 = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x80\x02\xe0\x01";
        let vp8l = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x7f\xc2\x77\x00";
        let vp8x = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x7f\x02\0\xdf\x01\0";
        for (bytes, media_type) in [
            (&png[..], "image/png"),
            (gif, "image/gif"),
            (jpeg, "image/jpeg"),
            (vp8, "image/webp"),
            (vp8l, "image/webp"),
            (vp8x, "image/webp"),
        ] {
            let image = Image::of(bytes).unwrap();
            assert_eq!(image.media_type(), media_type);
            assert_eq!(image.size(bytes), Some((640, 480)), "{media_type}");
            for end in 0..bytes.len() {
                // Broken headers are no panic.
                let _ = image.size(&bytes[..end]);
            }
        }
        assert_eq!(Image::of(b"<svg/>"), None);
    }
}
