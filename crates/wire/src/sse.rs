//! Server-sent events from bytes, by the HTML standard's grammar.
//!
//! Promises: the same events for any split of the bytes; time linear in the bytes (what was searched is never
//! searched again); memory bounded by the event cap. An event that its blank line has not ended is not one.
//! Differs from the standard on purpose: bytes that are not UTF-8 are an error, because a repaired tool input
//! would be a different input.

use memchr::memchr2;

/// The largest event that a decoder takes unless told otherwise.
pub const EVENT_BYTES_MAX: usize = 64 << 20;

/// One dispatched event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// `message` where the stream names none.
    pub name: String,
    /// The data lines, joined by line feeds.
    pub data: String,
    /// The last id the stream gave, this event's or an earlier one's.
    pub id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    #[error("an event is larger than {cap} bytes")]
    TooLarge { cap: usize },
    #[error("an event is not UTF-8")]
    NotUtf8,
}

/// Bytes in, events out.
#[derive(Debug)]
pub struct Decoder {
    cap: usize,
    /// The start of a line whose end has not come.
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    id: Option<String>,
    retry_ms: Option<u64>,
    /// The last byte was a CR that ended a line; an LF now belongs to it.
    after_cr: bool,
    /// No line has ended yet: a byte order mark may stand before it.
    at_start: bool,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new(EVENT_BYTES_MAX)
    }
}

impl Decoder {
    /// `cap` bounds the bytes of one event, its unfinished line included.
    pub fn new(cap: usize) -> Self {
        Self {
            cap,
            line: Vec::new(),
            name: Vec::new(),
            data: Vec::new(),
            has_data: false,
            id: None,
            retry_ms: None,
            after_cr: false,
            at_start: true,
        }
    }

    /// Takes the next bytes and appends the events they complete, in order.
    /// Errors: [`SseError`]; the decoder is not to be used after one.
    pub fn push(&mut self, mut bytes: &[u8], events: &mut Vec<Event>) -> Result<(), SseError> {
        if self.after_cr
            && let Some(first) = bytes.first()
        {
            if *first == b'\n' {
                bytes = &bytes[1..];
            }
            self.after_cr = false;
        }
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            let (head, tail) = (&bytes[..end], &bytes[end + 1..]);
            let is_cr = bytes[end] == b'\r';
            if self.line.is_empty() {
                self.take_line(head, events)?;
            } else {
                self.check_room(head.len())?;
                self.line.extend_from_slice(head);
                let mut line = std::mem::take(&mut self.line);
                self.take_line(&line, events)?;
                line.clear();
                self.line = line;
            }
            bytes = match tail.first() {
                Some(b'\n') if is_cr => &tail[1..],
                _ => tail,
            };
            self.after_cr = is_cr && tail.is_empty();
        }
        self.check_room(bytes.len())?;
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// Returns the reconnection time that the stream asked for, in milliseconds. We never reconnect by it.
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    fn check_room(&self, more: usize) -> Result<(), SseError> {
        if self.cap < self.line.len() + self.name.len() + self.data.len() + more {
            return Err(SseError::TooLarge { cap: self.cap });
        }
        Ok(())
    }

