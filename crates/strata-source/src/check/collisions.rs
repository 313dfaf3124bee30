//! What no two guests of a target may share: VMID, name, hardware address, IP address.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;

use strata_diagnostics::{Diagnostic, Diagnostics, Severity, Span};

use super::guests::Guest;

/// Something a guest has, and where that is written.
struct Claim<'g, 'a> {
    guest: &'g Guest<'a>,
    span: Span,
    vlan: Option<u16>,
}

pub(super) fn check(guests: &[Guest<'_>], diagnostics: &mut Diagnostics) {
    let mut by_endpoint: BTreeMap<&str, Vec<&Guest<'_>>> = BTreeMap::new();
    for guest in guests {
        if let Some(endpoint) = &guest.endpoint {
            by_endpoint.entry(endpoint).or_default().push(guest);
        }
    }
    for guests in by_endpoint.values() {
        let claims = guests.iter().filter_map(|guest| guest.vm_id.map(|(id, span)| (id, claim(guest, span))));
        report("vmid-collision", |id: &u32| format!("VMID `{id}`"), claims, diagnostics);
        let claims = guests.iter().map(|guest| (guest.name.clone(), claim(guest, guest.name_span)));
        report("name-collision", |name: &String| format!("the name `{name}`"), claims, diagnostics);
        let claims =
            guests.iter().flat_map(|guest| guest.macs.iter().map(|(mac, span)| (*mac, claim(guest, *span))));
        report("mac-collision", |mac| format!("the MAC `{mac}`"), claims, diagnostics);
        let claims = guests.iter().flat_map(|guest| {
            guest
                .addresses
                .iter()
                .map(|address| (address.address, Claim { guest, span: address.span, vlan: address.vlan }))
        });
        report("ip-collision", |address| format!("the address `{address}`"), claims, diagnostics);
    }
}

fn claim<'g, 'a>(guest: &'g Guest<'a>, span: Span) -> Claim<'g, 'a> {
    Claim { guest, span, vlan: None }
}

/// Reports what is claimed twice. Two entries that overlap in many values are one mistake.
fn report<'g, 'a: 'g, K: Hash + Eq>(
    code: &'static str,
    what: impl Fn(&K) -> String,
    claims: impl Iterator<Item = (K, Claim<'g, 'a>)>,
    diagnostics: &mut Diagnostics,
) {
    let mut first: HashMap<K, Claim<'g, 'a>> = HashMap::new();
    let mut told: HashSet<(Span, Span, &str, &str)> = HashSet::new();
    for (key, claim) in claims {
        match first.get(&key) {
            None => {
                first.insert(key, claim);
            }
            // A node without a machine of its own runs on the one of its name.
            Some(other) if is_bare(other, &claim) && other.guest.name == claim.guest.name => {}
            Some(other) => {
                let environments =
                    (other.guest.stack.environment.as_str(), claim.guest.stack.environment.as_str());
                if told.insert((other.span, claim.span, environments.0, environments.1)) {
                    diagnostics.push(describe(code, &what(&key), other, &claim));
                }
            }
        }
    }
}

/// One of the two is a node of a cluster that says nothing of its machines.
fn is_bare(one: &Claim<'_, '_>, other: &Claim<'_, '_>) -> bool {
    one.guest.vm_id.is_some() != other.guest.vm_id.is_some()
}

fn describe(code: &'static str, what: &str, first: &Claim<'_, '_>, second: &Claim<'_, '_>) -> Diagnostic {
    let (one, two) = (first.guest, second.guest);
    // The same address in two VLANs can be meant: warn, and let it pass.
    let bare = is_bare(first, second);
    let apart = first.vlan != second.vlan || bare;
    let severity = if apart { Severity::Warning } else { Severity::Error };
    let place =
        if two.target.is_empty() { "the same target".to_owned() } else { format!("target `{}`", two.target) };
    let same_stack = one.stack.name == two.stack.name;
    if same_stack && one.stack.environment != two.stack.environment {
        let (from, to) = (&one.stack.environment, &two.stack.environment);
        let message = format!("{what} is used in both environments `{from}` and `{to}` on {place}");
        let problem = Diagnostic::new(severity, code, message)
            .at_with(second.span, format!("`{}` in `{to}`", two.name));
        let problem = match first.span == second.span {
            true => problem,
            false => problem.also(first.span, format!("`{}` in `{from}`", one.name)),
        };
        let overlaid = if two.stack.is_default_environment { from } else { to };
        let hint = format!("give `{overlaid}` another in environments/{overlaid}.yaml, or another target");
        return problem.hint(hint);
    }
    let label = |guest: &Guest<'_>| match guest.stack.is_default_environment {
        true => format!("`{}` of stack `{}`", guest.name, guest.stack.name),
        false => format!("`{}` of stack `{}` in `{}`", guest.name, guest.stack.name, guest.stack.environment),
    };
    let problem = Diagnostic::new(severity, code, format!("{what} is used twice on {place}"));
    let problem = problem.at_with(second.span, label(two));
    let problem = match first.span == second.span {
        true => problem.note(format!("the other one is {}", label(one))),
        false => problem.also(first.span, label(one)),
    };
    match code {
        "vmid-collision" if one.stack.cluster().is_some() && same_stack => {
            problem.hint("give one of the pools an `idBase` of its own")
        }
        "ip-collision" if bare => problem.note("the node may run on that machine, which is then meant"),
        "ip-collision" if apart => problem.note("they are in different VLANs, which may be meant"),
        _ => problem,
    }
}
