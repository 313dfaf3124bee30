//! Values that the API gives now as text and now as number: always text here.

use std::fmt;

use serde::{Deserialize, Deserializer, de};

/// A text, a number or a boolean of an answer, as the text that would have been sent. The raw settings of a container come as a list of
/// pairs: they are the lines of its file here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scalar(pub(crate) String);

impl Scalar {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a number or a boolean")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar(text.to_owned()))
            }
            fn visit_string<E: de::Error>(self, text: String) -> Result<Scalar, E> {
                Ok(Scalar(text))
            }
            fn visit_i64<E: de::Error>(self, int: i64) -> Result<Scalar, E> {
                Ok(Scalar(int.to_string()))
            }
            fn visit_u64<E: de::Error>(self, int: u64) -> Result<Scalar, E> {
                Ok(Scalar(int.to_string()))
            }
            fn visit_f64<E: de::Error>(self, float: f64) -> Result<Scalar, E> {
                Ok(Scalar(float.to_string()))
            }
            fn visit_bool<E: de::Error>(self, bool: bool) -> Result<Scalar, E> {
                Ok(Scalar(if bool { "1" } else { "0" }.to_owned()))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut pairs: A) -> Result<Scalar, A::Error> {
                let mut lines = Vec::new();
                while let Some((key, value)) = pairs.next_element::<(String, Scalar)>()? {
                    lines.push(format!("{key}: {}", value.0));
                }
                Ok(Scalar(lines.join("\n")))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// A boolean that arrives as `1`, `"1"` or `true`.
pub(crate) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let scalar = Option::<Scalar>::deserialize(deserializer)?;
    Ok(scalar.is_some_and(|scalar| !matches!(scalar.as_str(), "" | "0" | "false")))
}

/// A whole number that may arrive as text; anything else is absent.
pub(crate) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    let scalar = Option::<Scalar>::deserialize(deserializer)?;
    Ok(scalar.and_then(|scalar| scalar.as_str().parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Row {
        value: Scalar,
        #[serde(default, deserialize_with = "flag")]
        on: bool,
        #[serde(default, deserialize_with = "whole")]
        size: Option<i64>,
    }

    #[test]
    fn takes_every_spelling() {
        let row: Row = serde_json::from_str(r#"{"value": 1.5, "on": "1", "size": "42"}"#).unwrap();
        assert_eq!((row.value.as_str(), row.on, row.size), ("1.5", true, Some(42)));
        let row: Row = serde_json::from_str(r#"{"value": "x", "on": 0}"#).unwrap();
        assert_eq!((row.value.as_str(), row.on, row.size), ("x", false, None));
        let row: Row = serde_json::from_str(r#"{"value": true, "on": null, "size": null}"#).unwrap();
        assert_eq!((row.value.as_str(), row.on, row.size), ("1", false, None));
    }
}
