//! Guests by the name that others call them: one, all of an `each`, or one entry of it.

use strata_yaml::{Map, Partial};

use crate::machine::container::Container;
use crate::machine::vm::Vm;
use crate::stack::Stack;

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named<'a> {
    /// The keys of the guests, in the order they were written.
    pub keys: Vec<&'a str>,
    /// The name is of an `each`, which is several guests however many entries it has.
    pub is_group: bool,
}

impl Stack {
    /// The VMs that a name stands for: `desk-alice`, `desk.alice`, or all of `desk`.
    pub fn vms_named(&self, name: &str) -> Option<Named<'_>> {
        named(&self.vms, |vm: &Vm| &vm.each, name)
    }

    /// The same of containers.
    pub fn containers_named(&self, name: &str) -> Option<Named<'_>> {
        named(&self.containers, |container: &Container| &container.each, name)
    }
}

fn named<'a, T>(
    guests: &'a Map<T>,
    each: impl Fn(&'a T) -> &'a Map<Partial<T>>,
    name: &str,
) -> Option<Named<'a>> {
    if let Some((key, _)) = guests.entry(name) {
        return Some(Named { keys: vec![key.as_str()], is_group: false });
    }
    let mut keys = Vec::new();
    for (key, guest) in guests {
        let Some(entry) = each(guest).keys().next() else { continue };
        let Some(group) = key.strip_suffix(entry).and_then(|group| group.strip_suffix('-')) else { continue };
        if name == group {
            keys.push(key.as_str());
        } else if name.strip_prefix(group).and_then(|rest| rest.strip_prefix('.')) == Some(entry) {
            return Some(Named { keys: vec![key.as_str()], is_group: false });
        }
    }
    // A guest that could not be read is there all the same.
    if keys.is_empty() {
        return guests.names(name).then(|| Named { keys: Vec::new(), is_group: false });
    }
    Some(Named { keys, is_group: true })
}
