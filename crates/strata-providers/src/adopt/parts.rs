//! What is about guests: high availability and replication stand in the entries of the guests, rules of high availability beside them.

use std::collections::{BTreeMap, BTreeSet};

use strata_adopt::{guests_of, is_of_guest, object_name, put_part};
use strata_blueprint::kinds;
use strata_proxmox::DatacenterObject;
use strata_resource::{Address, Value};
use strata_session::SessionError;
use strata_source::stack::expand::Instance;
use strata_source::stack::{HaRule, Stack};
use strata_yaml::Key;
use strata_yaml::edit::Step;

use super::objects::not_written;
use super::proposal::{Candidate, Draft, Filled, Live, cannot_edit, stack_of};

/// Whether an object stands with guests.
pub(super) fn is_about_guests(object: &DatacenterObject) -> bool {
    !guests_of(object.kind.table(), &object.spec).is_empty()
}

/// What an object is called: it is in the stack of its guests, which is one.
pub(super) fn address(
    guests: &BTreeMap<u32, Address>,
    object: &DatacenterObject,
) -> Result<Address, SessionError> {
    let table = object.kind.table();
    let mut stacks = BTreeSet::new();
    for vmid in guests_of(table, &object.spec) {
        let guest = guests.get(&vmid).ok_or_else(|| not_adopted(object, vmid))?;
        stacks.insert(guest.stack());
    }
    match stacks.iter().copied().collect::<Vec<_>>().as_slice() {
        [stack] => Ok(Address::new(None, stack, object.kind, &object_name(table, &object.spec))),
        several => {
            let message =
                format!("{} is about guests of several stacks: `{}`", object.described, several.join("`, `"));
            Err(SessionError::refused(message)
                .hint("a rule stands in the stack of its guests: bring them into one, then adopt it"))
        }
    }
}

fn not_adopted(object: &DatacenterObject, vmid: u32) -> SessionError {
    SessionError::refused(format!("{}: its guest {vmid} is not adopted", object.described))
        .hint("adopt the guest first: `strata adopt ADDRESS=VMID`")
}

/// Where the entry of a guest is, and whether it is that of one guest alone.
struct GuestEntry {
    section: Key,
    key: String,
    alone: bool,
}

impl Draft<'_> {
    /// Where the guests of an object stand, if they are in the stack of its address.
    pub(super) fn entries_of(
        &self,
        address: &Address,
        object: &DatacenterObject,
    ) -> Result<Vec<(Key, String)>, SessionError> {
        let table = object.kind.table();
        let mut entries = Vec::new();
        for vmid in guests_of(table, &object.spec) {
            let entry = self.entry_of(address.stack(), vmid).ok_or_else(|| not_adopted(object, vmid))?;
            if is_of_guest(table) && !entry.alone {
                let message = format!(
                    "{}: its guest is one of several of `{}.{}`, which share their entry",
                    object.described, entry.section, entry.key
                );
                return Err(SessionError::refused(message)
                    .hint("write it into the entry by hand: it is for all of them"));
            }
            if !entries.contains(&(entry.section, entry.key.clone())) {
                entries.push((entry.section, entry.key));
            }
        }
        Ok(entries)
    }

    fn entry_of(&self, stack: &str, vmid: u32) -> Option<GuestEntry> {
        let new = self
            .adopted
            .iter()
            .find(|(address, one)| one.vmid == Some(vmid) && one.is_written && address.stack() == stack);
        if let Some((address, _)) = new {
            let section = match address.kind() {
                kinds::CONTAINER => Stack::containers,
                kinds::VM => Stack::vms,
                _ => return None,
            };
            return Some(GuestEntry { section, key: address.name().to_owned(), alone: true });
        }
        let machines = stack_of(self.workspace, stack)?.machines()?;
        fn entry<T>(section: Key, one: &Instance<'_, T>) -> GuestEntry {
            GuestEntry { section, key: one.key.value.clone(), alone: one.index.is_none() }
        }
        let vms = machines.vm_instances();
        let vm = vms.iter().find(|one| one.vm_id == vmid).map(|one| entry(Stack::vms, one));
        vm.or_else(|| {
            let containers = machines.container_instances();
            containers.iter().find(|one| one.vm_id == vmid).map(|one| entry(Stack::containers, one))
        })
    }

    /// Puts objects with their guests, whose entries the file has.
    pub(super) fn write_parts(
        &mut self,
        path: &str,
        filled: Filled,
        new: &[&Candidate],
    ) -> Result<Filled, SessionError> {
        let (mut edit, mut places) = filled;
        for candidate in new {
            let Live::Object(object) = &candidate.live else { continue };
            let entries = self.entries_of(&candidate.address, object)?;
            let mut spec = object.spec.clone();
            let mut entry = Vec::new();
            if is_of_guest(object.kind.table()) {
                let own = entries.iter().flat_map(|(section, key)| [section.name(), key.as_str()]);
                entry.extend(own.map(Step::from));
            } else {
                let named = entries.iter().map(|(section, key)| Value::Text(format!("{section}.{key}")));
                spec.insert(HaRule::guests.name().to_owned(), Value::List(named.collect()));
            }
            let written = strata_adopt::object(object.kind.table(), &spec)
                .ok_or_else(|| not_written(&object.described))?;
            self.note(&candidate.address, written.notes.clone());
            let (after, place) = put_part(&edit.after, &entry, &written).map_err(cannot_edit(path))?;
            edit.after = after;
            places.push(place);
        }
        Ok((edit, places))
    }
}
