//! Addresses of networks and interfaces, ranges of them, and hardware addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use strata_yaml::{Context, Decode, Node, Shape, TextShape, decode_text};

use crate::value::text::text_value;

/// An address and the length of its network's prefix. The host part is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cidr {
    pub address: IpAddr,
    pub prefix: u8,
}

/// A run of addresses of one family, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IpRange {
    pub first: IpAddr,
    pub last: IpAddr,
}

/// A hardware address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac(pub [u8; 6]);

/// An address as a number, to count with.
pub fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

/// The address `steps` after this one, if the family has one.
pub fn advance(address: IpAddr, steps: u64) -> Option<IpAddr> {
    match address {
        IpAddr::V4(address) => {
            let number = u32::from(address).checked_add(u32::try_from(steps).ok()?)?;
            Some(Ipv4Addr::from(number).into())
        }
        IpAddr::V6(address) => {
            Some(Ipv6Addr::from(u128::from(address).checked_add(u128::from(steps))?).into())
        }
    }
}

impl Cidr {
    pub fn contains(&self, address: IpAddr) -> bool {
        let bits: u32 = match (self.address, address) {
            (IpAddr::V4(_), IpAddr::V4(_)) => 32,
            (IpAddr::V6(_), IpAddr::V6(_)) => 128,
            _ => return false,
        };
        let shift = bits - u32::from(self.prefix);
        let network = |address| number(address).checked_shr(shift).unwrap_or(0);
        network(self.address) == network(address)
    }

    /// The same prefix with another address in it.
    #[must_use]
    pub fn with_address(self, address: IpAddr) -> Self {
        Self { address, ..self }
    }
}

impl IpRange {
    pub fn len(&self) -> u128 {
        number(self.last) - number(self.first) + 1
    }

    /// A range holds at least its first address.
    pub fn is_empty(&self) -> bool {
        false
    }

    pub fn nth(&self, index: u64) -> Option<IpAddr> {
        advance(self.first, index).filter(|address| number(*address) <= number(self.last))
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.first.is_ipv4()
            && (number(self.first)..=number(self.last)).contains(&number(address))
    }
}

impl FromStr for Cidr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((address, prefix)) = text.split_once('/') else {
            return Err(match text.parse::<IpAddr>() {
                Ok(IpAddr::V4(_)) => {
                    format!("`{text}` has no prefix: write `{text}/24` or the prefix of its network")
                }
                Ok(IpAddr::V6(_)) => {
                    format!("`{text}` has no prefix: write `{text}/64` or the prefix of its network")
                }
                Err(_) => format!("`{text}` is not an address with a prefix"),
            });
        };
        let address: IpAddr = address.parse().map_err(|_| format!("`{address}` is not an IP address"))?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix
            .parse()
            .ok()
            .filter(|prefix| *prefix <= most)
            .ok_or_else(|| format!("`/{prefix}` is not a prefix: it takes a number from 0 to {most}"))?;
        Ok(Self { address, prefix })
    }
}

impl FromStr for IpRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let parse = |part: &str| {
            part.trim().parse::<IpAddr>().map_err(|_| format!("`{}` is not an IP address", part.trim()))
        };
        let (first, last) = (parse(first)?, parse(last)?);
        if first.is_ipv4() != last.is_ipv4() || number(first) > number(last) {
            return Err(format!("`{text}` is not a range: it begins after its end"));
        }
        Ok(Self { first, last })
    }
}

impl FromStr for Mac {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is not a MAC address");
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().filter(|part| part.len() == 2).ok_or_else(bad)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| bad())?;
        }
        if parts.next().is_some() {
            return Err(bad());
        }
        if bytes[0] & 1 == 1 {
            return Err(format!("`{text}` is a group address: the first byte must be even"));
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl fmt::Display for IpRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last { self.first.fmt(f) } else { write!(f, "{}-{}", self.first, self.last) }
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02X}:{b:02X}:{c:02X}:{d:02X}:{e:02X}:{g:02X}")
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

const IP: TextShape =
    TextShape { what: "an IP address such as `192.0.2.1`", pattern: Some("^[0-9a-fA-F:.]+$") };
const CIDR: TextShape = TextShape {
    what: "an address with its prefix such as `192.0.2.10/24`",
    pattern: Some("^[0-9a-fA-F:.]+/[0-9]{1,3}$"),
};
const RANGE: TextShape = TextShape {
    what: "an address or a range such as `192.0.2.41-192.0.2.49`",
    pattern: Some("^[0-9a-fA-F:.]+( ?- ?[0-9a-fA-F:.]+)?$"),
};
const MAC: TextShape = TextShape {
    what: "a MAC address such as `BC:24:11:00:00:01`",
    pattern: Some("^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$"),
};

