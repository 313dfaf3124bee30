//! Spans of time: a number of seconds, or text with a unit.

use std::time::Duration;

use strata_yaml::{Context, Decode, Node, ScalarKind, Shape, TextShape, decode_text};

/// A length of time, exact to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seconds(pub u32);

impl Seconds {
    pub fn duration(self) -> Duration {
        Duration::from_secs(self.0.into())
    }
}

const TEXT: TextShape = TextShape {
    what: "a number of seconds, or a time such as `90s`, `10m` or `2h`",
    pattern: Some("^[0-9]+[smh]$"),
};

fn parse(text: &str) -> Result<Seconds, String> {
    let bad = || format!("`{text}` is not a length of time");
    let (number, scale) = match text.as_bytes().last() {
        Some(b's') => (&text[..text.len() - 1], 1),
        Some(b'm') => (&text[..text.len() - 1], 60),
        Some(b'h') => (&text[..text.len() - 1], 3600),
        _ => return Err(bad()),
    };
    let number: u32 = number.parse().map_err(|_| bad())?;
    number.checked_mul(scale).map(Seconds).ok_or_else(bad)
}

impl Decode for Seconds {
    fn shape() -> Shape {
        Shape::AnyOf(vec![u32::shape(), Shape::Text(TEXT)])
    }

    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        let number = node.as_scalar().is_some_and(|scalar| matches!(scalar.kind(), ScalarKind::Integer(_)));
        if number { u32::decode(node, cx).map(Self) } else { decode_text(node, TEXT, cx, parse) }
    }
}
