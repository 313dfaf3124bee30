//! The shapes in which a secret turns up in someone else's text.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Anything shorter is not scrubbed.
pub(super) const SHORTEST: usize = 4;

/// A line of a longer secret is scrubbed by itself from this length on.
const SHORTEST_LINE: usize = 8;

/// The characters that RFC 3986 lets stand unescaped, and that browsers' encodeURIComponent adds.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const COMPONENT: &AsciiSet = &UNRESERVED.remove(b'!').remove(b'\'').remove(b'(').remove(b')').remove(b'*');
/// What the query of a URL must escape; everything else may be there as it is.
const QUERY: &AsciiSet = &percent_encoding::CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>');

#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Form {
    pub(super) text: String,
    pub(super) kind: FormKind,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FormKind {
    /// The match is the secret.
    Exact,
    /// The match is the part of the secret's base64 that does not depend on its neighbours; the word around it goes too.
    Base64,
}

/// Every form of one secret, and of each longer line of it.
pub(super) fn of(secret: &str) -> Vec<Form> {
    let mut forms = whole(secret);
    let trimmed = secret.trim();
    if trimmed.len() >= SHORTEST && trimmed.len() < secret.len() {
        forms.extend(whole(trimmed));
    }
    if trimmed.contains('\n') {
        let lines = trimmed.lines().map(str::trim);
        let worth_it = lines.filter(|line| line.len() >= SHORTEST_LINE && !line.starts_with("-----"));
        forms.extend(worth_it.flat_map(whole));
    }
    forms
}

fn whole(secret: &str) -> Vec<Form> {
    let mut exact = vec![secret.to_owned(), hex::encode(secret), hex::encode_upper(secret)];
    for set in [NON_ALPHANUMERIC, UNRESERVED, COMPONENT, QUERY] {
        let upper = utf8_percent_encode(secret, set).to_string();
        exact.push(upper.replace("%20", "+"));
        exact.push(lower_case_escapes(&upper));
        exact.push(lower_case_escapes(&upper).replace("%20", "+"));
        exact.push(upper);
    }
    for json in [json_escaped(secret, false), json_escaped(secret, true)] {
        exact.push(json.replace('/', "\\/"));
        exact.push(json);
    }
    let exact = exact.into_iter().map(|text| Form { text, kind: FormKind::Exact });
    let base64 =
        base64_cores(secret.as_bytes()).into_iter().map(|text| Form { text, kind: FormKind::Base64 });
    exact.chain(base64).collect()
}

/// The base64 of the secret at each of the three places it can have in a longer text, without the characters at
/// the edges that its neighbours decide.
fn base64_cores(secret: &[u8]) -> Vec<String> {
    let mut cores = Vec::new();
    for skipped in 0..3 {
        let inner = secret.get(skipped..).unwrap_or_default();
        let inner = &inner[..inner.len() - inner.len() % 3];
        // Fewer than six characters would be found in unrelated text.
        if inner.len() >= 5 {
            cores.push(STANDARD_NO_PAD.encode(inner));
            cores.push(URL_SAFE_NO_PAD.encode(inner));
        }
    }
    cores
}

/// The whole base64 word that the match is in.
pub(super) fn surrounding_base64(text: &[u8], range: Range<usize>) -> Range<usize> {
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_=".contains(byte);
    let before = text[..range.start].iter().rev().take_while(|byte| word(byte)).count();
    let after = text[range.end..].iter().take_while(|byte| word(byte)).count();
    range.start - before..range.end + after
}

fn lower_case_escapes(encoded: &str) -> String {
    let mut digits = 0;
    encoded
        .chars()
        .map(|character| {
            if character == '%' {
                digits = 2;
                character
            } else if digits > 0 {
                digits -= 1;
                character.to_ascii_lowercase()
            } else {
                character
            }
        })
        .collect()
}

/// The inside of a JSON string; with `ascii`, as the encoders write it that escape everything else.
fn json_escaped(secret: &str, ascii: bool) -> String {
    let mut escaped = String::with_capacity(secret.len());
    for character in secret.chars() {
        match character {
            '"' => escaped.push_str("\\\""),
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            control if control < ' ' => escaped.push_str(&format!("\\u{:04x}", control as u32)),
            other if ascii && !other.is_ascii() => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    escaped.push_str(&format!("\\u{unit:04x}"));
                }
            }
            other => escaped.push(other),
        }
    }
    escaped
}
