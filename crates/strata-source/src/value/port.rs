//! Ports in firewall rules: one, a range, a list, or a service's name.

use std::fmt;

use strata_yaml::{Context, Decode, Node, ScalarKind, Shape, TextShape, decode_text};

/// Ports as the firewall takes them: `443`, `8000:8010`, `80,443`, `ssh`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ports(pub String);

const TEXT: TextShape = TextShape {
    what: "a port, a range such as `8000:8010`, or a list such as `80,443`",
    pattern: Some("^[A-Za-z0-9:,-]+$"),
};

fn parse(text: &str) -> Result<Ports, String> {
    for part in text.split(',') {
        let (first, last) = part.split_once(':').unwrap_or((part, part));
        let numeric = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let fits = |text: &str| {
            if numeric(text) {
                text.parse::<u16>().is_ok()
            } else {
                text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            }
        };
        if first.is_empty() || last.is_empty() || !fits(first) || !fits(last) {
            return Err(format!("`{part}` is not a port or a range of ports"));
        }
    }
    Ok(Ports(text.to_owned()))
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Decode for Ports {
    fn shape() -> Shape {
        Shape::AnyOf(vec![Shape::Integer(0, 65535), Shape::Text(TEXT)])
    }

    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        let number = node.as_scalar().is_some_and(|scalar| matches!(scalar.kind(), ScalarKind::Integer(_)));
        if number {
            u16::decode(node, cx).map(|port| Self(port.to_string()))
        } else {
            decode_text(node, TEXT, cx, parse)
        }
    }
}
