//! The types of single values: what text each takes, and the form it is kept in.

mod bytes;
mod duration;

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::tree::{Value, tree};
use crate::yaml::{Node, Plain, Scalar};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Leaf {
    Text,
    /// Text that nobody should read.
    Secret,
    Bool,
    Int {
        min: i128,
        max: i128,
    },
    Duration,
    Url,
    Ip,
    Cidr,
    IpPort,
    Mac,
    Base64,
    /// A certificate and its key in base64: `{crt, key}`.
    CertKey,
    /// A certificate in base64: `{crt}`.
    Cert,
    /// A key in base64: `{key}`.
    Key,
    ByteSize,
    /// Bytes or a percentage.
    Size,
    /// The size of a partition, in bytes, written as people do.
    DiskSize,
    /// A size with a comparison before it.
    SizeMatch,
    /// An expression, kept as it was written.
    Cel,
    /// File permissions.
    Mode,
    /// A port or a range of them.
    PortRange,
    /// A routing table: a name or a number.
    Table,
    /// One of these; the first is what stands for none, and cannot be chosen if it is empty or has brackets.
    Choice(Vec<&'static str>),
}

impl Leaf {
    pub(super) fn from_word(word: &'static str) -> Option<Self> {
        let int = |min: i128, max: u64| Some(Self::Int { min, max: i128::from(max) });
        Some(match word {
            "text" => Self::Text,
            "secret" => Self::Secret,
            "bool" => Self::Bool,
            "int" => return int(i128::from(i64::MIN), i64::MAX as u64),
            "int32" => return int(i128::from(i32::MIN), i32::MAX as u64),
            "uint" | "uint64" => return int(0, u64::MAX),
            "uint32" => return int(0, u64::from(u32::MAX)),
            "uint16" => return int(0, u64::from(u16::MAX)),
            "uint8" => return int(0, u64::from(u8::MAX)),
            "duration" => Self::Duration,
            "url" => Self::Url,
            "ip" => Self::Ip,
            "cidr" => Self::Cidr,
            "ipport" => Self::IpPort,
            "mac" => Self::Mac,
            "base64" => Self::Base64,
            "certkey" => Self::CertKey,
            "cert" => Self::Cert,
            "key" => Self::Key,
            "bytesize" => Self::ByteSize,
            "size" => Self::Size,
            "disksize" => Self::DiskSize,
            "sizematch" => Self::SizeMatch,
            "cel" => Self::Cel,
            "mode" => Self::Mode,
            "portrange" => Self::PortRange,
            "table" => Self::Table,
            word => Self::Choice(word.strip_prefix("choice(")?.strip_suffix(')')?.split('|').collect()),
        })
    }

    /// What the type is called in `expected …`.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Text | Self::Secret | Self::Table => "a text".to_owned(),
            Self::Bool => "`true` or `false`".to_owned(),
            Self::Int { min, max } if *max >= i128::from(i64::MAX) && *min < 0 => "a whole number".to_owned(),
            Self::Int { min, max } => format!("a whole number from {min} to {max}"),
            Self::Duration => "a duration such as `1m30s`".to_owned(),
            Self::Url => "a URL".to_owned(),
            Self::Ip => "an IP address".to_owned(),
            Self::Cidr => "a network such as `192.0.2.0/24`".to_owned(),
            Self::IpPort => "an address and a port".to_owned(),
            Self::Mac => "a hardware address".to_owned(),
            Self::Base64 => "base64".to_owned(),
            Self::CertKey => "`crt` and `key` in base64".to_owned(),
            Self::Cert => "`crt` in base64".to_owned(),
            Self::Key => "`key` in base64".to_owned(),
            Self::ByteSize | Self::DiskSize => "a size such as `10GiB`".to_owned(),
            Self::Size => "a size such as `10GiB` or `50%`".to_owned(),
            Self::SizeMatch => "a size with a comparison, such as `>= 1TB`".to_owned(),
            Self::Cel => "an expression".to_owned(),
            Self::Mode => "file permissions such as `0o644`".to_owned(),
            Self::PortRange => "a port or a range such as `8000-8099`".to_owned(),
            Self::Choice(names) => {
                let names: Vec<String> =
                    names.iter().filter(|name| is_name(name)).map(|name| format!("`{name}`")).collect();
                format!("one of {}", names.join(", "))
            }
        }
    }

    /// The value in the form that it is kept and written in; `None` if the node is not of this type.
    pub(crate) fn read(&self, node: &Node) -> Option<Value> {
        match self {
            Self::CertKey => base64_fields(node, &["crt", "key"]),
            Self::Cert => base64_fields(node, &["crt"]),
            Self::Key => base64_fields(node, &["key"]),
            _ => self.read_scalar(node.as_scalar()?),
        }
    }

    fn read_scalar(&self, scalar: &Scalar) -> Option<Value> {
        let text = scalar.text.as_str();
        Some(match self {
            Self::Text | Self::Secret | Self::Cel | Self::Table => Value::text(text),
            Self::Bool => Value::Bool(boolean(scalar)?),
            Self::Int { min, max } => {
                let number = integer(scalar)?;
                if !(min..=max).contains(&&number) {
                    return None;
                }
                Value::Int(number)
            }
            Self::Mode => Value::Octal(u64::try_from(integer(scalar)?).ok()?),
            Self::Duration => Value::text(duration::canonical(text)?),
            Self::Url => Value::text(canonical_url(text)?),
            Self::Ip => Value::text(canonical_ip(text)?),
            Self::Cidr => Value::text(canonical_cidr(text)?),
            Self::IpPort if text.is_empty() => Value::text(""),
            Self::IpPort => Value::text(SocketAddr::from_str(text).ok()?.to_string()),
            Self::Mac => Value::text(canonical_mac(text)?),
            Self::Base64 => Value::text(STANDARD.encode(STANDARD.decode(text).ok()?)),
            Self::ByteSize if text.is_empty() => Value::text(""),
            Self::ByteSize => {
                bytes::parse(text.strip_prefix('-').unwrap_or(text))?;
                Value::text(text)
            }
            Self::Size => {
                let unsigned = text.strip_prefix('-').unwrap_or(text);
                match unsigned.strip_suffix('%') {
                    Some(number) => {
                        number.parse::<f64>().ok().filter(|number| (0.0..=100.0).contains(number))?;
                    }
                    None if text.is_empty() => {}
                    None => {
                        bytes::parse(unsigned)?;
                    }
                }
                Value::text(text)
            }
            Self::DiskSize => bytes::human(bytes::parse(text)?),
            Self::SizeMatch => {
                let text = text.trim();
                bytes::parse(text.trim_start_matches(['<', '>', '=']).trim())?;
                Value::text(text)
            }
            Self::PortRange => port_range(scalar)?,
            Self::Choice(names) => {
                let found = names.iter().find(|name| is_name(name) && name.eq_ignore_ascii_case(text));
                let name = found.or_else(|| names.first().filter(|_| text.is_empty()))?;
                Value::text(*name)
            }
            Self::CertKey | Self::Cert | Self::Key => return None,
        })
    }

    /// Whether a value stands for none where absent and zero are the same.
    pub(crate) fn is_zero(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Choice(names), Value::Text(text)) => {
                names.first().is_some_and(|zero| *zero == text.as_str())
            }
            (Self::Duration, Value::Text(text)) => text.as_str() == "0s",
            (Self::Table, Value::Text(text)) => text.is_empty() || text.as_str() == "unspec",
            (_, Value::Text(text)) => text.is_empty(),
            (_, Value::Bool(value)) => !value,
            (_, Value::Int(number)) => *number == 0,
            (_, Value::Octal(number)) => *number == 0,
            _ => false,
        }
    }

    /// What is written for an absent value that is always written.
    pub(crate) fn zero(&self) -> Value {
        match self {
            Self::Bool => Value::Bool(false),
            Self::Int { .. } | Self::DiskSize | Self::PortRange => Value::Int(0),
            Self::Mode => Value::Octal(0),
            Self::Duration => Value::text("0s"),
            Self::Table => Value::text("unspec"),
            Self::Choice(names) => Value::text(names.first().copied().unwrap_or_default()),
            Self::CertKey => tree! { "crt" => "", "key" => "" },
            Self::Cert => tree! { "crt" => "" },
            Self::Key => tree! { "key" => "" },
            _ => Value::text(""),
        }
    }

    /// Whether an absent value in a patch still replaces what is there. Talos merges these types without looking.
    pub(crate) fn absent_replaces(&self) -> bool {
        matches!(self, Self::Bool | Self::ByteSize | Self::Cel)
    }

    /// The value after a patch, where both have one.
    pub(crate) fn merged(&self, left: &Value, right: Value) -> Value {
        match (self, left.as_text(), right.as_text()) {
            (Self::Url, Some(left), Some(right)) => merged_url(left, right).into(),
            // Talos keeps both of them then, and goes by the one in bytes.
            (Self::Size, Some(left), Some(right)) if !left.ends_with('%') && right.ends_with('%') => {
                left.into()
            }
            _ => right,
        }
    }
}

