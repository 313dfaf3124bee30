//! Where connections really go: addresses of the model mapped to other ones, while TLS names and Host headers stay.

use std::collections::BTreeMap;

/// `host:port` of the model → `host:port` to dial.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DialMap(BTreeMap<String, String>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DialMapError {
    #[error("a dial map is a JSON object of `host:port` to `host:port`: {0}")]
    Json(String),
    #[error("`{0}` in the dial map is not `host:port`")]
    Place(String),
}

impl DialMap {
    pub fn new() -> Self {
        Self::default()
    }

    /// From the JSON object that `strata sim` prints as `dial`.
    pub fn parse(json: &str) -> Result<Self, DialMapError> {
        let map: BTreeMap<String, String> =
            serde_json::from_str(json).map_err(|error| DialMapError::Json(error.to_string()))?;
        for place in map.iter().flat_map(|(from, to)| [from, to]) {
            let port = place.rsplit_once(':').and_then(|(host, port)| (!host.is_empty()).then_some(port));
            if port.is_none_or(|port| port.parse::<u16>().is_err()) {
                return Err(DialMapError::Place(place.clone()));
            }
        }
        Ok(Self(map))
    }

    pub fn insert(&mut self, from: impl Into<String>, to: impl Into<String>) {
        self.0.insert(from.into(), to.into());
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where to dial for this place of the model.
    pub fn place<'a>(&'a self, place: &'a str) -> &'a str {
        self.0.get(place).map_or(place, String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_what_it_knows_and_leaves_the_rest() {
        let map = DialMap::parse(r#"{"192.0.2.10:8006": "127.0.0.1:18006"}"#).unwrap();
        assert_eq!(map.place("192.0.2.10:8006"), "127.0.0.1:18006");
        assert_eq!(map.place("192.0.2.11:8006"), "192.0.2.11:8006");
    }

    #[test]
    fn says_what_is_wrong_with_a_map() {
        assert!(matches!(DialMap::parse("[]"), Err(DialMapError::Json(_))));
        assert_eq!(
            DialMap::parse(r#"{"a:1": "b"}"#).unwrap_err().to_string(),
            "`b` in the dial map is not `host:port`"
        );
        assert!(DialMap::parse(r#"{":1": "b:1"}"#).is_err());
    }
}
