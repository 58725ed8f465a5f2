//! Images: size, dimensions, and whether they are what they say.

use super::Check;
use crate::script::Limits;
use crate::trouble::Trouble;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;

/// Checks an image block. The bytes are looked at only as far as their header.
pub(super) fn check(path: &str, block: &Value, limits: &Limits) -> Check {
    let source = &block["source"];
    let path = format!("{path}.image.source");
    match source["type"].as_str() {
        Some("base64") => {}
        // The lab fetches nothing.
        Some("url" | "file") => return Ok(()),
        _ => return Err(Trouble::invalid(format!("{path}.type: Input should be 'base64', 'file' or 'url'"))),
    }
    let path = format!("{path}.base64");
    let kind = source["media_type"].as_str().unwrap_or("");
    if !KINDS.contains(&kind) {
        let kinds = KINDS.map(|kind| format!("'{kind}'")).join(", ");
        return Err(Trouble::invalid(format!("{path}.media_type: Input should be {kinds}")));
    }
    let Some(data) = source["data"].as_str() else {
        return Err(Trouble::invalid(format!("{path}.data: Field required")));
    };
    // The limit is on the text, as the API has it.
    if data.len() as u64 > limits.image_bytes_max {
        return Err(Trouble::invalid(format!(
            "{path}: image exceeds {} MB maximum: {} bytes > {} bytes",
            limits.image_bytes_max / (1024 * 1024),
            data.len(),
            limits.image_bytes_max
        )));
    }
    let Ok(bytes) = BASE64.decode(data) else {
        return Err(Trouble::invalid(format!("{path}.data: Invalid base64 data")));
    };
    match sniff(&bytes) {
        None => return Err(Trouble::invalid("Could not process image").at(path)),
        Some(found) if found != kind => {
            return Err(Trouble::invalid(format!(
                "{path}: The image was specified using the {kind} media type, but the image appears to be a {found} image"
            )));
        }
        Some(_) => {}
    }
    let max = limits.image_px_max;
    match dimensions(&bytes, kind) {
        Some((width, height)) if width > max || height > max => Err(Trouble::invalid(format!(
            "{path}.data: At least one of the image dimensions exceed max allowed size: {max} pixels"
        ))),
        Some((0, _) | (_, 0)) | None => Err(Trouble::invalid("Could not process image").at(path)),
        Some(_) => Ok(()),
    }
}

fn sniff(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// Returns width and height as the header has them. A WebP counts as 1 × 1: its header has three forms.
fn dimensions(bytes: &[u8], kind: &str) -> Option<(u32, u32)> {
    let be32 = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let le16 = |at: usize| Some(u32::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    match kind {
        "image/png" if bytes.get(12..16)? == b"IHDR" => Some((be32(16)?, be32(20)?)),
        "image/gif" => Some((le16(6)?, le16(8)?)),
        "image/jpeg" => jpeg(bytes),
        "image/webp" => Some((1, 1)),
        _ => None,
    }
}

/// Walks the segments of a JPEG to its frame header.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let [0xFF, marker, high, low] = *bytes.get(at..at + 4)? else { return None };
        let be16 = |at: usize| Some(u32::from(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
        // SOF0 to SOF15, without DHT, JPG and DAC, which have numbers among them.
        if (0xC0..=0xCF).contains(&marker) && !matches!(marker, 0xC4 | 0xC8 | 0xCC) {
            return Some((be16(at + 7)?, be16(at + 5)?));
        }
        at += 2 + usize::from(u16::from_be_bytes([high, low]));
    }
}

const KINDS: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
