//! Scalars by the YAML 1.2 core schema: `yes` is text here, and `0o17` a number.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scalar {
    pub text: String,
    pub style: Style,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Without quotes: the text decides what it is.
    Plain,
    /// Quoted, or a block: text whatever it looks like.
    Quoted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScalarKind {
    Null,
    Bool(bool),
    /// A whole number; `None` where it does not fit 64 bits.
    Integer(Option<i64>),
    Float,
    Text,
}

/// Longer text is cut in messages.
const SHOWN: usize = 40;

impl Scalar {
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), style: Style::Plain }
    }

    pub fn quoted(text: impl Into<String>) -> Self {
        Self { text: text.into(), style: Style::Quoted }
    }

    pub fn kind(&self) -> ScalarKind {
        match self.style {
            Style::Quoted => ScalarKind::Text,
            Style::Plain => core_kind(&self.text),
        }
    }

    pub fn describe(&self) -> String {
        let text = shorten(&self.text);
        match self.kind() {
            ScalarKind::Null => "nothing".to_owned(),
            ScalarKind::Bool(_) => format!("`{text}`"),
            ScalarKind::Integer(_) => format!("the number `{text}`"),
            ScalarKind::Float => format!("the number `{text}`"),
            ScalarKind::Text if self.text.is_empty() => "empty text".to_owned(),
            ScalarKind::Text => format!("text `{text}`"),
        }
    }
}

/// The first line of a text, cut to what a message can hold.
pub fn shorten(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let mut short: String = line.chars().take(SHOWN).filter(|c| !c.is_control()).collect();
    if short.len() < text.trim_end().len() {
        short.push('…');
    }
    short
}

fn core_kind(text: &str) -> ScalarKind {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return ScalarKind::Null,
        "true" | "True" | "TRUE" => return ScalarKind::Bool(true),
        "false" | "False" | "FALSE" => return ScalarKind::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return ScalarKind::Float,
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return ScalarKind::Float;
    }
    let all = |digits: &str, test: fn(&char) -> bool| !digits.is_empty() && digits.chars().all(|c| test(&c));
    if let Some(digits) = text.strip_prefix("0o").filter(|digits| all(digits, |c| c.is_digit(8))) {
        return ScalarKind::Integer(i64::from_str_radix(digits, 8).ok());
    }
    if let Some(digits) = text.strip_prefix("0x").filter(|digits| all(digits, char::is_ascii_hexdigit)) {
        return ScalarKind::Integer(i64::from_str_radix(digits, 16).ok());
    }
    if all(unsigned, char::is_ascii_digit) {
        return ScalarKind::Integer(text.parse().ok());
    }
    if is_float(unsigned) { ScalarKind::Float } else { ScalarKind::Text }
}

/// `[0-9]*` with at most one point and an optional exponent, at least one digit before the exponent.
fn is_float(unsigned: &str) -> bool {
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_fits = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    exponent_fits && digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_schema_decides_what_plain_text_is() {
        let kind = |text: &str| Scalar::plain(text).kind();
        for null in ["", "~", "null", "NULL"] {
            assert_eq!(kind(null), ScalarKind::Null, "{null}");
        }
        for text in
            ["yes", "on", "No", "nuLL", "0b1", "1_000", "12:30", "v1", "-", "+", ".", "1.2.3", "0x", "e5"]
        {
            assert_eq!(kind(text), ScalarKind::Text, "{text}");
        }
        for float in ["1.5", "-.5", "1.", "6e8", "1e-3", ".inf", "-.INF", ".nan"] {
            assert_eq!(kind(float), ScalarKind::Float, "{float}");
        }
        assert_eq!(kind("0755"), ScalarKind::Integer(Some(755)));
        assert_eq!(kind("0o17"), ScalarKind::Integer(Some(15)));
        assert_eq!(kind("-0"), ScalarKind::Integer(Some(0)));
        assert_eq!(kind("0xff"), ScalarKind::Integer(Some(255)));
        assert_eq!(kind("99999999999999999999"), ScalarKind::Integer(None));
        assert_eq!(Scalar::quoted("1").kind(), ScalarKind::Text);
    }
}