fn is_name(choice: &str) -> bool {
    !choice.is_empty() && !choice.contains('(')
}

fn boolean(scalar: &Scalar) -> Option<bool> {
    match scalar.resolve() {
        Plain::Bool(value) => Some(value),
        _ => match scalar.text.as_str() {
            "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
            "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
            _ => None,
        },
    }
}

fn integer(scalar: &Scalar) -> Option<i128> {
    match scalar.resolve() {
        Plain::Int(number) => Some(number),
        Plain::Float(number) if number.fract() == 0.0 && number.abs() < 9e15 => Some(number as i128),
        _ => None,
    }
}

fn base64_fields(node: &Node, fields: &[&str]) -> Option<Value> {
    if node.as_map()?.iter().any(|(key, _)| !fields.contains(&key.as_str())) {
        return None;
    }
    let mut entries = Vec::new();
    for field in fields {
        let text = match node.get(field) {
            Some(node) if !node.is_null() => node.as_scalar()?.text.as_str(),
            _ => "",
        };
        let decoded = zeroize::Zeroizing::new(STANDARD.decode(text.as_bytes()).ok()?);
        entries.push((*field, Value::text(STANDARD.encode(decoded.as_slice()))));
    }
    Some(Value::map(entries))
}

fn canonical_ip(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some(String::new());
    }
    let (address, zone) = match text.split_once('%') {
        Some((address, zone)) if !zone.is_empty() => (address, Some(zone)),
        Some(_) => return None,
        None => (text, None),
    };
    let address = IpAddr::from_str(address).ok()?;
    Some(zone.map_or_else(|| address.to_string(), |zone| format!("{address}%{zone}")))
}