/// An IP address; a type of ours because neither the trait nor the standard one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ip(pub IpAddr);

impl fmt::Display for Ip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Ip {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|_| format!("`{text}` is not an IP address"))
    }
}

text_value! {
    Ip = IP, str::parse;
    Cidr = CIDR, str::parse;
    IpRange = RANGE, str::parse;
    Mac = MAC, str::parse;
}

/// How an interface gets its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addressing {
    Dhcp,
    /// IPv6 only: from the router's announcements.
    Auto,
    Static(Cidr),
}

impl Addressing {
    pub fn address(&self) -> Option<Cidr> {
        match self {
            Self::Static(cidr) => Some(*cidr),
            Self::Dhcp | Self::Auto => None,
        }
    }
}

impl Decode for Addressing {
    fn shape() -> Shape {
        Shape::Text(TextShape {
            what: "`dhcp`, or an address with its prefix such as `192.0.2.10/24`",
            pattern: Some("^(dhcp|auto|[0-9a-fA-F:.]+/[0-9]{1,3})$"),
        })
    }

    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        let Shape::Text(shape) = Self::shape() else { return None };
        decode_text(node, shape, cx, |text| match text {
            "dhcp" => Ok(Self::Dhcp),
            "auto" => Ok(Self::Auto),
            text => text.parse().map(Self::Static),
        })
    }
}

/// Addresses to hand out in order: one range, or a list of ranges and single ones.
#[derive(Debug, Clone, PartialEq)]
pub struct AddressPool(pub Vec<IpRange>);

impl AddressPool {
    pub fn nth(&self, mut index: u64) -> Option<IpAddr> {
        for range in &self.0 {
            if u128::from(index) < range.len() {
                return range.nth(index);
            }
            index -= u64::try_from(range.len()).unwrap_or(u64::MAX);
        }
        None
    }

    /// Counted from the end.
    pub(crate) fn nth_back(&self, index: u64) -> Option<IpAddr> {
        let last = u64::try_from(self.len()).ok()?.checked_sub(1)?;
        self.nth(last.checked_sub(index)?)
    }

    pub fn len(&self) -> u128 {
        self.0.iter().map(IpRange::len).fold(0, u128::saturating_add)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|range| range.contains(address))
    }
}

impl Decode for AddressPool {
    fn shape() -> Shape {
        Shape::AnyOf(vec![IpRange::shape(), Shape::List(Box::new(IpRange::shape()))])
    }

    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        if node.as_list().is_some() || node.is_null() {
            Vec::decode(node, cx).map(Self)
        } else {
            IpRange::decode(node, cx).map(|range| Self(vec![range]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_its_addresses() {
        let network: Cidr = "192.0.2.10/24".parse().unwrap();
        assert!(network.contains("192.0.2.255".parse().unwrap()));
        assert!(!network.contains("192.0.3.0".parse().unwrap()));
        assert!(!network.contains("2001:db8::1".parse().unwrap()));
        let all: Cidr = "0.0.0.0/0".parse().unwrap();
        assert!(all.contains("203.0.113.9".parse().unwrap()));
        let all: Cidr = "::/0".parse().unwrap();
        assert!(all.contains("2001:db8::1".parse().unwrap()));
    }

    #[test]
    fn pools_count_over_their_ranges() {
        let pool = AddressPool(vec!["192.0.2.5-192.0.2.6".parse().unwrap(), "192.0.2.9".parse().unwrap()]);
        let at = |index| pool.nth(index).map(|address| address.to_string());
        assert_eq!(at(1).as_deref(), Some("192.0.2.6"));
        assert_eq!(at(2).as_deref(), Some("192.0.2.9"));
        assert_eq!(at(3), None);
        assert_eq!(pool.nth_back(0).unwrap().to_string(), "192.0.2.9");
        assert_eq!(pool.nth_back(3), None);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let mistake = |text: &str| text.parse::<Cidr>().unwrap_err();
        assert_eq!(
            mistake("192.0.2.1"),
            "`192.0.2.1` has no prefix: write `192.0.2.1/24` or the prefix of its network"
        );
        assert_eq!(mistake("192.0.2.300/24"), "`192.0.2.300` is not an IP address");
        assert_eq!(mistake("192.0.2.1/33"), "`/33` is not a prefix: it takes a number from 0 to 32");
        assert!("192.0.2.9-192.0.2.1".parse::<IpRange>().unwrap_err().contains("begins after its end"));
        assert!("01:00:00:00:00:00".parse::<Mac>().unwrap_err().contains("group address"));
        assert_eq!("bc:24:11:0a:0b:0c".parse::<Mac>().unwrap().to_string(), "BC:24:11:0A:0B:0C");
    }
}
