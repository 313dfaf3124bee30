//! The spelling of names: stacks, guests, tags, storages, nodes.

use strata_yaml::{TextRule, TextShape};

/// Of a stack, an environment, a target: it becomes part of paths and addresses.
pub const NAME: TextRule = TextRule {
    shape: TextShape {
        what: "a name of letters, digits, `-`, `_` and `.` that begins with a letter or digit",
        pattern: Some("^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"),
    },
    accepts: is_name,
};

/// Of a guest: Proxmox takes a host name, and so do we for the key that it comes from.
pub const HOST: TextRule = TextRule {
    shape: TextShape {
        what: "a host name: letters, digits and `-`, not at either end",
        pattern: Some(
            "^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$",
        ),
    },
    accepts: is_host,
};

/// Of a storage, a pool, a bridge, a Proxmox node.
pub const ID: TextRule = TextRule {
    shape: TextShape {
        what: "an id of letters, digits, `-`, `_` and `.` that begins with a letter or digit",
        pattern: Some("^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"),
    },
    accepts: is_name,
};

/// Of a tag.
pub const TAG: TextRule = TextRule {
    shape: TextShape {
        what: "a tag: lower-case letters, digits, `_`, `-`, `+` and `.`",
        pattern: Some("^[a-z0-9_][a-z0-9_+.-]*$"),
    },
    accepts: is_tag,
};

/// Of a version, with or without its `v`.
pub const VERSION: TextRule = TextRule {
    shape: TextShape {
        what: "a version such as `v1.13.9`",
        pattern: Some("^v?[0-9]+\\.[0-9]+\\.[0-9]+([-+][0-9A-Za-z.-]+)?$"),
    },
    accepts: is_version,
};

/// Of a web address.
pub const URL: TextRule = TextRule {
    shape: TextShape { what: "an http or https URL", pattern: Some("^https?://[^/\\s]+(/\\S*)?$") },
    accepts: is_url,
};

pub fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphanumeric())
        && text.len() <= 63
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

pub fn is_host(text: &str) -> bool {
    let label = |part: &str| {
        (1..=63).contains(&part.len())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(label)
}

fn is_tag(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    text.bytes().next().is_some_and(plain)
        && text.bytes().all(|byte| plain(byte) || matches!(byte, b'-' | b'+' | b'.'))
}

fn is_version(text: &str) -> bool {
    let text = text.strip_prefix('v').unwrap_or(text);
    let end = text.find(['-', '+']).unwrap_or(text.len());
    let (numbers, rest) = text.split_at(end);
    let parts: Vec<&str> = numbers.split('.').collect();
    parts.len() == 3
        && parts.iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
        && rest.len() != 1
        && rest.bytes().skip(1).all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
}

fn is_url(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        let host = rest.split('/').next().unwrap_or_default();
        !host.is_empty() && !rest.chars().any(char::is_whitespace)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        assert!(is_name("web.prod_1") && !is_name("-web") && !is_name("") && !is_name("a/b"));
        assert!(is_host("web-1.example") && !is_host("web_1") && !is_host("-a") && !is_host("a..b"));
        assert!(is_tag("k8s-node") && !is_tag("Web") && !is_tag("-a"));
        assert!(
            is_version("v1.13.9")
                && is_version("1.35.0-rc.1")
                && !is_version("1.35")
                && !is_version("1.2.3-")
        );
        assert!(
            is_url("https://a.example/x.iso")
                && !is_url("https://")
                && !is_url("ftp://a")
                && !is_url("https://a b")
        );
    }
}
