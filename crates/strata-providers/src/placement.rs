//! Places for guests whose source leaves them open: each target is asked once in a run, and what one stack was given counts for the next.

use strata_blueprint::Blueprint;
use strata_blueprint::placement::{self, Datacenter, Homes, Host, StandingGuest, Unplaceable};
use strata_proxmox::Hosts;
use strata_session::SessionError;

use crate::AllProviders;

impl AllProviders {
    pub(crate) async fn choose_homes(&self, drawn: &Blueprint) -> Result<Homes, SessionError> {
        // All guests of a stack are on one target.
        let homeless = placement::homeless(drawn);
        let spread = || drawn.graph.get(drawn.spread.keys().next()?);
        let Some(target) = homeless.first().copied().or_else(spread).map(|guest| guest.target.clone()) else {
            return Ok(Homes::new());
        };
        let known = self.seen().datacenters.get(&target).cloned();
        let mut datacenter = match known {
            Some(known) => known,
            None => match self.proxmox().get(&target) {
                Some(provider) => datacenter(provider.hosts().await?),
                None => return Ok(Homes::new()),
            },
        };
        let standing = placement::found_standing(drawn, &datacenter);
        let chosen = placement::choose(drawn, &datacenter).map(|mut homes| {
            homes.extend(standing);
            homes
        });
        if let Ok(homes) = &chosen {
            for guest in placement::standing_guests(drawn, homes) {
                datacenter.guests.retain(|other| other.vm_id != guest.vm_id);
                datacenter.guests.push(guest);
            }
        }
        self.seen().datacenters.insert(target, datacenter);
        chosen.map_err(|unplaceable| refusal(&unplaceable))
    }
}

fn datacenter(seen: Hosts) -> Datacenter {
    let host = |host: strata_proxmox::Host| Host {
        name: host.name,
        memory: host.memory,
        storages: host.storages,
        bridges: host.bridges,
    };
    let guest = |guest: strata_proxmox::HostedGuest| StandingGuest {
        vm_id: guest.vmid,
        node: guest.node,
        memory: guest.memory,
    };
    Datacenter {
        hosts: seen.hosts.into_iter().map(host).collect(),
        guests: seen.guests.into_iter().map(guest).collect(),
    }
}

fn refusal(unplaceable: &[Unplaceable]) -> SessionError {
    let Some(first) = unplaceable.first() else { return SessionError::refused("no node can be chosen") };
    let why = match first.missing.is_empty() {
        true => "no node is online".to_owned(),
        false => first.missing.join("; "),
    };
    let others = match unplaceable.len() {
        1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    SessionError::refused(format!("no node has all that `{}` needs{others}: {why}", first.address))
        .origin(first.origin.clone())
        .hint("name a `node`, or storages and bridges that one node has")
}
