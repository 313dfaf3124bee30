//! Addresses: the right family, inside their network, with a router that can be reached.

use strata_diagnostics::{Diagnostic, Diagnostics, Span};
use strata_yaml::Spanned;

use crate::cluster::Cluster;
use crate::machine::container::ContainerNic;
use crate::machine::network::Nic;
use crate::repository::{Model, Repository};
use crate::stack::expand::Instance;
use crate::value::address::{Addressing, Cidr, Ip, advance, number};

pub(super) fn check(repository: &Repository, diagnostics: &mut Diagnostics) {
    for stack in repository.effective() {
        match &stack.model {
            Model::Machines(machines) => {
                for vm in machines.vm_instances() {
                    let devices = vm.spec.hardware.network.iter().map(|(_, nic)| nic.into());
                    devices_of(&vm, devices, diagnostics);
                }
                for container in machines.container_instances() {
                    let devices = container.spec.network.iter().map(|(_, nic)| nic.into());
                    devices_of(&container, devices, diagnostics);
                }
            }
            Model::Cluster(cluster) => of_cluster(cluster, &stack.name, diagnostics),
            Model::Hypervisor(_) | Model::Tofu(_) | Model::Broken | Model::Removed => {}
        }
    }
}

/// The first machine of an entry speaks for all; the others only have addresses that follow.
fn devices_of<T>(
    machine: &Instance<'_, T>,
    devices: impl Iterator<Item = Device>,
    diagnostics: &mut Diagnostics,
) {
    for device in devices {
        if machine.offset() == 0 {
            written(&device, diagnostics);
        }
        followed(machine, &device, diagnostics);
    }
}

/// The addresses of a network device, each with its router.
struct Device {
    v4: (Option<Spanned<Addressing>>, Option<Spanned<Ip>>),
    v6: (Option<Spanned<Addressing>>, Option<Spanned<Ip>>),
}

impl From<&Nic> for Device {
    fn from(nic: &Nic) -> Self {
        Self { v4: (nic.ip, nic.gateway), v6: (nic.ip6, nic.gateway6) }
    }
}

impl From<&ContainerNic> for Device {
    fn from(nic: &ContainerNic) -> Self {
        Self { v4: (nic.ip, nic.gateway), v6: (nic.ip6, nic.gateway6) }
    }
}

/// What is wrong as it is written.
fn written(device: &Device, diagnostics: &mut Diagnostics) {
    family(device.v4, true, diagnostics);
    family(device.v6, false, diagnostics);
    for (addressing, gateway) in [device.v4, device.v6] {
        let Some(gateway) = gateway else { continue };
        match addressing.and_then(|addressing| Some((addressing.address()?, addressing.span))) {
            Some((first, span)) => reachable(first, span, gateway, diagnostics),
            None => {
                let problem = Diagnostic::error("bad-address", "a gateway needs a fixed address beside it");
                diagnostics.push(problem.at(gateway.span));
            }
        }
    }
}

/// What is wrong with the address that this machine gets; the first machine past the end speaks for the rest.
fn followed<T>(machine: &Instance<'_, T>, device: &Device, diagnostics: &mut Diagnostics) {
    for addressing in [device.v4.0, device.v6.0].into_iter().flatten() {
        let Some(first) = addressing.address() else { continue };
        let of =
            |offset: u32| advance(first.address, offset.into()).filter(|address| first.contains(*address));
        match of(machine.offset()) {
            Some(own) => usable(first.with_address(own), addressing.span, &machine.name, diagnostics),
            None if machine.offset() > 0 && of(machine.offset() - 1).is_some() => {
                let message = format!("the address of `{}` would lie outside `{first}`", machine.name);
                let problem = Diagnostic::error("bad-address", message).at(addressing.span);
                diagnostics.push(problem.hint("begin with a lower address, or have fewer machines"));
            }
            None => {}
        }
    }
}

