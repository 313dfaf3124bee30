//! How a value can lie in a file: behind its key, below it, broken over lines, or in an encoding of Windows.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::shape::{self, Shape};

/// A shorter line among others in base64 is the last one.
const SHORTEST_PART: usize = 16;

/// A key whose value comes on the next line.
static KEY_ALONE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"^(.*[\w"']\s*[:=])\s*(?:[>|][-+0-9]*)?\s*(?:#.*)?$"#).ok());

/// A key and the beginning of a value in base64 that goes on below.
static BEGINNING: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"[:=]\s*["']?([A-Za-z0-9+/]{16,})\\?\s*$"#).ok());

/// Content as UTF-8, where it says by its first bytes that it is UTF-16.
pub(super) fn readable(content: &[u8]) -> Cow<'_, [u8]> {
    let pair: fn([u8; 2]) -> u16 = match content {
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => return Cow::Borrowed(content),
    };
    let units: Vec<u16> = content[2..].chunks_exact(2).map(|two| pair([two[0], two[1]])).collect();
    Cow::Owned(String::from_utf16_lossy(&units).into_bytes())
}

/// What looks like a secret, by the number of its line.
pub(super) fn looks(lines: &[&[u8]]) -> BTreeMap<usize, Shape> {
    let mut found: BTreeMap<usize, Shape> = lines
        .iter()
        .enumerate()
        .filter_map(|(index, line)| Some((index + 1, shape::of_line(line)?)))
        .collect();
    for (index, line) in lines.iter().enumerate() {
        let below = index + 2;
        if found.contains_key(&below) {
            continue;
        }
        if let Some(like) = lines.get(index + 1).and_then(|next| of_value_below(line, next)) {
            found.insert(below, like);
        }
        if is_putty(lines, index) {
            found.insert(index + 1, Shape::PrivateKey);
        }
    }
    for (first, joined) in blocks(lines) {
        let last = first + joined.1;
        if found.range(first..=last).next().is_none()
            && let Some(like) = shape::of_line(&joined.0)
        {
            found.insert(first, like);
        }
    }
    found
}

fn of_value_below(line: &[u8], next: &[u8]) -> Option<Shape> {
    let key = KEY_ALONE.as_ref()?.captures(line)?.get(1)?;
    let value = next.trim_ascii();
    if value.is_empty() || value.contains(&b':') {
        return None;
    }
    shape::of_line(&[key.as_bytes(), b" ", value].concat())
}

/// A key of PuTTY says in its second line whether it is encrypted.
fn is_putty(lines: &[&[u8]], index: usize) -> bool {
    lines[index].starts_with(b"PuTTY-User-Key-File-")
        && lines.iter().skip(index + 1).take(4).any(|line| line.trim_ascii() == b"Encryption: none")
}

/// Values in base64 over several lines, joined: where each begins, and over how many further lines it goes.
fn blocks(lines: &[&[u8]]) -> Vec<(usize, (Vec<u8>, usize))> {
    let mut found = Vec::new();
    let mut index = 0;
    while index < lines.len() {
        let Some(start) = part(lines[index], SHORTEST_PART).or_else(|| beginning(lines[index])) else {
            index += 1;
            continue;
        };
        let mut joined = start.to_vec();
        let first = index;
        index += 1;
        while let Some(more) = lines.get(index).and_then(|line| part(line, 1)) {
            joined.extend_from_slice(more);
            index += 1;
        }
        if index > first + 1 {
            found.push((first + 1, (joined, index - first - 1)));
        }
    }
    found
}

fn beginning(line: &[u8]) -> Option<&[u8]> {
    Some(BEGINNING.as_ref()?.captures(line)?.get(1)?.as_bytes())
}

/// A line that is nothing but base64, whatever marks the language of the file puts around it.
fn part(line: &[u8], shortest: usize) -> Option<&[u8]> {
    let is_mark =
        |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'\\' | b',' | b'+');
    let start = line.iter().position(|byte| !is_mark(byte) || *byte == b'+')?;
    let end = line.iter().rposition(|byte| !is_mark(byte) || *byte == b'+')? + 1;
    let inner = &line[start..end];
    let is_base64 =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_');
    (inner.len() >= shortest && inner.iter().all(is_base64) && !inner.starts_with(b"--")).then_some(inner)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    const KEY: &str = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIHxlyEh2ToVw3zClH3CvS2BtYLs6\n-----END EC PRIVATE KEY-----\n";

    fn of(text: &str) -> Vec<(usize, Shape)> {
        let text = readable(text.as_bytes());
        let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
        looks(&lines).into_iter().collect()
    }

    #[test]
    fn c2_a_value_below_its_key_is_found() {
        assert_eq!(of("a: b\ntoken: >-\n  9dt69t.rzbk2gb2uxmgx3k6\n"), [(3, Shape::ClusterSecret)]);
        assert_eq!(
            of("secret:   # of the cluster\n  DSiAqt2hUNUvJGvftw7qjFTyR030yJq/7q2EoS/4Sn8=\n"),
            [(2, Shape::ClusterSecret)]
        );
        assert_eq!(of("token:\n  name: x\nsecret:\n"), []);
    }

    #[test]
    fn c2_a_value_over_several_lines_is_found_once() {
        let encoded = STANDARD.encode(KEY);
        let wrapped: Vec<String> =
            encoded.as_bytes().chunks(36).map(|line| String::from_utf8(line.to_vec()).unwrap()).collect();
        assert_eq!(of(&format!("key: |\n  {}\n", wrapped.join("\n  "))), [(2, Shape::PrivateKey)]);
        assert_eq!(of(&format!("key: {}\n", wrapped.join("\n  "))), [(1, Shape::PrivateKey)]);
        assert_eq!(of(&format!("x = \"{}\"\n", wrapped.join("\\\n"))), [(1, Shape::PrivateKey)]);
        let public = STANDARD.encode(KEY.replace("EC PRIVATE KEY", "CERTIFICATE"));
        let lines: Vec<&str> =
            public.as_bytes().chunks(36).map(|line| std::str::from_utf8(line).unwrap()).collect();
        assert_eq!(of(&format!("crt: |\n  {}\n", lines.join("\n  "))), []);
    }

    #[test]
    fn c2_text_in_utf_16_is_read() {
        let text = "x: y\nkey: -----BEGIN PRIVATE KEY-----\n";
        let little: Vec<u8> =
            [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
        let big: Vec<u8> =
            [0xfe, 0xff].into_iter().chain(text.encode_utf16().flat_map(u16::to_be_bytes)).collect();
        for content in [little, big] {
            let text = readable(&content);
            let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
            assert_eq!(looks(&lines).into_iter().collect::<Vec<_>>(), [(2, Shape::PrivateKey)]);
        }
    }

    #[test]
    fn c2_a_putty_key_is_found_unless_it_is_encrypted() {
        let key = |how: &str| {
            format!("PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: {how}\nPrivate-Lines: 1\nAAAA\n")
        };
        assert_eq!(of(&key("none")), [(1, Shape::PrivateKey)]);
        assert_eq!(of(&key("aes256-cbc")), []);
    }
}