fn canonical_cidr(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some(String::new());
    }
    let (address, bits) = text.split_once('/')?;
    let address = IpAddr::from_str(address).ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let canonical = bits.bytes().all(|byte| byte.is_ascii_digit()) && (bits == "0" || !bits.starts_with('0'));
    let bits: u8 = bits.parse().ok().filter(|bits| canonical && *bits <= most)?;
    Some(format!("{address}/{bits}"))
}

fn canonical_mac(text: &str) -> Option<String> {
    let digits: String = text.chars().filter(|c| *c != ':').collect();
    let bytes = hex::decode(digits).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":"))
}

/// The scheme in small letters; the rest as it was written.
fn canonical_url(text: &str) -> Option<String> {
    if text.chars().any(|c| c.is_control()) {
        return None;
    }
    Some(match text.split_once("://") {
        Some((scheme, rest)) => format!("{}://{rest}", scheme.to_ascii_lowercase()),
        None => text.to_owned(),
    })
}

/// A URL is merged part by part: what the patch's URL lacks is kept.
fn merged_url(left: &str, right: &str) -> String {
    let left = UrlParts::of(left);
    let right = UrlParts::of(right);
    let pick = |right, left| if str::is_empty(right) { left } else { right };
    let scheme = pick(right.scheme, left.scheme);
    let mut url = if scheme.is_empty() { String::new() } else { format!("{scheme}://") };
    url.push_str(pick(right.host, left.host));
    url.push_str(pick(right.path, left.path));
    for (mark, part) in [('?', pick(right.query, left.query)), ('#', pick(right.fragment, left.fragment))] {
        if !part.is_empty() {
            url.push(mark);
            url.push_str(part);
        }
    }
    url
}

