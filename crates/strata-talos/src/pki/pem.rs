//! PEM: a label and base64 in lines of 64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

/// The block as text.
pub(super) fn encode(label: &str, der: &[u8]) -> Zeroizing<String> {
    let body = Zeroizing::new(STANDARD.encode(der));
    let mut text = Zeroizing::new(String::with_capacity(body.len() + body.len() / 64 + 2 * label.len() + 40));
    text.push_str(&format!("-----BEGIN {label}-----\n"));
    let mut rest = body.as_str();
    while !rest.is_empty() {
        let (line, more) = rest.split_at(rest.len().min(64));
        text.push_str(line);
        text.push('\n');
        rest = more;
    }
    text.push_str(&format!("-----END {label}-----\n"));
    text
}

/// The label and content of the first block.
pub(super) fn decode(text: &[u8]) -> Option<(&str, Zeroizing<Vec<u8>>)> {
    let text = std::str::from_utf8(text).ok()?;
    let (_, rest) = text.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    // Lines with a colon are headers, which say nothing about the key.
    let body: Zeroizing<String> =
        Zeroizing::new(body.lines().filter(|line| !line.contains(':')).map(str::trim).collect());
    Some((label, Zeroizing::new(STANDARD.decode(body.as_bytes()).ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_a_round_trip() {
        for length in [0, 1, 47, 48, 49, 300] {
            let der: Vec<u8> = (0..length).map(|byte| byte as u8).collect();
            let text = encode("EC PRIVATE KEY", &der);
            assert!(text.lines().all(|line| line.len() <= 64));
            let (label, decoded) = decode(text.as_bytes()).expect("a block");
            assert_eq!((label, decoded.as_slice()), ("EC PRIVATE KEY", der.as_slice()));
        }
        for bad in ["", "-----BEGIN X-----\nYQ==\n", "-----BEGIN X-----\n!\n-----END X-----\n"] {
            assert!(decode(bad.as_bytes()).is_none(), "{bad}");
        }
    }
}
