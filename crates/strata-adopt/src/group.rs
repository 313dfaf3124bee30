//! What the guests of a whole datacenter are called: a stack for each pool, tag or node, and a key for each guest.

use strata_source::value::name::is_host;

/// What the guests of one stack have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    /// Their pool.
    Pool,
    /// The first of its tags, in the order of the alphabet.
    Tag,
    /// The host that they are on.
    Node,
}

/// The stack of guests that are in no pool, or have no tag.
pub const REST: &str = "other";

/// The longest name that a stack can have.
const LONGEST: usize = 63;

impl GroupBy {
    /// The name of the stack that a guest goes to.
    pub fn stack(self, pool: Option<&str>, tags: &[String], node: &str) -> String {
        let first = || tags.iter().map(String::as_str).min();
        let group = match self {
            Self::Pool => pool,
            Self::Tag => first(),
            Self::Node => Some(node),
        };
        group.and_then(stack_name).unwrap_or_else(|| REST.to_owned())
    }
}

/// `prod/web` becomes `prod-web`. None of what has no letter and no digit.
fn stack_name(group: &str) -> Option<String> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let name: String = group.chars().map(|letter| if fits(letter) { letter } else { '-' }).collect();
    let name = name.trim_start_matches(['.', '_', '-']);
    let name = &name[..name.len().min(LONGEST)];
    (!name.is_empty()).then(|| name.to_owned())
}

/// The key of a guest: its name, or its VMID where it has none that a key can be.
pub fn guest_key(name: Option<&str>, vmid: u32, is_taken: impl Fn(&str) -> bool) -> String {
    let plain = name.filter(|name| is_host(name));
    let key = plain.map_or_else(|| format!("guest-{vmid}"), str::to_owned);
    match is_taken(&key) {
        true => format!("{key}-{vmid}"),
        false => key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_goes_to_the_stack_of_its_pool_tag_or_node() {
        let tags = ["web".to_owned(), "prod".to_owned()];
        assert_eq!(GroupBy::Pool.stack(Some("prod/web"), &tags, "pve1"), "prod-web");
        assert_eq!(GroupBy::Tag.stack(Some("prod/web"), &tags, "pve1"), "prod");
        assert_eq!(GroupBy::Node.stack(None, &[], "pve1"), "pve1");
        assert_eq!(GroupBy::Pool.stack(None, &tags, "pve1"), REST);
        assert_eq!(GroupBy::Tag.stack(Some("a"), &["_a+b".to_owned()], "pve1"), "a-b");
        assert_eq!(GroupBy::Tag.stack(Some("a"), &["_".to_owned()], "pve1"), REST);
    }

    #[test]
    fn two_guests_of_one_name_get_two_keys() {
        assert_eq!(guest_key(Some("web"), 136, |_| false), "web");
        assert_eq!(guest_key(Some("web"), 137, |key| key == "web"), "web-137");
        assert_eq!(guest_key(None, 138, |_| false), "guest-138");
        assert_eq!(guest_key(Some("a b"), 139, |_| false), "guest-139");
    }
}
