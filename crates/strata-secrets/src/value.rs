//! The scalar values of a SOPS file, and their bytes as the cipher and the MAC see them.

use zeroize::Zeroizing;

/// A scalar, with the types that SOPS knows. A mapping or a list is no value: it is part of the tree.
#[derive(Clone, PartialEq)]
pub(crate) enum Value {
    /// Text; bytes because a file of the binary format is one text of any bytes.
    Text(Zeroizing<Vec<u8>>),
    Int(i64),
    Float(f64),
    Bool(bool),
    /// A point in time, as RFC 3339 writes it.
    Time(String),
    /// Neither encrypted nor part of the MAC.
    Null,
}

/// How a value is marked in its encrypted form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Text,
    /// Written by old versions for binary data; read as text.
    Bytes,
    Int,
    Float,
    Bool,
    Time,
    Comment,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Text => "str",
            Kind::Bytes => "bytes",
            Kind::Int => "int",
            Kind::Float => "float",
            Kind::Bool => "bool",
            Kind::Time => "time",
            Kind::Comment => "comment",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Kind::Text, Kind::Bytes, Kind::Int, Kind::Float, Kind::Bool, Kind::Time, Kind::Comment]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

impl Value {
    pub(crate) fn text(text: impl Into<Vec<u8>>) -> Self {
        Value::Text(Zeroizing::new(text.into()))
    }

    /// The text, if the value is one and is UTF-8.
    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// `None` for null, which is never encrypted.
    pub(crate) fn kind(&self) -> Option<Kind> {
        match self {
            Value::Text(_) => Some(Kind::Text),
            Value::Int(_) => Some(Kind::Int),
            Value::Float(_) => Some(Kind::Float),
            Value::Bool(_) => Some(Kind::Bool),
            Value::Time(_) => Some(Kind::Time),
            Value::Null => None,
        }
    }

    /// An empty text is written as it is: there is nothing to encrypt.
    pub(crate) fn is_empty_text(&self) -> bool {
        matches!(self, Value::Text(bytes) if bytes.is_empty())
    }

    /// What is encrypted, and what the MAC goes over.
    pub(crate) fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        match self {
            Value::Text(bytes) => bytes.clone(),
            Value::Int(number) => Zeroizing::new(number.to_string().into_bytes()),
            Value::Float(number) => Zeroizing::new(decimal(*number).into_bytes()),
            Value::Bool(true) => Zeroizing::new(b"True".to_vec()),
            Value::Bool(false) => Zeroizing::new(b"False".to_vec()),
            Value::Time(time) => Zeroizing::new(time.clone().into_bytes()),
            Value::Null => Zeroizing::default(),
        }
    }

    /// The value that was encrypted with this kind; `None` if the bytes are not of it, or it is a comment.
    pub(crate) fn from_bytes(kind: Kind, bytes: Zeroizing<Vec<u8>>) -> Option<Self> {
        let text = || std::str::from_utf8(&bytes).ok();
        Some(match kind {
            Kind::Text | Kind::Bytes => Value::Text(bytes),
            Kind::Int => Value::Int(text()?.parse().ok()?),
            Kind::Float => Value::Float(parse_float(text()?)?),
            Kind::Bool => Value::Bool(parse_bool(text()?)?),
            Kind::Time => Value::Time(crate::time::parse_rfc3339(text()?)?),
            Kind::Comment => return None,
        })
    }

    /// The text that a person would write for this value in a file without types.
    pub(crate) fn to_plain_text(&self) -> Zeroizing<Vec<u8>> {
        match self {
            Value::Bool(value) => Zeroizing::new(value.to_string().into_bytes()),
            other => other.to_bytes(),
        }
    }
}

fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

fn parse_float(text: &str) -> Option<f64> {
    match text {
        "+Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        // Rust would also take `inf` and `nan` in any case, and those nobody writes.
        _ if text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => text.parse().ok(),
        "NaN" => Some(f64::NAN),
        _ => None,
    }
}

/// The shortest digits that give the same number, never with an exponent.
pub(crate) fn decimal(number: f64) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() }
    } else {
        number.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_go_writes_them() {
        for (number, plain, yaml) in [
            (0.25, "0.25", "0.25"),
            (1.0, "1", "1"),
            (1e21, "1000000000000000000000", "1e+21"),
            (1234567.5, "1234567.5", "1.2345675e+06"),
            (123456.5, "123456.5", "123456.5"),
            (0.0001, "0.0001", "0.0001"),
            (0.00001, "0.00001", "1e-05"),
            (-0.0, "-0", "-0"),
            (5e-324, &format!("0.{}5", "0".repeat(323)), "5e-324"),
        ] {
            assert_eq!(decimal(number), plain);
            assert_eq!(strata_yaml::go::float_text(number), yaml);
        }
        assert_eq!(decimal(f64::NEG_INFINITY), "-Inf");
    }

    #[test]
    fn every_kind_survives_its_bytes() {
        for value in [
            Value::text("ü\0\n"),
            Value::text(vec![0xff, 0]),
            Value::Int(i64::MIN),
            Value::Float(-1.5e300),
            Value::Float(f64::INFINITY),
            Value::Bool(true),
            Value::Bool(false),
            Value::Time("2026-01-02T00:00:00Z".to_owned()),
        ] {
            let kind = value.kind().expect("not null");
            assert!(Value::from_bytes(kind, value.to_bytes()) == Some(value));
        }
    }

    #[test]
    fn bytes_of_another_kind_are_refused() {
        for (kind, text) in [
            (Kind::Int, "1.5"),
            (Kind::Int, ""),
            (Kind::Float, "infinity"),
            (Kind::Bool, "yes"),
            (Kind::Time, "now"),
            (Kind::Comment, "x"),
        ] {
            assert!(Value::from_bytes(kind, Zeroizing::new(text.into())).is_none(), "{text}");
        }
    }
}
