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

/// Of a pool, which may be in another one: `prod/web`.
pub const POOL: TextRule = TextRule {
    shape: TextShape {
        what: "a pool: letters, digits, `-`, `_` and `.`, up to three of them with `/` between",
        pattern: Some("^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+){0,2}$"),
    },
    accepts: is_pool,
};

/// Of a stack, or of one object of it: `web`, `web/vm/db`.
pub const SUBJECT: TextRule = TextRule {
    shape: TextShape {
        what: "a stack such as `web`, or an address such as `web/vm/db`",
        pattern: Some("^[^\\s/:]+(/[a-z]+/[^\\s/]+)?$"),
    },
    accepts: |text| {
        let plain = |part: &str| !part.is_empty() && !part.contains(char::is_whitespace);
        match text.split('/').collect::<Vec<_>>().as_slice() {
            [stack] => plain(stack) && !stack.contains(':'),
            [stack, kind, name] => {
                let kind = !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_lowercase());
                plain(stack) && !stack.contains(':') && kind && plain(name)
            }
            _ => false,
        }
    },
};

/// Of a user: `ops@pve`.
pub const USER: TextRule = TextRule {
    shape: TextShape {
        what: "a user with its realm, such as `ops@pve`",
        pattern: Some("^[^\\s:/!@]+@[A-Za-z][A-Za-z0-9._-]+$"),
    },
    accepts: is_user,
};

/// Of an API token: `ops@pve!ci`.
pub const TOKEN: TextRule = TextRule {
    shape: TextShape {
        what: "an API token, such as `ops@pve!ci`",
        pattern: Some("^[^\\s:/!@]+@[A-Za-z][A-Za-z0-9._-]+![A-Za-z][A-Za-z0-9._-]+$"),
    },
    accepts: |text| text.split_once('!').is_some_and(|(user, name)| is_user(user) && is_realm(name)),
};

/// Of a place in the access control: `/`, `/vms/100`.
pub const ACL_PATH: TextRule = TextRule {
    shape: TextShape {
        what: "a path such as `/`, `/pool/web` or `/vms/100`",
        pattern: Some("^/([A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*)?$"),
    },
    accepts: |text| text == "/" || text.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_id_part)),
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

fn is_id_part(part: &str) -> bool {
    !part.is_empty()
        && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

fn is_pool(text: &str) -> bool {
    text.split('/').count() <= 3 && text.split('/').all(is_id_part)
}

fn is_realm(text: &str) -> bool {
    text.len() > 1 && is_id_part(text) && text.starts_with(|first: char| first.is_ascii_alphabetic())
}

fn is_user(text: &str) -> bool {
    text.split_once('@').is_some_and(|(name, realm)| {
        !name.is_empty()
            && !name.contains([':', '/', '!'])
            && !name.contains(char::is_whitespace)
            && is_realm(realm)
    })
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
        assert!(is_user("ops@pve") && !is_user("ops") && !is_user("a:b@pve") && !is_user("a@b@pve"));
        assert!(
            (TOKEN.accepts)("ops@pve!ci") && !(TOKEN.accepts)("ops@pve") && !(TOKEN.accepts)("ops@pve!1")
        );
        assert!(is_pool("prod/web") && !is_pool("a//b") && !is_pool("a/b/c/d") && !is_pool(""));
        assert!((ACL_PATH.accepts)("/") && (ACL_PATH.accepts)("/vms/100") && !(ACL_PATH.accepts)("/vms/"));
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
