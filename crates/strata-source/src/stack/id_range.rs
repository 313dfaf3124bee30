//! Ranges of VMIDs that a stack keeps to.

use std::fmt;

use strata_yaml::{Context, Decode, Node, Shape, TextShape, decode_text};

/// VMIDs from the first to the last, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdRange {
    pub first: u32,
    pub last: u32,
}

impl IdRange {
    pub fn contains(&self, id: u32) -> bool {
        (self.first..=self.last).contains(&id)
    }

    pub fn overlaps(&self, other: &Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

impl fmt::Display for IdRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

const TEXT: TextShape =
    TextShape { what: "a range of VMIDs such as `9100-9199`", pattern: Some("^[0-9]+-[0-9]+$") };

impl Decode for IdRange {
    fn shape() -> Shape {
        Shape::Text(TEXT)
    }

    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        decode_text(node, TEXT, cx, |text| {
            let (first, last) = text.split_once('-').ok_or_else(|| format!("`{text}` is not a range"))?;
            let number = |part: &str| part.parse::<u32>().ok().filter(|id| (100..=999_999_999).contains(id));
            match (number(first), number(last)) {
                (Some(first), Some(last)) if first <= last => Ok(Self { first, last }),
                (Some(_), Some(_)) => Err(format!("`{text}` begins after its end")),
                _ => Err(format!("`{text}` is not a range of VMIDs: they go from 100 to 999999999")),
            }
        })
    }
}
