//! Reads serial and lineage out of a state while it streams by. Nothing of the state is kept, however large it is.

use std::ops::Range;

/// Deeper than any state; a limit all the same.
const MAX_DEPTH: usize = 256;
/// Longer values of the keys that we look for are none of ours.
const MAX_CAPTURED: usize = 256;

/// What the outermost object of a state says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Outline {
    pub(crate) serial: Option<u64>,
    pub(crate) lineage: Option<String>,
    /// Where the serial stands, in bytes.
    pub(crate) serial_at: Option<Range<u64>>,
    /// It lists its resources, so it is not encrypted.
    pub(crate) plain: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is no state: it is not one JSON object")]
pub(crate) struct NotAState;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    Start,
    KeyOrEnd,
    Key,
    Colon,
    Value,
    /// Within a number or a literal of the outermost object.
    Scalar,
    CommaOrEnd,
    End,
}

/// Takes a state chunk by chunk. It checks brackets, strings and the outermost object, not what stands within.
pub(crate) struct Scanner {
    offset: u64,
    /// The closing brackets that are awaited.
    stack: Vec<u8>,
    expect: Expect,
    in_string: bool,
    escaped: bool,
    key: Vec<u8>,
    value: Vec<u8>,
    value_start: u64,
    outline: Outline,
    broken: bool,
}

impl Default for Scanner {
    fn default() -> Self {
        Self {
            offset: 0,
            stack: Vec::new(),
            expect: Expect::Start,
            in_string: false,
            escaped: false,
            key: Vec::new(),
            value: Vec::new(),
            value_start: 0,
            outline: Outline::default(),
            broken: false,
        }
    }
}

impl Scanner {
    pub(crate) fn push(&mut self, chunk: &[u8]) {
        let mut rest = chunk;
        while !self.broken && !rest.is_empty() {
            // Nearly all of a state is inside of strings, deep down: those are skipped without a look at each byte's meaning.
            if self.in_string && !self.escaped && self.stack.len() > 1 {
                let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')).unwrap_or(rest.len());
                self.offset += plain as u64;
                rest = &rest[plain..];
                if rest.is_empty() {
                    break;
                }
            }
            self.byte(rest[0]);
            self.offset += 1;
            rest = &rest[1..];
        }
    }

    pub(crate) fn finish(self) -> Result<Outline, NotAState> {
        if self.broken || self.expect != Expect::End { Err(NotAState) } else { Ok(self.outline) }
    }

    fn byte(&mut self, byte: u8) {
        if self.in_string {
            return self.string_byte(byte);
        }
        if self.stack.len() > 1 {
            return self.nested_byte(byte);
        }
        if byte.is_ascii_whitespace() {
            if self.expect == Expect::Scalar {
                self.scalar_ends();
            }
            return;
        }
        match (self.expect, byte) {
            (Expect::Start, b'{') => {
                self.stack.push(b'}');
                self.expect = Expect::KeyOrEnd;
            }
            (Expect::KeyOrEnd | Expect::Key, b'"') => {
                self.in_string = true;
                self.expect = Expect::Key;
                self.key.clear();
            }
            (Expect::Colon, b':') => self.expect = Expect::Value,
            (Expect::Value, b'"') => {
                self.in_string = true;
                self.value.clear();
            }
            (Expect::Value, b'{' | b'[') => {
                self.outline.plain |= self.key == b"resources";
                self.open(byte);
            }
            (Expect::Value, b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                self.expect = Expect::Scalar;
                self.value_start = self.offset;
                self.value.clear();
                self.value.push(byte);
            }
            (Expect::Scalar, b',' | b'}') => {
                self.scalar_ends();
                self.byte(byte);
            }
            (Expect::Scalar, _) if self.value.len() < MAX_CAPTURED => self.value.push(byte),
            (Expect::CommaOrEnd, b',') => self.expect = Expect::Key,
            (Expect::KeyOrEnd | Expect::CommaOrEnd, b'}') => {
                self.stack.pop();
                self.expect = Expect::End;
            }
            _ => self.broken = true,
        }
    }