struct UrlParts<'u> {
    scheme: &'u str,
    host: &'u str,
    path: &'u str,
    query: &'u str,
    fragment: &'u str,
}

impl<'u> UrlParts<'u> {
    fn of(url: &'u str) -> Self {
        let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (scheme, rest) = rest.split_once("://").unwrap_or(("", rest));
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        Self { scheme, host, path, query, fragment }
    }
}

fn port_range(scalar: &Scalar) -> Option<Value> {
    if let Plain::Int(port) = scalar.resolve() {
        return u16::try_from(port).ok().map(Value::from);
    }
    let (low, high) = scalar.text.split_once('-')?;
    let (low, high): (u16, u16) = (low.parse().ok()?, high.parse().ok()?);
    Some(if low == high { Value::from(low) } else { Value::text(format!("{low}-{high}")) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::read;

    fn read_as(word: &'static str, text: &str) -> Option<String> {
        let node = read(&format!("- {text}\n")).unwrap().remove(0).as_list().unwrap()[0].clone();
        let value = Leaf::from_word(word).unwrap().read(&node)?;
        Some(crate::yaml::write(&value).trim_end().to_owned())
    }

    #[test]
    fn values_are_kept_in_the_form_that_talos_writes() {
        for (word, text, kept) in [
            ("text", "2", "\"2\""),
            ("text", "1.10", "\"1.10\""),
            ("bool", "yes", "true"),
            ("uint16", "0x10", "16"),
            ("int", "1.0", "1"),
            ("duration", "168h", "168h0m0s"),
            ("ip", "2001:DB8:0:0::1", "2001:db8::1"),
            ("ip", "fe80::1%eth0", "fe80::1%eth0"),
            ("cidr", "192.0.2.7/24", "192.0.2.7/24"),
            ("mac", "BC:24:11:00:00:0A", "bc:24:11:00:00:0a"),
            ("mode", "0644", "0o644"),
            ("portrange", "80", "80"),
            ("portrange", "80-80", "80"),
            ("portrange", "80-90", "80-90"),
            ("choice(Do53|DoT)", "dot", "DoT"),
            ("choice(off|stable)", "off", "'off'"),
            ("size", "50%", "50%"),
            ("bytesize", "10GiB", "10GiB"),
            ("disksize", "10GB", "10 GB"),
            ("disksize", "1GiB", "1073741824"),
            ("sizematch", "'>= 1TB '", "'>= 1TB'"),
            ("url", "HTTPS://a.example/x", "https://a.example/x"),
            ("table", "123", "\"123\""),
            ("certkey", "{crt: YQ==}", "crt: YQ==\nkey: \"\""),
        ] {
            assert_eq!(read_as(word, text).as_deref(), Some(kept), "{word} {text}");
        }
    }

    #[test]
    fn what_is_not_of_the_type_is_refused() {
        for (word, text) in [
            ("text", "[a]"),
            ("bool", "maybe"),
            ("bool", "1"),
            ("uint16", "65536"),
            ("int", "a"),
            ("int", "1.5"),
            ("duration", "5"),
            ("duration", "5 minutes"),
            ("ip", "192.0.2.256"),
            ("cidr", "192.0.2.0"),
            ("cidr", "192.0.2.0/33"),
            ("ipport", "192.0.2.1"),
            ("mac", "xx"),
            ("choice(a|b)", "c"),
            ("size", "101%"),
            ("bytesize", "ten"),
            ("portrange", "70000"),
            ("certkey", "{crt: '!'}"),
            ("certkey", "{crt: YQ==, more: x}"),
        ] {
            assert_eq!(read_as(word, text), None, "{word} {text}");
        }
    }

    #[test]
    fn urls_are_merged_part_by_part() {
        assert_eq!(merged_url("https://a.example:6443/x?q", "https://b.example"), "https://b.example/x?q");
        assert_eq!(merged_url("http://a", "https://b:1/y"), "https://b:1/y");
    }
}
