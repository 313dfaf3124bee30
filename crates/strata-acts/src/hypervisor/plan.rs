//! What emptying a host does to each guest on it: a pure function of what was seen.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use strata_providers::{GuestOnHost, HostedByUs, Movable};

/// What may be done to guests.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Policy {
    /// Those that cannot be moved are shut down.
    pub(super) shut_down: bool,
    /// Those of others stay, and feel what becomes of the host.
    pub(super) leave_others: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Leaving {
    /// Moved while it runs; a container is restarted on the other side.
    Moves {
        to: String,
    },
    ShutsDown,
    /// It is off, or of somebody else: nothing is done to it.
    Stays,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Departure {
    pub(super) vmid: u32,
    pub(super) name: String,
    pub(super) container: bool,
    pub(super) ours: Option<HostedByUs>,
    pub(super) how: Leaving,
}

/// What is known when a host is planned.
pub(super) struct Seen<'s> {
    pub(super) guests: &'s [GuestOnHost],
    pub(super) ours: &'s BTreeMap<u32, HostedByUs>,
    pub(super) movable: &'s BTreeMap<u32, Movable>,
    /// Hosts that guests may go to, with their memory in bytes.
    pub(super) hosts: &'s BTreeMap<String, i64>,
}

/// The departures from a host, or everything that stands in the way.
pub(super) fn depart(host: &str, seen: &Seen<'_>, policy: Policy) -> Result<Vec<Departure>, Vec<String>> {
    let mut free: BTreeMap<&str, i64> =
        seen.hosts.iter().map(|(name, memory)| (name.as_str(), *memory)).collect();
    let mut groups: BTreeSet<(String, String)> = BTreeSet::new();
    for guest in seen.guests.iter().filter(|guest| guest.running && !guest.template) {
        if let Some(free) = free.get_mut(guest.node.as_str()) {
            *free -= guest.memory;
        }
        let group = seen.ours.get(&guest.vmid).and_then(|ours| ours.group.clone());
        groups.extend(group.map(|group| (group, guest.node.clone())));
    }
    let (mut departures, mut wrong) = (Vec::new(), Vec::new());
    let mut here: Vec<&GuestOnHost> =
        seen.guests.iter().filter(|guest| guest.node == host && !guest.template).collect();
    // The largest first: small ones fit in what is left.
    here.sort_by_key(|guest| (Reverse(guest.memory), guest.vmid));
    for guest in here {
        let ours = seen.ours.get(&guest.vmid).cloned();
        let departure = |ours, how| Departure {
            vmid: guest.vmid,
            name: guest.name.clone(),
            container: guest.container,
            ours,
            how,
        };
        if !guest.running {
            departures.push(departure(ours, Leaving::Stays));
            continue;
        }
        let Some(own) = &ours else {
            match policy.leave_others {
                true => departures.push(departure(None, Leaving::Stays)),
                false => {
                    wrong.push(format!("{} runs there and is not managed by this repository", called(guest)))
                }
            }
            continue;
        };
        let movable = seen.movable.get(&guest.vmid).cloned().unwrap_or_default();
        let fits = |name: &&str| {
            let free = free.get(*name).copied().unwrap_or_default();
            **name != *host && !movable.not.iter().any(|not| not == *name) && free >= guest.memory
        };
        let equals = |name: &str| {
            own.group.as_ref().is_some_and(|group| groups.contains(&(group.clone(), name.to_owned())))
        };
        let to = match &movable.bound {
            Some(_) => None,
            None => free
                .keys()
                .copied()
                .filter(fits)
                .min_by_key(|name| (equals(name), Reverse(free.get(name).copied()), *name))
                .map(str::to_owned),
        };
        match to {
            Some(to) => {
                if let Some(free) = free.get_mut(to.as_str()) {
                    *free -= guest.memory;
                }
                groups.extend(own.group.clone().map(|group| (group, to.clone())));
                departures.push(departure(ours, Leaving::Moves { to }));
            }
            None if policy.shut_down => departures.push(departure(ours, Leaving::ShutsDown)),
            None => {
                let why = movable
                    .bound
                    .unwrap_or_else(|| "no other host has what it needs, and room for it".to_owned());
                wrong.push(format!("{} (`{}`) cannot be moved: {why}", called(guest), own.address));
            }
        }
    }
    match wrong.is_empty() {
        true => Ok(departures),
        false => Err(wrong),
    }
}

