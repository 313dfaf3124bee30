//! JSON text as values with their places.

use std::collections::HashSet;
use std::ops::Range;

use crate::sops::SopsError;
use crate::value::Value;

const DEEPEST: usize = 128;

pub(super) enum Read {
    Object(Vec<Member>),
    Array(Vec<(Read, Range<usize>)>),
    Scalar(Value),
}

pub(super) struct Member {
    pub(super) key: String,
    /// Where the key starts.
    pub(super) at: usize,
    pub(super) value: Read,
    /// Where the value stands.
    pub(super) span: Range<usize>,
}

pub(super) struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0, depth: 0 }
    }

    /// The members of the one object that the file is, and where its closing brace stands.
    pub(super) fn whole_object(&mut self) -> Result<(Vec<Member>, usize), SopsError> {
        self.skip_blanks();
        if self.peek() != Some(b'{') {
            return Err(SopsError::NotAMapping);
        }
        let members = self.object()?;
        let closed = self.at - 1;
        self.skip_blanks();
        if self.at < self.text.len() {
            Err(self.error("something follows the object"))
        } else {
            Ok((members, closed))
        }
    }

    fn value(&mut self) -> Result<(Read, Range<usize>), SopsError> {
        self.skip_blanks();
        let start = self.at;
        let read = match self.peek() {
            Some(b'{') => Read::Object(self.object()?),
            Some(b'[') => Read::Array(self.array()?),
            Some(b'"') => Read::Scalar(Value::text(self.string()?)),
            Some(b'-' | b'0'..=b'9') => Read::Scalar(self.number()?),
            _ => Read::Scalar(self.word()?),
        };
        Ok((read, start..self.at))
    }

    fn object(&mut self) -> Result<Vec<Member>, SopsError> {
        let mut members = Vec::new();
        let mut keys = HashSet::new();
        self.enter()?;
        if self.closes(b'}') {
            return Ok(members);
        }
        loop {
            self.skip_blanks();
            let at = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.error("expected a key"));
            }
            let key = self.string()?;
            if !keys.insert(key.clone()) {
                return Err(SopsError::DuplicateKey { line: self.line(), key });
            }
            self.skip_blanks();
            self.expect(b':')?;
            let (value, span) = self.value()?;
            members.push(Member { key, at, value, span });
            if self.next_or_close(b'}')? {
                return Ok(members);
            }
        }
    }

    fn array(&mut self) -> Result<Vec<(Read, Range<usize>)>, SopsError> {
        let mut elements = Vec::new();
        self.enter()?;
        if self.closes(b']') {
            return Ok(elements);
        }
        loop {
            elements.push(self.value()?);
            if self.next_or_close(b']')? {
                return Ok(elements);
            }
        }
    }

    fn enter(&mut self) -> Result<(), SopsError> {
        self.at += 1;
        self.depth += 1;
        if self.depth > DEEPEST { Err(SopsError::TooDeep { deepest: DEEPEST }) } else { Ok(()) }
    }

    fn closes(&mut self, bracket: u8) -> bool {
        self.skip_blanks();
        let closes = self.peek() == Some(bracket);
        if closes {
            self.at += 1;
            self.depth -= 1;
        }
        closes
    }

    fn next_or_close(&mut self, bracket: u8) -> Result<bool, SopsError> {
        if self.closes(bracket) {
            return Ok(true);
        }
        self.expect(b',')?;
        Ok(false)
    }

    fn string(&mut self) -> Result<String, SopsError> {
        self.at += 1;
        let mut string = String::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(character) = rest.chars().next() else { return Err(self.error("an open string")) };
            self.at += character.len_utf8();
            match character {
                '"' => return Ok(string),
                '\\' => self.escape(&mut string)?,
                control if control < ' ' => return Err(self.error("a control character in a string")),
                other => string.push(other),
            }
        }
    }

    fn escape(&mut self, string: &mut String) -> Result<(), SopsError> {
        let escaped = self.peek().ok_or_else(|| self.error("an open string"))?;
        self.at += 1;
        string.push(match escaped {
            b'"' | b'\\' | b'/' => escaped as char,
            b'b' => '\x08',
            b'f' => '\x0c',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.unit()?;
                let pair = (0xd800..0xdc00).contains(&first) && self.text[self.at..].starts_with("\\u");
                if pair {
                    let before = self.at;
                    self.at += 2;
                    let second = self.unit()?;
                    match char::decode_utf16([first, second]).next() {
                        Some(Ok(character)) => character,
                        // Half a pair stands for the replacement character, and what follows for itself.
                        _ => {
                            self.at = before;
                            char::REPLACEMENT_CHARACTER
                        }
                    }
                } else {
                    char::from_u32(u32::from(first)).unwrap_or(char::REPLACEMENT_CHARACTER)
                }
            }
            _ => {
                // The next character may have more than one byte; give it back before naming the place.
                self.at -= 1;
                return Err(self.error("an unknown escape in a string"));
            }
        });
        Ok(())
    }

    fn unit(&mut self) -> Result<u16, SopsError> {
        let digits = self
            .text
            .get(self.at..self.at + 4)
            .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let unit = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        let unit = unit.ok_or_else(|| self.error("an unknown escape in a string"))?;
        self.at += 4;
        Ok(unit)
    }

    fn number(&mut self) -> Result<Value, SopsError> {
        let rest = &self.text[self.at..];
        let length = rest.bytes().take_while(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte)).count();
        let text = &rest[..length];
        if !is_json_number(text) {
            return Err(self.error("not a number"));
        }
        let value = match text.parse::<i64>() {
            Ok(number) => Value::Int(number),
            Err(_) => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Value::Float(number),
                _ => return Err(self.error("a number that is too large")),
            },
        };
        self.at += length;
        Ok(value)
    }

    fn word(&mut self) -> Result<Value, SopsError> {
        for (word, value) in
            [("true", Value::Bool(true)), ("false", Value::Bool(false)), ("null", Value::Null)]
        {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.error("expected a value"))
    }

    fn expect(&mut self, byte: u8) -> Result<(), SopsError> {
        if self.peek() == Some(byte) {
            self.at += 1;
            Ok(())
        } else {
            Err(self.error(&format!("expected `{}`", byte as char)))
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn line(&self) -> usize {
        self.text.as_bytes()[..self.at].iter().filter(|byte| **byte == b'\n').count() + 1
    }

    fn error(&self, reason: &str) -> SopsError {
        SopsError::Syntax { line: self.line(), reason: reason.to_owned() }
    }
}

/// `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?`
fn is_json_number(text: &str) -> bool {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut rest = text.strip_prefix('-').unwrap_or(text);
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest.starts_with('0')) {
        return false;
    }
    rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let length = digits(fraction);
        if length == 0 {
            return false;
        }
        rest = &fraction[length..];
    }
    let Some(exponent) = rest.strip_prefix(['e', 'E']) else { return rest.is_empty() };
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    !exponent.is_empty() && digits(exponent) == exponent.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(text: &str) -> Result<Value, SopsError> {
        let text = format!("{{\"k\": {text}}}");
        let (members, _) = Reader::new(&text).whole_object()?;
        match members.into_iter().next().expect("one member").value {
            Read::Scalar(value) => Ok(value),
            _ => panic!("not a scalar"),
        }
    }

    #[test]
    fn scalars_are_read_as_go_reads_them() {
        for (text, value) in [
            ("\"a\\u00fc\\ud83d\\ude00\\n\"", Value::text("aü\u{1f600}\n")),
            ("\"\\ud800x\"", Value::text("\u{fffd}x")),
            ("5", Value::Int(5)),
            ("-0", Value::Int(0)),
            ("9223372036854775808", Value::Float(9223372036854775808.0)),
            ("1.5e3", Value::Float(1500.0)),
            ("null", Value::Null),
        ] {
            assert!(only(text).unwrap_or_else(|error| panic!("{text}: {error}")) == value, "{text}");
        }
    }

    #[test]
    fn what_is_not_json_is_refused_with_its_line() {
        for text in
            ["01", "1.", "+1", "1e400", "nul", "\"\\x\"", "\"\\ü\"", "\"a\nb\"", "[1,]", "{", "\"open"]
        {
            assert!(only(text).is_err(), "{text}");
        }
        for text in ["", "[]", "5", "{} x", "{\"a\": 1, \"a\": 2}", "{\"a\" 1}", "{a: 1}"] {
            assert!(Reader::new(text).whole_object().is_err(), "{text}");
        }
        let deep = "[".repeat(100_000);
        assert!(matches!(only(&deep), Err(SopsError::TooDeep { .. })));
    }
}
