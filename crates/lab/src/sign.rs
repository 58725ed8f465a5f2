//! Signatures of thinking, which the lab can check without remembering what it sent.
//!
//! A signature names its message, its number among the message's thinking blocks and how many there are, and hashes
//! model, text and the blocks since the thinking block before it. So a lab that was started anew still finds a changed
//! byte, another model, a missing or moved block. It is no secret: this is not cryptography.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// Where a thinking block stands in the message it was sent in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seal {
    pub message: String,
    /// Counted from 0 among the thinking blocks of the message.
    pub number: usize,
    pub count: usize,
    /// The fingerprint of the blocks since the thinking block before; 0 for the first.
    pub since: u64,
}

impl Seal {
    /// Returns the signature of a thinking text, or the data of a redacted block.
    pub fn to_signature(&self, model: &str, text: &str) -> String {
        BASE64.encode(self.plain(model, text))
    }

    fn plain(&self, model: &str, text: &str) -> String {
        let Seal { message, number, count, since } = self;
        let hash = fingerprint(&[message.as_bytes(), model.as_bytes(), text.as_bytes()]);
        format!("lab1.{message}.{number}.{count}.{since:016x}.{hash:016x}")
    }

    /// Returns the seal of a signature that this lab, or another one, made for that model and text.
    pub fn from_signature(signature: &str, model: &str, text: &str) -> Option<Seal> {
        let plain = String::from_utf8(BASE64.decode(signature).ok()?).ok()?;
        let mut parts = plain.split('.');
        let _version = parts.next().filter(|v| *v == "lab1")?;
        let seal = Seal {
            message: parts.next()?.to_owned(),
            number: parts.next()?.parse().ok()?,
            count: parts.next()?.parse().ok()?,
            since: u64::from_str_radix(parts.next()?, 16).ok()?,
        };
        (seal.plain(model, text) == plain).then_some(seal)
    }

    /// Returns the data of a redacted block: the seal of a text that only the lab can read, and that text.
    pub fn to_redacted(&self, model: &str, text: &str) -> String {
        BASE64.encode(format!("{}.{}", self.plain(model, text), BASE64.encode(text)))
    }

    /// Returns the seal of redacted data made for that model.
    pub fn from_redacted(data: &str, model: &str) -> Option<Seal> {
        let plain = String::from_utf8(BASE64.decode(data).ok()?).ok()?;
        let (sealed, text) = plain.rsplit_once('.')?;
        let text = String::from_utf8(BASE64.decode(text).ok()?).ok()?;
        Seal::from_signature(&BASE64.encode(sealed), model, &text)
    }
}

/// Returns the FNV-1a hash of byte strings, with their borders.
pub(crate) fn fingerprint(parts: &[&[u8]]) -> u64 {
    let mut hash = FNV_START;
    for part in parts {
        for byte in *part {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME);
        }
        // 0xFF is in no UTF-8 text, so two lists of texts never hash alike by their borders.
        hash = (hash ^ 0xFF).wrapping_mul(FNV_PRIME);
    }
    hash
}

/// Returns the fingerprint of the blocks between two thinking blocks, told as (type, id or text).
pub(crate) fn since(blocks: &[(&str, &str)]) -> u64 {
    let parts: Vec<&[u8]> = blocks.iter().flat_map(|(kind, key)| [kind.as_bytes(), key.as_bytes()]).collect();
    fingerprint(&parts)
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_good_for_its_model_and_text_only() {
        let seal = Seal { message: "msg_lab_0001".into(), number: 1, count: 2, since: 7 };
        let signature = seal.to_signature("a", "so…");
        assert_eq!(Seal::from_signature(&signature, "a", "so…"), Some(seal.clone()));
        assert_eq!(Seal::from_signature(&signature, "b", "so…"), None);
        assert_eq!(Seal::from_signature(&signature, "a", "so… "), None);
        assert_eq!(Seal::from_signature("c2lnbmVk", "a", "so…"), None);
        let data = seal.to_redacted("a", "dark.ly");
        assert_eq!(Seal::from_redacted(&data, "a"), Some(seal));
        assert_eq!(Seal::from_redacted(&data, "b"), None);
    }
}
