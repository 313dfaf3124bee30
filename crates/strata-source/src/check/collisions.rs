//! What no two guests of a target may share: VMID, hardware address, IP address; and the name, within a stack.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;

use strata_diagnostics::{Diagnostic, Diagnostics, Severity, Span};

use super::guests::Guest;
use crate::repository::Repository;

const NAME: &str = "name-collision";

/// Something a guest has, and where that is written.
struct Claim<'g, 'a> {
    guest: &'g Guest<'a>,
    span: Span,
    vlan: Option<u16>,
}

pub(super) fn check(repository: &Repository, guests: &[Guest<'_>], diagnostics: &mut Diagnostics) {
    let mut by_endpoint: BTreeMap<&str, Vec<&Guest<'_>>> = BTreeMap::new();
    for guest in guests {
        if let Some(endpoint) = &guest.endpoint {
            by_endpoint.entry(endpoint).or_default().push(guest);
        }
    }
    for guests in by_endpoint.values() {
        let claims = guests.iter().filter_map(|guest| guest.vm_id.map(|(id, span)| (id, claim(guest, span))));
        report("vmid-collision", |id: &u32| format!("VMID `{id}`"), claims, repository, diagnostics);
        let claims = guests.iter().map(|guest| (guest.name.clone(), claim(guest, guest.name_span)));
        report(NAME, |name: &String| format!("the name `{name}`"), claims, repository, diagnostics);
        let claims =
            guests.iter().flat_map(|guest| guest.macs.iter().map(|(mac, span)| (*mac, claim(guest, *span))));
        report("mac-collision", |mac| format!("the MAC `{mac}`"), claims, repository, diagnostics);
        let claims = guests.iter().flat_map(|guest| {
            guest
                .addresses
                .iter()
                .map(|address| (address.address, Claim { guest, span: address.span, vlan: address.vlan }))
        });
        report("ip-collision", |address| format!("the address `{address}`"), claims, repository, diagnostics);
    }
}

fn claim<'g, 'a>(guest: &'g Guest<'a>, span: Span) -> Claim<'g, 'a> {
    Claim { guest, span, vlan: None }
}

/// Reports what is claimed twice. Two entries that overlap in many values are one mistake.
fn report<'g, 'a: 'g, K: Hash + Eq + ToString>(
    code: &'static str,
    what: impl Fn(&K) -> String,
    claims: impl Iterator<Item = (K, Claim<'g, 'a>)>,
    repository: &Repository,
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
                    let problem = describe(code, &what(&key), other, &claim);
                    diagnostics.push(moved(repository, code, &key.to_string(), [other, &claim], problem));
                }
            }
        }
    }
}

/// A number or an address that is not what is written at its place: what moved it is shown too.
fn moved(
    repository: &Repository,
    code: &str,
    value: &str,
    claims: [&Claim<'_, '_>; 2],
    mut problem: Diagnostic,
) -> Diagnostic {
    for claim in claims {
        let environment = &claim.guest.stack.environment;
        let Some(offsets) = repository.offsets(environment) else { continue };
        let place = match code {
            "vmid-collision" => offsets.vm_id.as_ref().map(|offset| offset.span),
            "ip-collision" => offsets.places.has("addresses").then(|| offsets.places.value("addresses")),
            _ => None,
        };
        let is_as_written = repository.sources.text(claim.span).starts_with(value);
        if let Some(place) = place.filter(|place| place.file != claim.span.file && !is_as_written) {
            problem = problem.also(place, format!("moves `{}` in `{environment}`", claim.guest.name));
        }
    }
    problem
}

/// One of the two is a node of a cluster that says nothing of its machines.
fn is_bare(one: &Claim<'_, '_>, other: &Claim<'_, '_>) -> bool {
    one.guest.vm_id.is_some() != other.guest.vm_id.is_some()
}

fn describe(code: &'static str, what: &str, first: &Claim<'_, '_>, second: &Claim<'_, '_>) -> Diagnostic {
    let (one, two) = (first.guest, second.guest);
    // The same address in two VLANs can be meant: warn, and let it pass. Proxmox knows guests by their VMIDs, and a name may be that of many.
    let bare = is_bare(first, second);
    let apart = first.vlan != second.vlan || bare;
    let same_stack = one.stack.name == two.stack.name;
    let is_name_elsewhere = code == NAME && !same_stack;
    let severity = if apart || is_name_elsewhere { Severity::Warning } else { Severity::Error };
    let place =
        if two.target.is_empty() { "the same target".to_owned() } else { format!("target `{}`", two.target) };
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
        let file = format!("environments/{overlaid}.yaml");
        return problem.hint(match code {
            "vmid-collision" => {
                format!("write `offsets: {{vmId: 1000}}` or another number in {file}, or another target")
            }
            "ip-collision" => {
                format!("write `offsets: {{addresses: …}}` or another address in {file}, or another target")
            }
            "name-collision" => {
                format!("put `{{env}}` into the `name`, or write another in {file}, or another target")
            }
            _ => format!("give `{overlaid}` another in {file}, or another target"),
        });
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
        NAME if is_name_elsewhere => problem
            .note("Proxmox allows it: guests are known by their VMIDs")
            .hint("give one of them another `name` if people should not mix them up"),
        "ip-collision" if bare => problem.note("the node may run on that machine, which is then meant"),
        "ip-collision" if apart => problem.note("they are in different VLANs, which may be meant"),
        _ => problem,
    }
}
