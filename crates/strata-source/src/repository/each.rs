//! `each`: one guest for each entry of a map, and `ip`, short for the address of the first network device.
//!
//! An entry becomes a guest of its own, `desk-alice`, before anything else is read: what names, numbers and addresses are asked
//! of a guest is asked of it. Its `each` keeps the one entry that it is of.

use strata_diagnostics::{Diagnostic, Diagnostics};
use strata_yaml::{Entry, Kind, Mapping, Node, Spanned, overlay};

/// Puts the guests of each entry in the place of the one that has `each`.
pub(super) fn expand(tree: &mut Node, diagnostics: &mut Diagnostics) {
    for guests in sections(tree) {
        if !guests.entries.iter().any(|guest| members(guest).is_some()) {
            continue;
        }
        let mut expanded: Vec<Entry> = Vec::new();
        for guest in std::mem::take(&mut guests.entries) {
            let made = match members(&guest) {
                Some(all) => all.entries.iter().map(|member| instance(&guest, member, diagnostics)).collect(),
                None => vec![guest],
            };
            for one in made {
                match expanded.iter().find(|other| other.key.value == one.key.value) {
                    Some(other) => {
                        let message = format!("two guests are called `{}`", one.key);
                        let problem = Diagnostic::error("name-collision", message).at(one.key.span);
                        diagnostics.push(problem.also(other.key.span, "the other one"));
                    }
                    None => expanded.push(one),
                }
            }
        }
        guests.entries = expanded;
    }
}

/// The maps of guests that a stack has.
fn sections(tree: &mut Node) -> impl Iterator<Item = &mut Mapping> {
    let entries = match &mut tree.kind {
        Kind::Mapping(mapping) => mapping.entries.as_mut_slice(),
        _ => &mut [],
    };
    let guests = entries.iter_mut().filter(|entry| matches!(entry.key.value.as_str(), "vms" | "containers"));
    guests.filter_map(|entry| match &mut entry.value.kind {
        Kind::Mapping(mapping) => Some(mapping),
        _ => None,
    })
}

fn members(guest: &Entry) -> Option<&Mapping> {
    guest.value.get("each")?.as_mapping()
}

fn instance(guest: &Entry, member: &Entry, diagnostics: &mut Diagnostics) -> Entry {
    let entries = guest.value.as_mapping().map(|mapping| mapping.entries.as_slice()).unwrap_or_default();
    let mut base: Vec<Entry> = Vec::with_capacity(entries.len());
    let named = member.value.get("name").is_some();
    for entry in entries {
        match entry.key.value.as_str() {
            "each" => {
                let own = Node::mapping(vec![member.clone()], entry.value.span);
                base.push(Entry { key: entry.key.clone(), value: own });
            }
            "vmId" => {
                let message = format!("`vmId` beside `each` would be the same for every `{}`", guest.key);
                let problem = Diagnostic::error("conflicting-keys", message).at(entry.key.span);
                diagnostics
                    .push(problem.hint("write it in each entry: a number by order moves when an entry goes"));
            }
            "name" if !named && entry.value.as_scalar().is_some() => {
                let text = entry.value.as_scalar().map(|scalar| scalar.text.as_str()).unwrap_or_default();
                let value = Node::text(format!("{text}-{}", member.key), entry.value.span);
                base.push(Entry { key: entry.key.clone(), value });
            }
            _ => base.push(entry.clone()),
        }
    }
    for key in ["each", "count"] {
        if let Some(entry) = member.value.as_mapping().and_then(|own| own.entry(key)) {
            let message = format!("an entry of `each` is one guest: it has no `{key}`");
            diagnostics.push(Diagnostic::error("conflicting-keys", message).at(entry.key.span));
        }
    }
    let base = Node { span: guest.value.span, kind: Kind::Mapping(Mapping { entries: base }) };
    let own = match &member.value.kind {
        Kind::Mapping(own) => {
            let kept = |entry: &&Entry| !matches!(entry.key.value.as_str(), "each" | "count");
            Node::mapping(own.entries.iter().filter(kept).cloned().collect(), member.value.span)
        }
        // Nothing differs, or something stands here that its own check reports.
        _ => Node::mapping(Vec::new(), member.value.span),
    };
    let key = Spanned::new(format!("{}-{}", guest.key, member.key), member.key.span);
    Entry { key, value: overlay(&base, &own) }
}

/// Moves `ip` of every guest to its first network device.
pub(super) fn addresses(tree: &mut Node) {
    for guest in sections(tree).flat_map(|guests| guests.entries.iter_mut()) {
        let Kind::Mapping(fields) = &mut guest.value.kind else { continue };
        let Some(place) = fields.entries.iter().position(|entry| entry.key.value == "ip") else { continue };
        let ip = fields.entries.remove(place);
        let span = ip.value.span;
        let device = Node::mapping(vec![ip], span);
        let devices = vec![Entry { key: Spanned::new("net0".to_owned(), span), value: device }];
        let first = Node::mapping(
            vec![Entry {
                key: Spanned::new("network".to_owned(), span),
                value: Node::mapping(devices, span),
            }],
            span,
        );
        guest.value = overlay(&guest.value, &first);
    }
}
