//! The file that interfaces are kept in, and how two versions of it differ.

use std::fmt::Write as _;

use indexmap::IndexMap;
use jiff::Timestamp;

use crate::world::node::Iface;

type Ifaces = IndexMap<String, Iface>;

/// Where a kind stands in the file.
fn rank(kind: &str) -> u32 {
    match kind {
        "eth" | "OVSPort" => 200_000,
        "OVSIntPort" => 300_000,
        "bond" | "OVSBond" => 400_000,
        "bridge" | "OVSBridge" => 500_000,
        "vlan" => 600_000,
        "vnet" => 900_000,
        _ => 0,
    }
}

/// New interfaces come after those of their kind that were there; parts of an interface come after it.
pub fn sort(ifaces: &mut Ifaces, new: Option<&str>) {
    let keys: IndexMap<String, u32> = ifaces
        .iter()
        .enumerate()
        .map(|(at, (name, iface))| {
            let mut parts = name.split(['.', ':']);
            let root = parts.next().and_then(|root| ifaces.get(root)).unwrap_or(iface);
            let level = u32::try_from(parts.count()).unwrap_or_default();
            let place =
                if new == Some(name.as_str()) { 50_000 } else { u32::try_from(at).unwrap_or_default() };
            (name.clone(), rank(&root.kind) + level + place)
        })
        .collect();
    ifaces.sort_by(|a, _, b, _| (keys[a], a).cmp(&(keys[b], b)));
}

/// As long as the original's, so that differences point at the same lines. It is never shown.
const HEAD: &str = "\
#
# Network interfaces of a simulated node.
#
# A difference between two versions of this file counts lines from
# here, and tools compare it with that of a real node.
#
# Nothing reads this file.
#
#
#

auto lo
iface lo inet loopback

";

/// The whole file.
pub fn text(ifaces: &Ifaces) -> String {
    let mut out = HEAD.to_owned();
    for (name, iface) in ifaces.iter().filter(|(_, iface)| iface.kind != "vnet") {
        if iface.props.get("autostart").is_some_and(|a| a == "1") {
            let _ = writeln!(out, "auto {name}");
        }
        let families = iface.props.get("families").map_or("inet", String::as_str);
        for (n, family) in families.split(' ').enumerate() {
            block(&mut out, name, iface, family, n == 0);
        }
    }
    out.push_str("source /etc/network/interfaces.d/*\n");
    out
}

/// One stanza; what belongs to no family stands in the first.
fn block(out: &mut String, name: &str, iface: &Iface, family: &str, first: bool) {
    let suffix = family.trim_start_matches("inet");
    let prop = |key: &str| iface.props.get(key).map(String::as_str).filter(|v| !v.is_empty());
    let cidr = prop(&format!("cidr{suffix}"));
    let method = prop(&format!("method{suffix}")).unwrap_or(if cidr.is_some() { "static" } else { "manual" });
    let _ = writeln!(out, "iface {name} {family} {method}");
    let mut line = |key: &str, value: &str| {
        let _ = writeln!(out, "\t{key} {value}");
    };
    if let Some(cidr) = cidr {
        line("address", cidr);
    }
    if let Some(gateway) = prop(&format!("gateway{suffix}")) {
        line("gateway", gateway);
    }
    if first {
        let mut done = vec![
            "autostart",
            "families",
            "method",
            "method6",
            "cidr",
            "cidr6",
            "gateway",
            "gateway6",
            "comments",
            "comments6",
        ];
        match iface.kind.as_str() {
            "bridge" => {
                line("bridge-ports", prop("bridge_ports").unwrap_or("none"));
                line("bridge-stp", prop("bridge_stp").unwrap_or("off"));
                line("bridge-fd", prop("bridge_fd").unwrap_or("0"));
                if prop("bridge_vlan_aware") == Some("1") {
                    line("bridge-vlan-aware", "yes");
                    line("bridge-vids", prop("bridge_vids").unwrap_or("2-4094"));
                }
                done.extend(["bridge_ports", "bridge_stp", "bridge_fd", "bridge_vlan_aware", "bridge_vids"]);
            }
            "bond" => {
                line("bond-slaves", prop("slaves").unwrap_or("none"));
                line("bond-miimon", prop("bond_miimon").unwrap_or("100"));
                let mode = prop("bond_mode").unwrap_or("balance-rr");
                line("bond-mode", mode);
                if matches!(mode, "balance-xor" | "802.3ad")
                    && let Some(policy) = prop("bond_xmit_hash_policy")
                {
                    line("bond-xmit-hash-policy", policy);
                }
                if mode == "active-backup"
                    && let Some(primary) = prop("bond-primary")
                {
                    line("bond-primary", primary);
                }
                done.extend(["slaves", "bond_miimon", "bond_mode", "bond_xmit_hash_policy", "bond-primary"]);
            }
            "vlan" if name.contains('.') => done.extend(["vlan-raw-device", "vlan-id"]),
            "vlan" if name.starts_with("vlan") => done.push("vlan-id"),
            _ => {}
        }
        let mut rest: Vec<&String> = iface.props.keys().filter(|key| !done.contains(&key.as_str())).collect();
        rest.sort();
        for key in rest {
            if let Some(value) = prop(key) {
                line(key, value);
            }
        }
    }
    let comments = if suffix.is_empty() { prop("comments") } else { prop("comments6") };
    for comment in comments.unwrap_or_default().lines() {
        let _ = writeln!(out, "#{comment}");
    }
    out.push('\n');
}

