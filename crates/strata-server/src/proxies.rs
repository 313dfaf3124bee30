//! Who really sent a request that came through a proxy. What a request says of that counts only where a proxy said it that is trusted.

use std::net::{IpAddr, Ipv6Addr};

use http::{HeaderMap, HeaderName};

/// A network of addresses: `10.0.0.0/8`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither an address nor a network like `10.0.0.0/8`")]
pub struct BadNetwork(String);

impl std::str::FromStr for Network {
    type Err = BadNetwork;

    fn from_str(text: &str) -> Result<Self, BadNetwork> {
        let bad = || BadNetwork(text.to_owned());
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse().map_err(|_| bad())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        if bits > most { Err(bad()) } else { Ok(Self { address, bits }) }
    }
}

impl Network {
    fn contains(&self, address: IpAddr) -> bool {
        let (own, other, width) = match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => (own.to_bits().into(), other.to_bits().into(), 32),
            (IpAddr::V6(own), IpAddr::V6(other)) => (own.to_bits(), other.to_bits(), 128),
            _ => return false,
        };
        let differs: u128 = own ^ other;
        // A shift by the whole width is none.
        self.bits == 0 || differs.checked_shr(width - u32::from(self.bits)).unwrap_or(0) == 0
    }
}

/// The header in which proxies say whom a request is from. Only one is read: a proxy that writes one passes the other on as a client
/// made it up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ForwardedHeader {
    #[default]
    XForwardedFor,
    Forwarded,
}

/// The proxies that are trusted.
#[derive(Debug, Clone, Default)]
pub struct Proxies {
    pub trusted: Vec<Network>,
    pub header: ForwardedHeader,
}

impl Proxies {
    fn trusts(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(address))
    }

    /// Each proxy adds at the end whom it got the request from: from there back, the first that is no trusted proxy is the sender. What
    /// stands before that is what the sender says of itself.
    pub(crate) fn sender(&self, headers: &HeaderMap, peer: IpAddr) -> IpAddr {
        let mut sender = peer.to_canonical();
        if !self.trusts(sender) {
            return sender;
        }
        let name = match self.header {
            ForwardedHeader::XForwardedFor => HeaderName::from_static("x-forwarded-for"),
            ForwardedHeader::Forwarded => http::header::FORWARDED,
        };
        let lines: Vec<&str> = headers.get_all(name).iter().map(|line| line.to_str().unwrap_or("")).collect();
        for told in lines.iter().rev().flat_map(|line| line.rsplit(',')) {
            let told = match self.header {
                ForwardedHeader::XForwardedFor => Some(told.trim()),
                ForwardedHeader::Forwarded => forwarded_for(told),
            };
            // An `unknown` or a name made up to hide an address: the proxy that wrote it is as far as is known.
            let Some(address) = told.and_then(read_address) else { return sender };
            sender = address;
            if !self.trusts(sender) {
                return sender;
            }
        }
        sender
    }
}

/// The value of `for=` of one element of `Forwarded`.
fn forwarded_for(element: &str) -> Option<&str> {
    element.split(';').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then(|| value.trim().trim_matches('"'))
    })
}

/// `192.0.2.1`, `192.0.2.1:1234`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:1234`.
fn read_address(text: &str) -> Option<IpAddr> {
    let address = if let Some(rest) = text.strip_prefix('[') {
        rest.split_once(']')?.0.parse().ok()?
    } else if let Ok(address) = text.parse() {
        address
    } else {
        text.parse::<std::net::SocketAddrV4>().ok()?.ip().to_owned().into()
    };
    Some(IpAddr::to_canonical(&address))
}

/// What counts as one sender: with version 6 everybody has a whole network of addresses.
pub(crate) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(proxies: &Proxies, peer: &str, headers: &[(&str, &str)]) -> String {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        proxies.sender(&map, peer.parse().unwrap()).to_string()
    }

    fn proxies(trusted: &[&str], header: ForwardedHeader) -> Proxies {
        Proxies { trusted: trusted.iter().map(|network| network.parse().unwrap()).collect(), header }
    }

    #[test]
    fn c4_only_a_trusted_proxy_is_believed() {
        let none = Proxies::default();
        assert_eq!(sender(&none, "192.0.2.9", &[("x-forwarded-for", "198.51.100.1")]), "192.0.2.9");
        let some = proxies(&["10.0.0.0/8", "2001:db8::/32"], ForwardedHeader::XForwardedFor);
        assert_eq!(sender(&some, "192.0.2.9", &[("x-forwarded-for", "198.51.100.1")]), "192.0.2.9");
        assert_eq!(sender(&some, "10.1.2.3", &[("x-forwarded-for", "198.51.100.1")]), "198.51.100.1");
        assert_eq!(sender(&some, "::ffff:10.1.2.3", &[("x-forwarded-for", "198.51.100.1")]), "198.51.100.1");
        assert_eq!(sender(&some, "10.1.2.3", &[]), "10.1.2.3");
    }

    #[test]
    fn c4_what_a_client_says_of_itself_does_not_count() {
        let some = proxies(&["10.0.0.0/8"], ForwardedHeader::XForwardedFor);
        let said = [("x-forwarded-for", "203.0.113.7, 198.51.100.1, 10.0.0.4")];
        assert_eq!(sender(&some, "10.0.0.5", &said), "198.51.100.1");
        // In a header of its own, before the one of the proxy.
        let said = [("x-forwarded-for", "203.0.113.7"), ("x-forwarded-for", "198.51.100.1")];
        assert_eq!(sender(&some, "10.0.0.5", &said), "198.51.100.1");
        assert_eq!(sender(&some, "10.0.0.5", &[("forwarded", "for=203.0.113.7")]), "10.0.0.5");
        assert_eq!(sender(&some, "10.0.0.5", &[("x-forwarded-for", "203.0.113.7, nonsense")]), "10.0.0.5");
        assert_eq!(sender(&some, "10.0.0.5", &[("x-forwarded-for", "10.9.9.9")]), "10.9.9.9");
    }

    #[test]
    fn forwarded_as_its_standard_has_it() {
        let some = proxies(&["192.0.2.0/25"], ForwardedHeader::Forwarded);
        for (told, expected) in [
            ("for=198.51.100.1", "198.51.100.1"),
            ("For=\"[2001:db8::1]:4711\"", "2001:db8::1"),
            ("for=203.0.113.7, by=192.0.2.1;for=198.51.100.1:80;proto=https", "198.51.100.1"),
            ("for=unknown", "192.0.2.1"),
            ("for=_hidden", "192.0.2.1"),
            ("by=192.0.2.1", "192.0.2.1"),
        ] {
            assert_eq!(sender(&some, "192.0.2.1", &[("forwarded", told)]), expected, "{told}");
        }
        assert_eq!(sender(&some, "192.0.2.200", &[("forwarded", "for=198.51.100.1")]), "192.0.2.200");
    }

    #[test]
    fn networks_are_read() {
        for bad in ["", "10.0.0.0/33", "::/129", "example", "10.0.0.0/x", "10.0.0/8"] {
            assert!(bad.parse::<Network>().is_err(), "{bad}");
        }
        let all: Network = "0.0.0.0/0".parse().unwrap();
        assert!(all.contains(IpAddr::from([203, 0, 113, 1])));
        let one: Network = "::1".parse().unwrap();
        assert!(one.contains("::1".parse().unwrap()) && !one.contains("::2".parse().unwrap()));
    }
}
