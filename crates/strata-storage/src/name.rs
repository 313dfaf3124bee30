//! The name of a state: segments between slashes, checked once when they come in.

use std::fmt;

use percent_encoding::percent_decode_str;

const MAX_BYTES: usize = 512;
const MAX_SEGMENTS: usize = 16;

/// A name that is fit to be a path, a key or a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateName(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    #[error("the name of the state is empty")]
    Empty,
    #[error("a name has at most {MAX_BYTES} bytes and {MAX_SEGMENTS} segments")]
    TooLong,
    #[error(
        "a segment of a name is not empty, `.` or `..`, and has no slash, backslash or control character"
    )]
    Segment,
    #[error("a name does not end with `lock`, which is the address of its lock")]
    Reserved,
    #[error("the address is not percent-encoded UTF-8")]
    Encoding,
}

impl StateName {
    /// Reads a name as people write it, with nothing encoded, that can also be an address of a server.
    pub fn parse(text: &str) -> Result<Self, BadName> {
        let name = Self::of_key(text)?;
        if text.rsplit('/').next() == Some("lock") { Err(BadName::Reserved) } else { Ok(name) }
    }

    /// Reads the key of a state, where there are no addresses.
    pub fn of_key(text: &str) -> Result<Self, BadName> {
        if text.is_empty() {
            return Err(BadName::Empty);
        }
        let segments = text.split('/');
        if text.len() > MAX_BYTES || segments.clone().count() > MAX_SEGMENTS {
            return Err(BadName::TooLong);
        }
        let odd = |segment: &str| {
            matches!(segment, "" | "." | "..") || segment.chars().any(|c| c == '\\' || c.is_control())
        };
        if segments.clone().any(odd) {
            return Err(BadName::Segment);
        }
        Ok(Self(text.to_owned()))
    }

    /// Reads the part of an address that is a name. Each segment is decoded once; an encoded slash is none.
    pub fn from_address(path: &str) -> Result<Self, BadName> {
        let mut name = String::with_capacity(path.len());
        for (index, segment) in path.split('/').enumerate() {
            // A decoder leaves a lone `%` as it is; what it means is anybody's guess.
            let strict = segment
                .split('%')
                .skip(1)
                .all(|rest| rest.len() >= 2 && rest.as_bytes()[..2].iter().all(u8::is_ascii_hexdigit));
            let decoded = percent_decode_str(segment).decode_utf8().map_err(|_| BadName::Encoding)?;
            if !strict {
                return Err(BadName::Encoding);
            }
            if decoded.contains('/') {
                return Err(BadName::Segment);
            }
            if index > 0 {
                name.push('/');
            }
            name.push_str(&decoded);
        }
        Self::parse(&name)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the name is the prefix, or below it.
    pub fn is_within(&self, prefix: &str) -> bool {
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        match self.0.strip_prefix(prefix) {
            Some(rest) => prefix.is_empty() || rest.is_empty() || rest.starts_with('/'),
            None => false,
        }
    }
}

impl fmt::Display for StateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_decoded_once() {
        let name = |path: &str| StateName::from_address(path).map(|name| name.0);
        assert_eq!(name("prod/web"), Ok("prod/web".to_owned()));
        assert_eq!(name("prod/my%20web"), Ok("prod/my web".to_owned()));
        assert_eq!(name("a%2525"), Ok("a%25".to_owned()));
        assert_eq!(name("a%2Fb"), Err(BadName::Segment));
        assert_eq!(name("a%2e%2e/b"), Ok("a../b".to_owned()));
        assert_eq!(name("%2e%2e/b"), Err(BadName::Segment));
        assert_eq!(name("a/../b"), Err(BadName::Segment));
        assert_eq!(name("a//b"), Err(BadName::Segment));
        assert_eq!(name("a/"), Err(BadName::Segment));
        assert_eq!(name("a%00"), Err(BadName::Segment));
        assert_eq!(name("a%5cb"), Err(BadName::Segment));
        assert_eq!(name("a%ff"), Err(BadName::Encoding));
        assert_eq!(name("a%4"), Err(BadName::Encoding));
        assert_eq!(name("a%zz"), Err(BadName::Encoding));
        assert_eq!(name("a/lock"), Err(BadName::Reserved));
        assert_eq!(name(""), Err(BadName::Empty));
        assert_eq!(name(&"a/".repeat(20)), Err(BadName::TooLong));
        assert_eq!(name(&"a".repeat(513)), Err(BadName::TooLong));
    }

    #[test]
    fn a_prefix_ends_at_a_slash() {
        let name = StateName::parse("prod/web").unwrap();
        for prefix in ["", "prod", "prod/", "prod/web"] {
            assert!(name.is_within(prefix), "{prefix}");
        }
        for prefix in ["pro", "prod/we", "prod/web/a", "test"] {
            assert!(!name.is_within(prefix), "{prefix}");
        }
    }
}