/// A line of a difference: kept, removed or added.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Edit<'t> {
    Keep(&'t str),
    Remove(&'t str),
    Add(&'t str),
}

/// The longest common part stays; files are short.
fn edits<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<Edit<'t>> {
    let width = new.len() + 1;
    let mut common = vec![0_u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i * width + j] = if old[i] == new[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut out = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            out.push(Edit::Keep(old[i]));
            i += 1;
            j += 1;
        } else if j == new.len()
            || (i < old.len() && common[(i + 1) * width + j] >= common[i * width + j + 1])
        {
            out.push(Edit::Remove(old[i]));
            i += 1;
        } else {
            out.push(Edit::Add(new[j]));
            j += 1;
        }
    }
    out
}

/// Lines around a change that are shown, too.
const CONTEXT: usize = 3;

/// The difference in the unified form; none if there is none.
pub fn difference(old: &str, new: &str, now: i64) -> Option<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let edits = edits(&old, &new);
    let changed: Vec<usize> =
        edits.iter().enumerate().filter(|(_, e)| !matches!(e, Edit::Keep(_))).map(|(at, _)| at).collect();
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for at in changed {
        let (from, to) = (at.saturating_sub(CONTEXT), (at + CONTEXT + 1).min(edits.len()));
        match ranges.last_mut() {
            Some(last) if from <= last.1 => last.1 = to,
            _ => ranges.push((from, to)),
        }
    }
    if ranges.is_empty() {
        return None;
    }
    let date = Timestamp::from_second(now).unwrap_or_default().strftime("%Y-%m-%d %H:%M:%S");
    let mut out = format!(
        "--- /etc/network/interfaces\t{date}.000000000 +0000\n+++ /etc/network/interfaces.new\t{date}.000000000 +0000\n"
    );
    for (from, to) in ranges {
        let count = |edits: &[Edit<'_>], old: bool| {
            edits
                .iter()
                .filter(|e| match e {
                    Edit::Keep(_) => true,
                    Edit::Remove(_) => old,
                    Edit::Add(_) => !old,
                })
                .count()
        };
        let (before, hunk) = (&edits[..from], &edits[from..to]);
        let _ = writeln!(
            out,
            "@@ -{},{} +{},{} @@",
            count(before, true) + 1,
            count(hunk, true),
            count(before, false) + 1,
            count(hunk, false)
        );
        for edit in hunk {
            let (sign, line) = match edit {
                Edit::Keep(line) => (' ', line),
                Edit::Remove(line) => ('-', line),
                Edit::Add(line) => ('+', line),
            };
            let _ = writeln!(out, "{sign}{line}");
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_has_hunks_with_context() {
        let old: String = (1..=12).map(|n| format!("{n}\n")).collect();
        let new = old.replace("6\n", "six\n");
        let text = difference(&old, &new, 0).unwrap();
        let hunk = text.lines().skip(2).collect::<Vec<_>>().join("\n");
        assert_eq!(hunk, "@@ -3,7 +3,7 @@\n 3\n 4\n 5\n-6\n+six\n 7\n 8\n 9");
        assert_eq!(difference(&old, &old, 0), None);
    }

    #[test]
    fn interfaces_stand_by_kind_and_age() {
        let iface = |kind: &str| Iface { kind: kind.into(), ..Iface::default() };
        let mut all = Ifaces::new();
        for (name, kind) in [("eno1", "eth"), ("vmbr0", "bridge"), ("vmbr1", "bridge"), ("vmbr0.50", "vlan")]
        {
            all.insert(name.into(), iface(kind));
        }
        all.insert("vmbr5".into(), iface("bridge"));
        sort(&mut all, Some("vmbr5"));
        all.insert("bond0".into(), iface("bond"));
        sort(&mut all, Some("bond0"));
        let names: Vec<&String> = all.keys().collect();
        assert_eq!(names, ["eno1", "bond0", "vmbr0", "vmbr1", "vmbr0.50", "vmbr5"]);
    }
}
