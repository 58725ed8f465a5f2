//! What the runner tells a living agent over the inherited pipe: `kind, length (LE u32), bytes`.

/// Bytes of one frame's body; more is a broken peer.
const FRAME_BYTES_MAX: usize = 8 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The command runs.
    Ready,
    /// It does not, and will not; the body says why.
    Refused,
    Out,
    Err,
    /// The body is the exit report.
    Exit,
}

impl Kind {
    fn byte(self) -> u8 {
        match self {
            Kind::Ready => b'r',
            Kind::Refused => b'x',
            Kind::Out => b'o',
            Kind::Err => b'e',
            Kind::Exit => b'q',
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        [Kind::Ready, Kind::Refused, Kind::Out, Kind::Err, Kind::Exit]
            .into_iter()
            .find(|kind| kind.byte() == byte)
    }
}

pub(super) fn write(kind: Kind, body: &[u8], into: &mut Vec<u8>) {
    let length = u32::try_from(body.len()).expect("bodies are far below 4 GiB");
    into.push(kind.byte());
    into.extend_from_slice(&length.to_le_bytes());
    into.extend_from_slice(body);
}

/// Puts frames together from whatever pieces arrive.
#[derive(Debug, Default)]
pub(super) struct Frames {
    pending: Vec<u8>,
}

impl Frames {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// Takes the next whole frame. Errors: bytes that are no frame.
    pub(super) fn next(&mut self) -> Result<Option<(Kind, Vec<u8>)>, &'static str> {
        let Some((head, rest)) = self.pending.split_at_checked(5) else { return Ok(None) };
        let kind = Kind::from_byte(head[0]).ok_or("unknown frame")?;
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if length > FRAME_BYTES_MAX {
            return Err("frame too long");
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let body = body.to_vec();
        self.pending.drain(..5 + length);
        Ok(Some((kind, body)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_whole_whatever_the_pieces() {
        let mut bytes = Vec::new();
        write(Kind::Ready, b"", &mut bytes);
        write(Kind::Out, "häh\n".as_bytes(), &mut bytes);
        write(Kind::Exit, b"{}", &mut bytes);
        for size in 1..bytes.len() {
            let mut frames = Frames::default();
            let mut got = Vec::new();
            for piece in bytes.chunks(size) {
                frames.push(piece);
                while let Some((kind, body)) = frames.next().unwrap() {
                    got.push((kind, String::from_utf8(body).unwrap()));
                }
            }
            let want = [(Kind::Ready, ""), (Kind::Out, "häh\n"), (Kind::Exit, "{}")];
            assert_eq!(got, want.map(|(kind, text)| (kind, text.to_owned())), "pieces of {size}");
        }
    }

    #[test]
    fn bytes_that_are_no_frame_are_an_error() {
        for bad in [&b"?\0\0\0\0"[..], b"o\xff\xff\xff\xff"] {
            let mut frames = Frames::default();
            frames.push(bad);
            assert!(frames.next().is_err());
        }
    }
}
