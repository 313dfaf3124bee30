//! The scalars: true and false, numbers, text, and whatever a raw option takes.

use strata_diagnostics::Diagnostic;

use crate::scalar::{ScalarKind, Style};
use crate::shape::TextShape;
use crate::{Context, Decode, Node, Rules, Scalar, Shape, Spanned, shorten};

impl Decode for bool {
    fn shape() -> Shape {
        Shape::Bool
    }

    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        let scalar = cx.scalar(node, &Shape::Bool)?;
        if let ScalarKind::Bool(value) = scalar.kind() {
            return Some(value);
        }
        let meant = match scalar.text.to_ascii_lowercase().as_str() {
            "yes" | "y" | "on" | "1" | "true" => Some("true"),
            "no" | "n" | "off" | "0" | "false" => Some("false"),
            _ => None,
        };
        cx.wrong_type_hint(node, &Shape::Bool, meant.map(|meant| format!("write `{meant}`, without quotes")));
        None
    }
}

macro_rules! integer {
    ($($type:ty),*) => {$(
        impl Decode for $type {
            fn shape() -> Shape {
                Shape::Integer(
                    i64::try_from(<$type>::MIN).unwrap_or(i64::MIN),
                    i64::try_from(<$type>::MAX).unwrap_or(i64::MAX),
                )
            }

            fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
                integer(node, &Self::shape(), cx).and_then(|value| Self::try_from(value).ok())
            }
        }
    )*};
}

integer!(u8, u16, u32, u64, i64);

/// Reads a whole number within the rules, or else within what the type can hold.
fn integer(node: &Node, shape: &Shape, cx: &mut Context<'_>) -> Option<i64> {
    let scalar = cx.scalar(node, shape)?;
    let ScalarKind::Integer(value) = scalar.kind() else {
        let quoted = scalar.style == Style::Quoted
            && matches!(Scalar::plain(scalar.text.as_str()).kind(), ScalarKind::Integer(_));
        cx.wrong_type_hint(node, shape, quoted.then(|| "remove the quotes".to_owned()));
        return None;
    };
    let (least, most) = match (cx.rules().range, shape) {
        (Some(range), _) => range,
        (None, Shape::Integer(least, most)) => (*least, *most),
        _ => (i64::MIN, i64::MAX),
    };
    let value = value.filter(|value| (least..=most).contains(value));
    if value.is_none() {
        let allowed = shape.describe(&Rules::default().range(least, most));
        let message = format!("{} is {}; it takes {allowed}", cx.what(), shorten(&scalar.text));
        cx.push(Diagnostic::error("out-of-range", message).at(node.span));
    }
    value
}

impl Decode for f64 {
    fn shape() -> Shape {
        Shape::Number
    }

    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        let scalar = cx.scalar(node, &Shape::Number)?;
        let number = match scalar.kind() {
            ScalarKind::Integer(_) | ScalarKind::Float => {
                scalar.text.parse::<f64>().ok().filter(|n| n.is_finite())
            }
            _ => None,
        };
        let Some(number) = number else {
            cx.wrong_type(node, &Shape::Number);
            return None;
        };
        if let Some((least, most)) = cx.rules().range
            && !(least as f64..=most as f64).contains(&number)
        {
            let message =
                format!("{} is {}; it takes a number from {least} to {most}", cx.what(), scalar.text);
            cx.push(Diagnostic::error("out-of-range", message).at(node.span));
            return None;
        }
        Some(number)
    }
}

impl Decode for String {
    fn shape() -> Shape {
        Shape::Text(TextShape::ANY)
    }

    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        text(node, TextShape::ANY, cx)
    }
}

/// Reads text, and reports what only looks like it: `1.10` would lose its zero as a number.
pub(crate) fn text(node: &Node, shape: TextShape, cx: &mut Context<'_>) -> Option<String> {
    let from_outside = node.as_scalar().is_none();
    let scalar = cx.scalar(node, &Shape::Text(shape))?;
    match scalar.kind() {
        ScalarKind::Text => {}
        _ if from_outside => {}
        ScalarKind::Null => {
            cx.wrong_type_hint(
                node,
                &Shape::Text(shape),
                Some("write a value, or remove the line".to_owned()),
            );
            return None;
        }
        _ => {
            let hint = match cx.rules().secret {
                true => "put it in quotes".to_owned(),
                false => format!("put it in quotes: \"{}\"", shorten(&scalar.text)),
            };
            cx.wrong_type_hint(node, &Shape::Text(shape), Some(hint));
            return None;
        }
    }
    if let Some(rule) = cx.rules().text
        && !(rule.accepts)(&scalar.text)
    {
        let message = format!("{} takes {}", cx.what(), rule.shape.what);
        cx.push(Diagnostic::error("invalid-value", message).at(node.span));
        return None;
    }
    Some(scalar.into_owned().text)
}

/// Reads text and what it spells; a problem in words is reported with what is expected.
pub fn decode_text<T>(
    node: &Node,
    shape: TextShape,
    cx: &mut Context<'_>,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Option<T> {
    let text = text(node, shape, cx)?;
    match parse(&text) {
        Ok(value) => Some(value),
        Err(problem) => {
            let label = format!("{} takes {}", cx.what(), shape.what);
            cx.push(Diagnostic::error("invalid-value", problem).at_with(node.span, label));
            None
        }
    }
}

/// A scalar as it was written, for keys whose meaning is not ours.
#[derive(Debug, Clone, PartialEq)]
pub enum Raw {
    Bool(bool),
    Integer(i64),
    Text(String),
}

impl Raw {
    /// In the form that a Proxmox configuration has it: `1` and `0` for true and false.
    pub fn to_wire(&self) -> String {
        match self {
            Self::Bool(value) => u8::from(*value).to_string(),
            Self::Integer(value) => value.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

impl Decode for Raw {
    fn shape() -> Shape {
        Shape::Scalar
    }

    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        let scalar = cx.scalar(node, &Shape::Scalar)?;
        match scalar.kind() {
            ScalarKind::Bool(value) => Some(Self::Bool(value)),
            ScalarKind::Integer(Some(value)) => Some(Self::Integer(value)),
            ScalarKind::Null => {
                cx.wrong_type_hint(
                    node,
                    &Shape::Scalar,
                    Some("write a value, or remove the line".to_owned()),
                );
                None
            }
            _ => Some(Self::Text(scalar.into_owned().text)),
        }
    }
}

impl Decode for Node {
    fn shape() -> Shape {
        Shape::Any
    }

    fn decode(node: &Node, _: &mut Context<'_>) -> Option<Self> {
        Some(node.clone())
    }
}

impl<T: Decode> Decode for Spanned<T> {
    fn shape() -> Shape {
        T::shape()
    }

    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        T::decode(node, cx).map(|value| Spanned::new(value, node.span))
    }
}

impl<T: Decode> Decode for Box<T> {
    fn shape() -> Shape {
        T::shape()
    }

    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        T::decode(node, cx).map(Box::new)
    }
}

impl<T: Decode> Decode for Option<T> {
    fn shape() -> Shape {
        T::shape()
    }

    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        T::decode(node, cx).map(Some)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}