    fn take_line(&mut self, line: &[u8], events: &mut Vec<Event>) -> Result<(), SseError> {
        let line = match std::mem::take(&mut self.at_start) {
            true => line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line),
            false => line,
        };
        if line.is_empty() {
            return self.dispatch(events);
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => {
                let value = &line[colon + 1..];
                (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &line[line.len()..]),
        };
        match field {
            b"data" => {
                if self.cap < self.name.len() + self.data.len() + value.len() + 1 {
                    return Err(SseError::TooLarge { cap: self.cap });
                }
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            b"id" if !value.contains(&0) => {
                self.id = Some(std::str::from_utf8(value).map_err(|_| SseError::NotUtf8)?.to_owned());
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                self.retry_ms = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
            }
            // Comments (an empty field name) and fields that the standard does not know.
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self, events: &mut Vec<Event>) -> Result<(), SseError> {
        let name = std::mem::take(&mut self.name);
        let data = std::mem::take(&mut self.data);
        if !std::mem::take(&mut self.has_data) {
            return Ok(());
        }
        let name = String::from_utf8(name).map_err(|_| SseError::NotUtf8)?;
        events.push(Event {
            name: if name.is_empty() { "message".to_owned() } else { name },
            data: String::from_utf8(data).map_err(|_| SseError::NotUtf8)?,
            id: self.id.clone(),
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(chunks: &[&[u8]]) -> Result<Vec<Event>, SseError> {
        let mut decoder = Decoder::new(1 << 20);
        let mut events = Vec::new();
        for chunk in chunks {
            decoder.push(chunk, &mut events)?;
        }
        Ok(events)
    }

    fn event(name: &str, data: &str) -> Event {
        Event { name: name.into(), data: data.into(), id: None }
    }

    #[test]
    fn the_grammar_of_the_standard() {
        for (text, want) in [
            ("data: a\n\n", vec![event("message", "a")]),
            ("event: x\ndata:a\ndata:  b\n\n", vec![event("x", "a\n b")]),
            ("event: x\r\ndata: a\r\n\r\ndata: b\r\r", vec![event("x", "a"), event("message", "b")]),
            ("\u{feff}data: a\n\n", vec![event("message", "a")]),
            (": ping\n\ndata\n\n", vec![event("message", "")]),
            ("event: lost\n\ndata: a\n\n", vec![event("message", "a")]),
            ("unknown: x\ndata: é🦀\n\n", vec![event("message", "é🦀")]),
            ("data: no blank line\n", vec![]),
            ("data: a: b\n\n", vec![event("message", "a: b")]),
        ] {
            assert_eq!(decode(&[text.as_bytes()]).unwrap(), want, "{text:?}");
        }
    }

    #[test]
    fn an_id_stays_and_a_retry_is_told() {
        let mut decoder = Decoder::default();
        let mut events = Vec::new();
        decoder.push(b"id: 7\nretry: 1500\ndata: a\n\nretry: x\ndata: b\n\n", &mut events).unwrap();
        assert_eq!(events[1].id.as_deref(), Some("7"));
        assert_eq!(decoder.retry_ms(), Some(1500));
    }

    #[test]
    fn an_event_over_the_cap_is_an_error_wherever_it_grows() {
        for text in ["data: 0123456789\n\n", "data: 0123\ndata: 4567\n\n", ": 0123456789012345"] {
            let mut decoder = Decoder::new(8);
            let got = text.bytes().try_for_each(|byte| decoder.push(&[byte], &mut Vec::new()));
            assert_eq!(got, Err(SseError::TooLarge { cap: 8 }), "{text:?}");
        }
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_an_error() {
        assert_eq!(decode(&[b"data: \xff\n\n"]), Err(SseError::NotUtf8));
    }

    #[test]
    fn a_large_event_in_small_chunks_takes_time_by_its_size() {
        // Searching again what was searched would take minutes here; the bound is far from both.
        let text = format!("data: {}\n\n", "x".repeat(32 << 20));
        let began = std::time::Instant::now();
        let mut decoder = Decoder::default();
        let mut events = Vec::new();
        text.as_bytes().chunks(1_400).for_each(|chunk| decoder.push(chunk, &mut events).unwrap());
        assert_eq!(events[0].data.len(), 32 << 20);
        assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_events_of_the_whole(
            text in "(data|event|id|:|\u{feff}|x)?(: ?)?[a-é🦀 ]{0,6}(\n|\r|\r\n|\n\n|\r\n\r\n){1,3}"
                .prop_flat_map(|line| proptest::collection::vec(Just(line), 1..4))
                .prop_flat_map(|lines| (Just(lines), proptest::collection::vec("data: [a-é]{0,9}\r?\n\r?\n?", 0..5)))
                .prop_map(|(a, b)| a.concat() + &b.concat()),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let bytes = text.as_bytes();
            let whole = decode(&[bytes]);
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            places.extend([0, bytes.len()]);
            places.sort_unstable();
            let chunks: Vec<&[u8]> = places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(&decode(&chunks), &whole);
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(&decode(&single), &whole);
        }

        #[test]
        fn noise_never_panics(noise in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode(&[&noise]);
        }
    }
}
