//! From an entry of a stack to the machines that it stands for: names, numbers, nodes, addresses.

use strata_yaml::Spanned;

use crate::machine::container::Container;
use crate::machine::guest::Guest;
use crate::machine::template::Template;
use crate::machine::vm::Vm;
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
}

impl<T> Instance<'_, T> {
    /// How many steps this machine is from the first of its entry.
    pub fn offset(&self) -> u32 {
        self.index.unwrap_or(0)
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
        self.vms.iter().flat_map(|(key, vm)| self.instances(key, vm, &vm.guest)).collect()
    }

    pub fn container_instances(&self) -> Vec<Instance<'_, Container>> {
        self.containers
            .iter()
            .flat_map(|(key, container)| self.instances(key, container, &container.guest))
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
            let node = template.node.clone().or_else(|| self.node_of(0));
            let (name, vm_id) = (base.value.clone(), template.vm_id.value);
            return vec![Instance { key, spec: template, index: None, name, vm_id, node }];
        }
        let one = |(index, node): (u32, &Spanned<String>)| Instance {
            key,
            spec: template,
            index: Some(index),
            name: format!("{base}-{node}"),
            vm_id: template.vm_id.value.saturating_add(index),
            node: Some(node.clone()),
        };
        (0..).zip(&template.nodes).map(one).collect()
    }

    fn instances<'a, T>(&self, key: &'a Spanned<String>, spec: &'a T, guest: &Guest) -> Vec<Instance<'a, T>> {
        let base = guest.name.as_ref().unwrap_or(key);
        let one = |index: Option<u32>| Instance {
            key,
            spec,
            index,
            name: index.map_or_else(|| base.value.clone(), |index| format!("{base}-{}", index + 1)),
            vm_id: guest.vm_id.value.saturating_add(index.unwrap_or(0)),
            node: guest.node.clone().or_else(|| self.node_of(index.unwrap_or(0))),
        };
        match guest.count {
            None => vec![one(None)],
            Some(count) => (0..count).map(|index| one(Some(index))).collect(),
        }
    }

    /// The stack's node for the machine with this index.
    fn node_of(&self, index: u32) -> Option<Spanned<String>> {
        let proxmox = self.proxmox.as_ref()?;
        if let Some(node) = &proxmox.node {
            return Some(node.clone());
        }
        let nodes = &proxmox.nodes;
        (!nodes.is_empty()).then(|| nodes[index as usize % nodes.len()].clone())
    }
}
