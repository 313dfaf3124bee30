//! Whose waiting changes are: the server tells them as a difference between two files, and nothing else.

use std::collections::BTreeSet;

pub(super) const HINT: &str =
    "apply or revert them in Proxmox, under the network of the host, then plan again";

/// The interfaces of others that a difference is about. `order` has all of them as they stand in the new file.
pub(super) fn foreign(changes: &str, order: &[String], ours: &BTreeSet<String>) -> Vec<String> {
    let mut found = BTreeSet::new();
    for hunk in hunks(changes) {
        for (at, line) in hunk.iter().enumerate() {
            let changed = line.starts_with(['+', '-']) && !line[1..].trim().is_empty();
            if !changed {
                continue;
            }
            match owner(&hunk, at).or_else(|| before_next(&hunk, at, order)) {
                Some(name) if ours.contains(name) => {}
                Some(name) => drop(found.insert(name.to_owned())),
                None => drop(found.insert("an interface that the difference does not name".to_owned())),
            }
        }
    }
    found.into_iter().collect()
}

/// All interfaces that a difference is about.
pub(super) fn about(changes: &str, order: &[String]) -> Vec<String> {
    foreign(changes, order, &BTreeSet::new())
}

/// Whether a difference takes one of the addresses away, a way out of the network, or an address that a server gave.
pub(super) fn takes_away(changes: &str, reached: &BTreeSet<&String>) -> bool {
    changes.lines().filter_map(|line| line.strip_prefix('-')).any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["address", cidr, ..] => {
                cidr.split('/').next().is_some_and(|ip| reached.iter().any(|other| other.as_str() == ip))
            }
            ["gateway", ..] => true,
            ["iface", .., method] => matches!(*method, "dhcp" | "auto"),
            _ => false,
        }
    })
}

fn hunks(changes: &str) -> Vec<Vec<&str>> {
    let mut hunks: Vec<Vec<&str>> = Vec::new();
    for line in changes.lines() {
        if line.starts_with("@@") {
            hunks.push(Vec::new());
        } else if let Some(hunk) = hunks.last_mut().filter(|_| !line.is_empty()) {
            hunk.push(line);
        }
    }
    hunks
}

/// `iface vmbr0 inet static`, `auto vmbr0`.
fn named(line: &str) -> Option<&str> {
    let mut words = line.get(1..)?.split_whitespace();
    let head = words.next().filter(|head| matches!(*head, "iface" | "auto"))?;
    words.next().filter(|_| !head.is_empty())
}

/// The interface whose part a line is in: parts end with an empty line.
fn owner<'h>(hunk: &[&'h str], at: usize) -> Option<&'h str> {
    for line in hunk[..=at].iter().rev() {
        if let Some(name) = named(line) {
            return Some(name);
        }
        if line.get(1..).is_some_and(|text| text.trim().is_empty()) {
            return None;
        }
    }
    None
}

/// Where the beginning of a part is out of sight: the interface that stands before the next one, or the last of all. Such a part stays,
/// as every line of one that goes is in sight; so it is looked for among those that stay, which the new file has.
fn before_next<'o>(hunk: &[&str], at: usize, order: &'o [String]) -> Option<&'o str> {
    match hunk[at..].iter().filter(|line| !line.starts_with('-')).find_map(|line| named(line)) {
        Some(next) => {
            let place = order.iter().position(|name| name == next)?;
            order.get(place.checked_sub(1)?).map(String::as_str)
        }
        None => order.last().map(String::as_str),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDED: &str = "--- /etc/network/interfaces\n+++ /etc/network/interfaces.new\n@@ -14,6 +14,11 @@\n \n iface eno1 inet manual\n \n+iface bond0 inet manual\n+\tbond-slaves none\n+\n auto vmbr0\n iface vmbr0 inet static\n \taddress 192.0.2.10/24\n@@ -22,4 +27,35 @@\n \tbridge-stp off\n \tbridge-fd 0\n \n+auto vmbr1\n+iface vmbr1 inet static\n+\taddress 10.9.0.1/24\n";

    fn of(changes: &str, ours: &[&str]) -> Vec<String> {
        let ours = ours.iter().map(|name| (*name).to_owned()).collect();
        foreign(changes, &["eno1", "bond0", "vmbr1", "vmbr2"].map(str::to_owned), &ours)
    }

    #[test]
    fn changes_are_named_by_their_interfaces() {
        assert_eq!(of(ADDED, &[]), ["bond0", "vmbr1"]);
        assert_eq!(of(ADDED, &["vmbr1"]), ["bond0"]);
        assert!(of(ADDED, &["vmbr1", "bond0"]).is_empty());
    }

    #[test]
    fn a_line_far_from_its_name_is_in_the_part_before_the_next() {
        let deep = "@@ -20,7 +20,7 @@\n \tbridge-ports none\n \tbridge-stp off\n \tbridge-fd 0\n-\tmtu 1400\n+\tmtu 1500\n \n auto vmbr2\n iface vmbr2 inet manual\n";
        assert_eq!(of(deep, &["vmbr2"]), ["vmbr1"]);
        assert!(of(deep, &["vmbr1"]).is_empty());
        let last = deep.split(" auto").next().unwrap();
        assert_eq!(of(last, &["vmbr1"]), ["vmbr2"]);
    }

    #[test]
    fn a_line_before_a_part_that_goes_is_in_the_one_before_it() {
        let before = "@@ -20,12 +20,7 @@\n \tbridge-ports none\n \tbridge-stp off\n \tbridge-fd 0\n-#for guests\n \n-auto vmbr9\n-iface vmbr9 inet manual\n-\tbridge-ports none\n-\n";
        let next = format!("{before} auto vmbr2\n iface vmbr2 inet manual\n");
        assert_eq!(of(&next, &["vmbr9"]), ["vmbr1"]);
        assert!(of(&next, &["vmbr9", "vmbr1"]).is_empty());
        assert_eq!(of(before, &["vmbr9"]), ["vmbr2"], "it is the last that stays");
    }
}
