//! From an entry of a stack to the machines that it stands for: names, numbers, nodes, addresses.

use strata_yaml::Spanned;

use crate::machine::container::Container;
use crate::machine::guest::Guest;
use crate::machine::template::Template;
use crate::machine::vm::Vm;
use crate::spread::{Seat, spread};
use crate::stack::Stack;
use crate::value::address::{Addressing, Mac, advance};

/// One machine of an entry.
#[derive(Debug, Clone)]
pub struct Instance<'a, T> {
    /// The entry's key.
    pub key: &'a Spanned<String>,
    pub spec: &'a T,
    /// Counted from 0; `None` where the entry has no `count`.
    pub index: Option<u32>,
    pub name: String,
    pub vm_id: u32,
    /// The Proxmox node, where the source says one.
    pub node: Option<Spanned<String>>,
    /// The nodes that it may be put on, where the stack names a list and none for it alone.
    pub over: &'a [Spanned<String>],
}

impl<T> Instance<'_, T> {
    /// How many steps this machine is from the first of its entry.
    pub fn offset(&self) -> u32 {
        self.index.unwrap_or(0)
    }

    /// Machines of one count are kept apart.
    pub fn seat(&self) -> Seat<'_> {
        let written = self.node.as_ref().filter(|_| self.over.is_empty());
        Seat { group: self.key.as_str(), written, over: self.over }
    }

    /// What an interface of this machine gets: machines of one entry take one address after the other.
    pub fn addressing(&self, first: Addressing) -> Option<Addressing> {
        match first {
            Addressing::Static(cidr) => {
                let address = advance(cidr.address, self.offset().into())?;
                Some(Addressing::Static(cidr.with_address(address)))
            }
            other => Some(other),
        }
    }

    /// A hardware address that was written down; one address cannot serve several machines.
    pub fn mac(&self, written: Option<Mac>) -> Option<Mac> {
        written.filter(|_| self.offset() == 0)
    }
}

impl Stack {
    pub fn vm_instances(&self) -> Vec<Instance<'_, Vm>> {
        let mut nodes = self.placed().into_iter();
        self.vms.iter().flat_map(|(key, vm)| self.instances(key, vm, &vm.guest, &mut nodes)).collect()
    }

    pub fn container_instances(&self) -> Vec<Instance<'_, Container>> {
        let before: usize = self.vms.values().map(|vm| machines(&vm.guest)).sum();
        let mut nodes = self.placed().into_iter().skip(before);
        self.containers
            .iter()
            .flat_map(|(key, container)| self.instances(key, container, &container.guest, &mut nodes))
            .collect()
    }

    /// The templates: one for each of `nodes`, where those are given.
    pub fn template_instances(&self) -> Vec<Instance<'_, Template>> {
        self.templates.iter().flat_map(|(key, template)| self.templates_of(key, template)).collect()
    }

    fn templates_of<'a>(
        &self,
        key: &'a Spanned<String>,
        template: &'a Template,
    ) -> Vec<Instance<'a, Template>> {
        let base = template.name.as_ref().unwrap_or(key);
        if template.nodes.is_empty() {
            let node = template.node.clone().or_else(|| self.first_node().cloned());
            let (name, vm_id) = (base.value.clone(), template.vm_id.value);
            return vec![Instance { key, spec: template, index: None, name, vm_id, node, over: &[] }];
        }
        let one = |(index, node): (u32, &Spanned<String>)| Instance {
            key,
            spec: template,
            index: Some(index),
            name: format!("{base}-{node}"),
            vm_id: template.vm_id.value.saturating_add(index),
            node: Some(node.clone()),
            over: &[],
        };
        (0..).zip(&template.nodes).map(one).collect()
    }

    fn instances<'a, T>(
        &'a self,
        key: &'a Spanned<String>,
        spec: &'a T,
        guest: &'a Guest,
        nodes: &mut dyn Iterator<Item = Option<&'a Spanned<String>>>,
    ) -> Vec<Instance<'a, T>> {
        let base = guest.name.as_ref().unwrap_or(key);
        let over = self.seat(key, guest).over;
        let mut one = |index: Option<u32>| Instance {
            key,
            spec,
            index,
            name: index.map_or_else(|| base.value.clone(), |index| format!("{base}-{}", index + 1)),
            vm_id: guest.vm_id.value.saturating_add(index.unwrap_or(0)),
            node: nodes.next().flatten().cloned(),
            over,
        };
        match guest.count {
            None => vec![one(None)],
            Some(count) => (0..count).map(|index| one(Some(index))).collect(),
        }
    }

    /// The node of each machine: VMs, then containers.
    fn placed(&self) -> Vec<Option<&Spanned<String>>> {
        let vms = self.vms.iter().map(|(key, vm)| (key, &vm.guest));
        let containers = self.containers.iter().map(|(key, container)| (key, &container.guest));
        let seats = vms
            .chain(containers)
            .flat_map(|(key, guest)| std::iter::repeat_n(self.seat(key, guest), machines(guest)));
        spread(&seats.collect::<Vec<_>>(), |_| None)
    }

    /// Where the machines of an entry may be. One without a `count` is on the first node of a list.
    fn seat<'a>(&'a self, key: &'a Spanned<String>, guest: &'a Guest) -> Seat<'a> {
        let proxmox = self.proxmox.as_ref();
        let whole = || proxmox?.node.as_ref().or_else(|| self.first_node().filter(|_| guest.count.is_none()));
        let written = guest.node.as_ref().or_else(whole);
        let over = proxmox.filter(|_| written.is_none()).map_or(&[][..], |proxmox| &proxmox.nodes);
        Seat { group: key.as_str(), written, over }
    }

    fn first_node(&self) -> Option<&Spanned<String>> {
        let proxmox = self.proxmox.as_ref()?;
        proxmox.node.as_ref().or_else(|| proxmox.nodes.first())
    }
}

fn machines(guest: &Guest) -> usize {
    guest.count.map_or(1, |count| count as usize)
}