fn family(
    (addressing, gateway): (Option<Spanned<Addressing>>, Option<Spanned<Ip>>),
    v4: bool,
    diagnostics: &mut Diagnostics,
) {
    let (key, version) = if v4 { ("ip", "IPv4") } else { ("ip6", "IPv6") };
    let wrong = |span: Span, what: String| Diagnostic::error("bad-address", what).at(span);
    match addressing.map(|addressing| (addressing.value, addressing.span)) {
        Some((Addressing::Static(cidr), span)) if cidr.address.is_ipv4() != v4 => {
            let other = if v4 { "ip6" } else { "ip" };
            let problem = wrong(span, format!("`{key}` takes an {version} address"));
            diagnostics.push(problem.hint(format!("write it under `{other}`")));
        }
        Some((Addressing::Auto, span)) if v4 => {
            diagnostics.push(wrong(span, "`auto` is for `ip6` only".to_owned()).hint("write `dhcp`"));
        }
        _ => {}
    }
    if let Some(gateway) = gateway.filter(|gateway| gateway.0.is_ipv4() != v4) {
        diagnostics.push(wrong(gateway.span, format!("this gateway is not an {version} address")));
    }
}

/// The first and the last address of an IPv4 network belong to nobody.
fn usable(cidr: Cidr, span: Span, name: &str, diagnostics: &mut Diagnostics) {
    if !cidr.address.is_ipv4() || cidr.prefix > 30 {
        return;
    }
    let size = 1_u128 << (32 - u32::from(cidr.prefix));
    let host = number(cidr.address) % size;
    if host == 0 || host == size - 1 {
        let which = if host == 0 { "network" } else { "broadcast" };
        let message =
            format!("`{}` is the {which} address of its network and cannot be `{name}`'s", cidr.address);
        diagnostics.push(Diagnostic::error("bad-address", message).at(span));
    }
}

fn reachable(network: Cidr, span: Span, gateway: Spanned<Ip>, diagnostics: &mut Diagnostics) {
    if network.address.is_ipv4() != gateway.0.is_ipv4() {
        return;
    }
    // A link-local router is reachable from everywhere on the link.
    let link_local = matches!(gateway.0, std::net::IpAddr::V6(address) if address.is_unicast_link_local());
    if gateway.0 == network.address {
        let problem = Diagnostic::error("bad-address", "the gateway is the machine's own address");
        diagnostics.push(problem.at(gateway.span).also(span, "the address"));
    } else if !link_local && !network.contains(gateway.0) {
        let message = format!("the gateway `{gateway}` lies outside `{network}`");
        let problem = Diagnostic::error("outside-cidr", message).at(gateway.span);
        diagnostics.push(problem.also(span, "the network of this address"));
    }
}

fn of_cluster(cluster: &Cluster, stack: &str, diagnostics: &mut Diagnostics) {
    let Some(network) = &cluster.cluster.network else { return };
    let cidr = network.cidr;
    let inside = |address: std::net::IpAddr, what: String, span: Span| {
        let problem =
            Diagnostic::error("outside-cidr", format!("{what} lies outside `{}`", cidr.value)).at(span);
        (!cidr.contains(address)).then(|| problem.also(cidr.span, "the cluster's network"))
    };
    if let Some(gateway) = network.gateway {
        diagnostics.extend(inside(gateway.0, format!("the gateway `{gateway}`"), gateway.span));
    }
    if let Some(vip) = network.vip {
        diagnostics.extend(inside(vip.0, format!("the virtual address `{vip}`"), vip.span));
    }
    // What is wrong with the topology itself is reported where the guests are collected.
    let mut reported = Diagnostics::new();
    for machine in cluster.machines(stack, &mut reported) {
        let Some(address) = machine.address else { continue };
        if cluster.asks_dhcp(&machine) && address.value.is_ipv6() {
            let message = format!("`{}` cannot get the address `{}` from DHCP", machine.name, address.value);
            let hint =
                "only IPv4 addresses are reserved for a hardware address; leave `dhcp` out for this machine";
            diagnostics.push(Diagnostic::error("bad-address", message).at(address.span).hint(hint));
        }
        let what = format!("the address `{}` of `{}`", address.value, machine.name);
        match inside(address.value, what, address.span) {
            Some(problem) => diagnostics.push(problem),
            None => usable(cidr.with_address(address.value), address.span, &machine.name, diagnostics),
        }
        for (other, what) in [(network.vip, "the virtual address"), (network.gateway, "the gateway")] {
            if let Some(other) = other.filter(|other| other.0 == address.value) {
                let message = format!("`{}` has the address of {what}, `{other}`", machine.name);
                let problem = Diagnostic::error("ip-collision", message).at(address.span);
                diagnostics.push(problem.also(other.span, what));
            }
        }
    }
}
