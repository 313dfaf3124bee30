//! Every guest of every stack in every environment, with what it must not share.

use std::net::IpAddr;

use strata_diagnostics::{Diagnostics, Span};

use crate::cluster::Cluster;
use crate::machine::container::ContainerNic;
use crate::machine::network::Nic;
use crate::repository::{EffectiveStack, Model, Repository};
use crate::stack::Stack;
use crate::stack::expand::Instance;
use crate::value::address::{Addressing, Mac};

pub(super) struct Guest<'a> {
    pub(super) stack: &'a EffectiveStack,
    /// The Proxmox it lives on; `None` where that is not known.
    pub(super) endpoint: Option<String>,
    /// The target's name, for messages.
    pub(super) target: &'a str,
    pub(super) name: String,
    pub(super) name_span: Span,
    pub(super) vm_id: Option<(u32, Span)>,
    pub(super) macs: Vec<(Mac, Span)>,
    pub(super) addresses: Vec<GuestAddress>,
}

#[derive(Clone, Copy)]
pub(super) struct GuestAddress {
    pub(super) address: IpAddr,
    pub(super) vlan: Option<u16>,
    pub(super) span: Span,
}

/// What two kinds of network device have in common.
struct Device {
    mac: Option<(Mac, Span)>,
    vlan: Option<u16>,
    addressing: Vec<(Addressing, Span)>,
}

impl From<&Nic> for Device {
    fn from(nic: &Nic) -> Self {
        let addressing = nic.ip.iter().chain(&nic.ip6).map(|ip| (ip.value, ip.span)).collect();
        Self { mac: nic.mac.map(|mac| (mac.value, mac.span)), vlan: nic.vlan, addressing }
    }
}

impl From<&ContainerNic> for Device {
    fn from(nic: &ContainerNic) -> Self {
        let addressing = nic.ip.iter().chain(&nic.ip6).map(|ip| (ip.value, ip.span)).collect();
        Self { mac: nic.mac.map(|mac| (mac.value, mac.span)), vlan: nic.vlan, addressing }
    }
}

/// Collects them; what is wrong with a cluster's topology is reported on the way.
pub(super) fn all<'a>(repository: &'a Repository, diagnostics: &mut Diagnostics) -> Vec<Guest<'a>> {
    let mut guests = Vec::new();
    for stack in repository.effective() {
        let home = Home {
            stack,
            endpoint: repository.proxmox_endpoint(stack),
            target: repository.target(stack).map_or("", |(name, _)| name),
        };
        match &stack.model {
            Model::Machines(machines) => guests.extend(home.machines(machines)),
            Model::Cluster(cluster) => guests.extend(home.cluster(cluster, diagnostics)),
            Model::Hypervisor(_) | Model::Tofu(_) | Model::Broken | Model::Removed => {}
        }
    }
    guests
}

/// Where the guests of one stack live.
struct Home<'a> {
    stack: &'a EffectiveStack,
    endpoint: Option<String>,
    target: &'a str,
}

impl<'a> Home<'a> {
    fn machines(&self, stack: &'a Stack) -> Vec<Guest<'a>> {
        let mut guests = Vec::new();
        for template in stack.template_instances() {
            let named = template.spec.name.as_ref().map(|name| name.span);
            guests.push(self.instance(&template, template.spec.vm_id.span, named, Vec::new()));
        }
        for vm in stack.vm_instances() {
            let devices = vm.spec.hardware.network.iter().map(|(_, nic)| nic.into()).collect();
            let named = vm.spec.guest.name.as_ref().map(|name| name.span);
            guests.push(self.instance(&vm, vm.spec.guest.vm_id.span, named, devices));
        }
        for container in stack.container_instances() {
            let devices = container.spec.network.iter().map(|(_, nic)| nic.into()).collect();
            let named = container.spec.guest.name.as_ref().map(|name| name.span);
            guests.push(self.instance(&container, container.spec.guest.vm_id.span, named, devices));
        }
        guests
    }

    fn instance<T>(
        &self,
        one: &Instance<'_, T>,
        id: Span,
        named: Option<Span>,
        devices: Vec<Device>,
    ) -> Guest<'a> {
        let mut addresses = Vec::new();
        for device in &devices {
            for (addressing, span) in &device.addressing {
                let address = one.addressing(*addressing).and_then(|addressing| addressing.address());
                let vlan = device.vlan;
                addresses.extend(address.map(|cidr| GuestAddress {
                    address: cidr.address,
                    vlan,
                    span: *span,
                }));
            }
        }
        Guest {
            stack: self.stack,
            endpoint: self.endpoint.clone(),
            target: self.target,
            name: one.name.clone(),
            name_span: named.unwrap_or(one.key.span),
            vm_id: Some((one.vm_id, id)),
            // Several machines with one written MAC are reported where it is written.
            macs: devices.iter().filter_map(|device| device.mac.filter(|_| one.offset() == 0)).collect(),
            addresses,
        }
    }

    fn cluster(&self, cluster: &'a Cluster, diagnostics: &mut Diagnostics) -> Vec<Guest<'a>> {
        let vlan = cluster.cluster.network.as_ref().and_then(|network| network.vlan);
        let mut guests = Vec::new();
        for machine in cluster.machines(&self.stack.name, diagnostics) {
            let address = machine.address;
            guests.push(Guest {
                stack: self.stack,
                endpoint: self.endpoint.clone(),
                target: self.target,
                name: machine.name,
                name_span: machine.span,
                // Numbers that were counted out have no place but the count.
                vm_id: machine.vm_id.map(|id| (id.value, machine.span)),
                macs: machine.mac.iter().map(|mac| (mac.value, mac.span)).collect(),
                addresses: address
                    .iter()
                    .map(|address| GuestAddress { address: address.value, vlan, span: address.span })
                    .collect(),
            });
        }
        guests
    }
}