fn called(guest: &GuestOnHost) -> String {
    let kind = if guest.container { "container" } else { "VM" };
    format!("{kind} {} `{}`", guest.vmid, guest.name)
}

impl Departure {
    /// A line of the plan.
    pub(super) fn line(&self) -> String {
        let kind = if self.container { "container" } else { "VM" };
        let what = match &self.ours {
            Some(ours) => format!("{} ({kind} {})", ours.address, self.vmid),
            None => format!("{kind} {} `{}`, not of this repository", self.vmid, self.name),
        };
        match &self.how {
            Leaving::Moves { to } if self.container => format!("{what} is restarted on {to}"),
            Leaving::Moves { to } => format!("{what} moves to {to}"),
            Leaving::ShutsDown => format!("{what} is shut down"),
            Leaving::Stays => format!("{what} stays"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: i64 = 1 << 30;

    fn guest(vmid: u32, node: &str, memory: i64) -> GuestOnHost {
        GuestOnHost {
            vmid,
            name: format!("g{vmid}"),
            node: node.to_owned(),
            running: true,
            template: false,
            container: false,
            memory: memory * GIB,
            ha: None,
        }
    }

    fn ours(vmid: u32, group: Option<&str>) -> (u32, HostedByUs) {
        let address = format!("web/vm/g{vmid}").parse().unwrap();
        let group = group.map(str::to_owned);
        (vmid, HostedByUs { address, vmid, home: "pve1".into(), runs: true, is_node: false, group })
    }

    fn lines(guests: &[GuestOnHost], bound: &[u32], policy: Policy) -> Result<Vec<String>, Vec<String>> {
        strata_providers::kinds::register();
        let ours = [ours(1, Some("a")), ours(2, Some("a")), ours(3, None)].into();
        let bind = |vmid: &u32| {
            (*vmid, Movable { bound: Some("it uses hostpci0 of its host".into()), not: Vec::new() })
        };
        let movable = bound.iter().map(bind).collect();
        let hosts =
            [("pve1", 64), ("pve2", 64), ("pve3", 32)].map(|(name, memory)| (name.to_owned(), memory * GIB));
        let seen = Seen { guests, ours: &ours, movable: &movable, hosts: &hosts.into() };
        Ok(depart("pve1", &seen, policy)?.iter().map(Departure::line).collect())
    }

    #[test]
    fn a_guest_goes_where_there_is_room_and_none_of_its_equals() {
        let guests = [guest(1, "pve1", 8), guest(2, "pve2", 8), guest(3, "pve1", 40)];
        assert_eq!(
            lines(&guests, &[], Policy::default()).unwrap(),
            ["web/vm/g3 (VM 3) moves to pve2", "web/vm/g1 (VM 1) moves to pve3"]
        );
    }

    #[test]
    fn what_cannot_go_is_told_all_at_once_and_shut_down_where_that_was_asked_for() {
        let guests = [guest(1, "pve1", 8), guest(3, "pve1", 65), guest(9, "pve1", 1)];
        let wrong = lines(&guests, &[1], Policy::default()).unwrap_err();
        assert_eq!(
            wrong,
            [
                "VM 3 `g3` (`web/vm/g3`) cannot be moved: no other host has what it needs, and room for it",
                "VM 1 `g1` (`web/vm/g1`) cannot be moved: it uses hostpci0 of its host",
                "VM 9 `g9` runs there and is not managed by this repository",
            ]
        );
        let policy = Policy { shut_down: true, leave_others: true };
        assert_eq!(
            lines(&guests, &[1], policy).unwrap(),
            [
                "web/vm/g3 (VM 3) is shut down",
                "web/vm/g1 (VM 1) is shut down",
                "VM 9 `g9`, not of this repository stays"
            ]
        );
    }
}
