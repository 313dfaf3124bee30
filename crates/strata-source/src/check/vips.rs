//! The address that the control planes of a cluster share: nobody else may have it.

use std::net::IpAddr;

use strata_diagnostics::{Diagnostic, Diagnostics, Severity, Span};

use super::guests::Guest;
use crate::cluster::ClusterNetwork;
use crate::repository::{EffectiveStack, Model, Repository};
use crate::value::address::number;

/// Somebody who has an address.
struct Holder<'a> {
    address: IpAddr,
    what: String,
    span: Option<Span>,
    vlan: Option<u16>,
    /// None for what is no stack's.
    stack: Option<&'a EffectiveStack>,
}

pub(super) fn check(repository: &Repository, guests: &[Guest<'_>], diagnostics: &mut Diagnostics) {
    let holders = holders(repository, guests);
    let mut first: Vec<(&EffectiveStack, &ClusterNetwork)> = Vec::new();
    for stack in repository.effective() {
        let Some(network) = stack.cluster().and_then(|cluster| cluster.cluster.network.as_ref()) else {
            continue;
        };
        let Some(vip) = network.vip else { continue };
        diagnostics.extend(reserved(network, vip.0, vip.span));
        for holder in holders.iter().filter(|holder| holder.address == vip.0) {
            // Its own nodes and gateway are compared where its network is.
            let own = holder.stack.is_some_and(|other| same(other, stack));
            let elsewhere = holder.stack.is_some_and(|other| elsewhere(repository, other, stack));
            if !own && !elsewhere {
                let apart = holder.stack.is_some() && holder.vlan != network.vlan;
                diagnostics.push(taken(stack, vip.0, vip.span, &holder.what, holder.span, apart));
            }
        }
        for (other, theirs) in &first {
            if theirs.vip.is_some_and(|other| other.0 == vip.0) && !elsewhere(repository, other, stack) {
                let what = format!("the shared address of `{}` in `{}`", other.name, other.environment);
                let at = theirs.vip.map(|vip| vip.span);
                diagnostics.push(taken(stack, vip.0, vip.span, &what, at, theirs.vlan != network.vlan));
            }
        }
        first.push((stack, network));
    }
}

/// Two datacenters may have the same addresses.
fn elsewhere(repository: &Repository, one: &EffectiveStack, other: &EffectiveStack) -> bool {
    let places = repository.proxmox_endpoint(one).zip(repository.proxmox_endpoint(other));
    places.is_some_and(|(one, other)| one != other)
}

fn same(one: &EffectiveStack, other: &EffectiveStack) -> bool {
    one.name == other.name && one.environment == other.environment
}

fn taken(
    stack: &EffectiveStack,
    vip: IpAddr,
    at: Span,
    what: &str,
    also: Option<Span>,
    apart: bool,
) -> Diagnostic {
    // The same address in two VLANs can be meant.
    let severity = if apart { Severity::Warning } else { Severity::Error };
    let message = format!(
        "`{vip}` cannot be the shared address of `{}` in `{}`: it is {what}",
        stack.name, stack.environment
    );
    let problem = Diagnostic::new(severity, "vip-collision", message).at(at);
    let problem = match also.filter(|span| *span != at) {
        Some(span) => problem.also(span, "who has it"),
        None => problem,
    };
    match apart {
        true => problem.note("they are in different VLANs, which may be meant"),
        false => problem.hint("give the cluster a `network.vip` that nobody has"),
    }
}

/// The gateway, a name server, and the addresses that belong to the network itself.
fn reserved(network: &ClusterNetwork, vip: IpAddr, at: Span) -> Option<Diagnostic> {
    let refuse = |what: &str| {
        let message = format!("`{vip}` cannot be the shared address of the control planes: it is {what}");
        let problem = Diagnostic::error("vip-collision", message).at(at);
        problem.hint("give the cluster a `network.vip` that nobody has")
    };
    if let Some(gateway) = network.gateway.filter(|gateway| gateway.0 == vip) {
        return Some(refuse("the gateway").also(gateway.span, "the gateway"));
    }
    if let Some(server) = network.nameservers.iter().find(|server| server.0 == vip) {
        return Some(refuse("a name server").also(server.span, "the name server"));
    }
    let cidr = network.cidr.value;
    if !vip.is_ipv4() || cidr.prefix > 30 || !cidr.contains(vip) {
        return None;
    }
    let size = 1_u128 << (32 - u32::from(cidr.prefix));
    match number(vip) % size {
        0 => Some(refuse("the address of the network itself")),
        host if host == size - 1 => Some(refuse("the broadcast address of the network")),
        _ => None,
    }
}

/// Everyone in the source whose address is known: guests, nodes, gateways, hosts, and what targets are reached at.
fn holders<'a>(repository: &'a Repository, guests: &[Guest<'a>]) -> Vec<Holder<'a>> {
    let mut found = Vec::new();
    for guest in guests {
        for address in &guest.addresses {
            let what = format!("the address of `{}` of stack `{}`", guest.name, guest.stack.name);
            let (span, vlan) = (Some(address.span), address.vlan);
            found.push(Holder { address: address.address, what, span, vlan, stack: Some(guest.stack) });
        }
    }
    for stack in repository.effective() {
        match &stack.model {
            Model::Machines(machines) => {
                let vms = machines.vms.iter().flat_map(|(_, vm)| vm.hardware.network.iter());
                let vms = vms.map(|(_, nic)| (nic.gateway, nic.gateway6, nic.vlan));
                let containers = machines.containers.iter().flat_map(|(_, own)| own.network.iter());
                let containers = containers.map(|(_, nic)| (nic.gateway, nic.gateway6, nic.vlan));
                for (v4, v6, vlan) in vms.chain(containers) {
                    for gateway in [v4, v6].into_iter().flatten() {
                        let what = format!("a gateway of stack `{}`", stack.name);
                        let (address, span) = (gateway.0, Some(gateway.span));
                        found.push(Holder { address, what, span, vlan, stack: Some(stack) });
                    }
                }
            }
            Model::Cluster(cluster) => {
                let Some(network) = &cluster.cluster.network else { continue };
                if let Some(gateway) = network.gateway {
                    let what = format!("the gateway of `{}`", stack.name);
                    let (span, vlan) = (Some(gateway.span), network.vlan);
                    found.push(Holder { address: gateway.0, what, span, vlan, stack: Some(stack) });
                }
            }
            Model::Hypervisor(hypervisor) => {
                for (name, interface) in &hypervisor.network {
                    let v4 = [
                        interface.address.map(|cidr| cidr.map(|cidr| cidr.address)),
                        interface.gateway.map(|ip| ip.map(|ip| ip.0)),
                    ];
                    for address in v4.into_iter().flatten() {
                        let what = format!("an address of `{name}` of the hosts");
                        let (address, span) = (address.value, Some(address.span));
                        found.push(Holder { address, what, span, vlan: None, stack: None });
                    }
                }
            }
            Model::Tofu(_) | Model::Removed | Model::Broken => {}
        }
    }
    for environment in repository.environments() {
        for (name, target) in &repository.settings(environment).targets {
            let proxmox = target.proxmox.as_ref().map(|proxmox| &proxmox.endpoint);
            let truenas = target.truenas.as_ref().map(|truenas| &truenas.endpoint);
            for endpoint in [proxmox, truenas].into_iter().flatten() {
                let Some(address) = host(endpoint) else { continue };
                let what = format!("where the target `{name}` answers");
                found.push(Holder { address, what, span: Some(endpoint.span), vlan: None, stack: None });
            }
        }
    }
    found
}

/// The address in a URL, where it has one.
fn host(url: &str) -> Option<IpAddr> {
    let (_, rest) = url.split_once("://")?;
    let place = rest.split(['/', '?']).next()?;
    if let Some(v6) = place.strip_prefix('[') {
        return v6.split(']').next()?.parse().ok();
    }
    place.split(':').next()?.parse().ok()
}