    fn string_byte(&mut self, byte: u8) {
        let ends = byte == b'"' && !self.escaped;
        self.escaped = byte == b'\\' && !self.escaped;
        if ends {
            self.in_string = false;
        }
        if self.stack.len() > 1 {
            return;
        }
        let captured = if self.expect == Expect::Key { &mut self.key } else { &mut self.value };
        if !ends {
            if captured.len() <= MAX_CAPTURED {
                captured.push(byte);
            }
            return;
        }
        if self.expect == Expect::Key {
            self.expect = Expect::Colon;
        } else {
            if self.key == b"lineage" && self.value.len() <= MAX_CAPTURED {
                self.outline.lineage = unescaped(&self.value);
            }
            self.expect = Expect::CommaOrEnd;
        }
    }

    fn nested_byte(&mut self, byte: u8) {
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.open(byte),
            b'}' | b']' => {
                self.broken |= self.stack.pop() != Some(byte);
                if self.stack.len() == 1 {
                    self.expect = Expect::CommaOrEnd;
                }
            }
            _ => {}
        }
    }

    fn open(&mut self, bracket: u8) {
        self.stack.push(if bracket == b'{' { b'}' } else { b']' });
        self.broken |= self.stack.len() > MAX_DEPTH;
    }

    fn scalar_ends(&mut self) {
        self.expect = Expect::CommaOrEnd;
        let text = std::str::from_utf8(&self.value).unwrap_or_default();
        match text.parse::<u64>() {
            Ok(serial) if self.key == b"serial" && i64::try_from(serial).is_ok() => {
                self.outline.serial = Some(serial);
                self.outline.serial_at = Some(self.value_start..self.offset);
            }
            // What is no number of ours must still be JSON.
            _ => self.broken |= serde_json::from_str::<serde_json::Value>(text).is_err(),
        }
    }
}

fn unescaped(inner: &[u8]) -> Option<String> {
    let mut quoted = Vec::with_capacity(inner.len() + 2);
    quoted.push(b'"');
    quoted.extend_from_slice(inner);
    quoted.push(b'"');
    serde_json::from_slice(&quoted).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(text: &str, chunk: usize) -> Result<Outline, NotAState> {
        let mut scanner = Scanner::default();
        for chunk in text.as_bytes().chunks(chunk) {
            scanner.push(chunk);
        }
        scanner.finish()
    }

    #[test]
    fn finds_serial_and_lineage_however_it_is_cut() {
        let text = "\n{ \"version\": 4, \"serial\":12 ,\"lineage\":\"a\\\"b\\u00e4\", \
                    \"resources\":[{\"serial\":99,\"x\":\"}]\\\"\\\\\"}],\"z\":null}\n";
        for chunk in 1..text.len() {
            let found = outline(text, chunk).unwrap();
            assert_eq!(found.serial, Some(12), "{chunk}");
            assert_eq!(found.lineage.as_deref(), Some("a\"bä"));
            assert!(found.plain);
            let at = found.serial_at.unwrap();
            assert_eq!(&text[at.start as usize..at.end as usize], "12");
        }
    }

    #[test]
    fn an_encrypted_state_has_no_resources() {
        let found = outline(r#"{"serial":1,"lineage":"x","encrypted_data":"abc"}"#, 7).unwrap();
        assert!(!found.plain);
    }

    #[test]
    fn what_is_cut_off_is_no_state() {
        let text = r#"{"serial": 3, "a": {"b": [1, "x"]}, "lineage": "l"}"#;
        for length in 0..text.len() {
            assert_eq!(outline(&text[..length], 64), Err(NotAState), "{length}");
        }
        assert!(outline(text, 64).is_ok());
    }

    #[test]
    fn odd_texts_are_no_states() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(1000), "]".repeat(1000));
        for text in [
            "",
            "[]",
            "1",
            "{} {}",
            "{\"a\" 1}",
            "{\"a\":1,}",
            "{\"a\":[}",
            "{\"a\":nul}",
            "{,}",
            "<html>",
            &deep,
        ] {
            assert_eq!(outline(text, 64), Err(NotAState), "{text}");
        }
        assert_eq!(outline("{}", 1), Ok(Outline::default()));
        assert_eq!(outline(r#"{"serial":-1}"#, 1).unwrap().serial, None);
        assert_eq!(outline(r#"{"serial":18446744073709551615}"#, 1).unwrap().serial, None);
    }
}
