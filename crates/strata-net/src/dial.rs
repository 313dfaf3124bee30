//! Where connections really go: addresses of the model mapped to other ones, while TLS names and Host headers stay.

use std::collections::BTreeMap;
use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The name of the entry for every place that has none of its own.
const GATEWAY: &str = "*";
/// An answer to CONNECT is a few lines; one that is longer comes from something else.
const LONGEST_ANSWER: usize = 4096;

/// `host:port` of the model → `host:port` to dial.
///
/// The entry `*` names a gateway: what has no entry of its own and is not this machine is reached through it, by HTTP CONNECT. A network whose machines
/// come and go needs no map of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DialMap(BTreeMap<String, String>);

/// Why a map cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DialMapError {
    /// It is no JSON object of texts.
    #[error("a dial map is a JSON object of `host:port` to `host:port`: {0}")]
    Json(String),
    /// A place is not `host:port`.
    #[error("`{0}` in the dial map is not `host:port`")]
    Place(String),
}

impl DialMap {
    /// Everything is dialled where it says.
    pub fn new() -> Self {
        Self::default()
    }

    /// From the JSON object that `strata sim` prints as `dial`.
    pub fn parse(json: &str) -> Result<Self, DialMapError> {
        let map: BTreeMap<String, String> =
            serde_json::from_str(json).map_err(|error| DialMapError::Json(error.to_string()))?;
        for place in map.iter().flat_map(|(from, to)| [from, to]).filter(|place| *place != GATEWAY) {
            let port = place.rsplit_once(':').and_then(|(host, port)| (!host.is_empty()).then_some(port));
            if port.is_none_or(|port| port.parse::<u16>().is_err()) {
                return Err(DialMapError::Place(place.clone()));
            }
        }
        Ok(Self(map))
    }

    /// Dials one place at another; both are `host:port`.
    pub fn insert(&mut self, from: impl Into<String>, to: impl Into<String>) {
        self.0.insert(from.into(), to.into());
    }

    /// What has no entry of its own is reached through this gateway.
    pub fn through(&mut self, gateway: impl Into<String>) {
        self.insert(GATEWAY, gateway);
    }

    /// Both; where they differ, the other one.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Whether everything is dialled where it says.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where to dial for this place of the model, where no gateway is asked.
    pub fn place<'a>(&'a self, place: &'a str) -> &'a str {
        self.0.get(place).map_or(place, String::as_str)
    }

    /// A connection to this place of the model: directly, to where its entry says, or through the gateway.
    pub async fn connect(&self, place: &str) -> io::Result<TcpStream> {
        let gateway = self.0.get(GATEWAY).filter(|_| !self.0.contains_key(place) && !is_loopback(place));
        let stream = match gateway {
            Some(gateway) => through(TcpStream::connect(gateway).await?, place).await?,
            None => TcpStream::connect(self.place(place)).await?,
        };
        // Requests are small and each waits for its answer.
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Whether somebody accepts a connection there. Nobody does where none comes about in this time.
    pub async fn answers(&self, place: &str, within: std::time::Duration) -> bool {
        matches!(tokio::time::timeout(within, self.connect(place)).await, Ok(Ok(_)))
    }
}

/// This machine itself is in no network that a gateway leads to.
fn is_loopback(place: &str) -> bool {
    let host = place.rsplit_once(':').map_or(place, |(host, _)| host).trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Asks a gateway for a tunnel to the place.
async fn through(mut gateway: TcpStream, place: &str) -> io::Result<TcpStream> {
    let request = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n");
    gateway.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    // Byte by byte: what follows the empty line belongs to the tunnel.
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() == LONGEST_ANSWER {
            return Err(io::Error::other("the gateway's answer to CONNECT has no end"));
        }
        answer.push(gateway.read_u8().await?);
    }
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.lines().next().unwrap_or_default();
    match status.split(' ').nth(1) {
        Some("200") => Ok(gateway),
        _ => Err(io::Error::new(io::ErrorKind::HostUnreachable, format!("the gateway answers `{status}`"))),
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

    #[tokio::test]
    async fn goes_through_the_gateway_to_what_has_no_entry() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let gateway = listener.local_addr().unwrap().to_string();
        let served = tokio::spawn(async move {
            for answer in ["HTTP/1.1 200 OK\r\n\r\nhello", "HTTP/1.1 502 nobody there\r\n\r\n"] {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = [0; 54];
                stream.read_exact(&mut request).await.unwrap();
                assert!(request.starts_with(b"CONNECT 192.0.2.41:50000 HTTP/1.1\r\n"));
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        let map = DialMap::parse(&format!(r#"{{"*": "{gateway}"}}"#)).unwrap();
        let mut tunnel = map.connect("192.0.2.41:50000").await.unwrap();
        let mut first = [0; 5];
        tunnel.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"hello");
        let refused = map.connect("192.0.2.41:50000").await.unwrap_err();
        assert_eq!(refused.to_string(), "the gateway answers `HTTP/1.1 502 nobody there`");
        served.await.unwrap();
    }

    #[test]
    fn this_machine_is_dialled_directly() {
        for place in ["127.0.0.1:1", "localhost:1", "[::1]:1"] {
            assert!(is_loopback(place), "{place}");
        }
        assert!(!is_loopback("192.0.2.1:1") && !is_loopback("localhost.example:1"));
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
