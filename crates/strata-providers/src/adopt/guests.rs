//! Guests: what speaks against one, and how they are put into the files of their stacks.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};
use strata_adopt::{StackDefaults, Written};
use strata_blueprint::kinds;
use strata_proxmox::LiveGuest;
use strata_resource::Address;
use strata_session::SessionError;
use strata_source::EffectiveStack;
use strata_source::stack::{Stack, StackProxmox};
use strata_yaml::Key;
use strata_yaml::edit::{self, Step};

use super::proposal::{Candidate, Draft, FileEdit, Filled, Live, cannot_edit, stack_of};
use super::refusals::{refuse_condition, refuse_mark, refuse_state, section};

impl Draft<'_> {
    /// The file that a new stack would get, if nothing speaks against the guest.
    pub(super) fn check_guest(
        &mut self,
        address: &Address,
        target: &str,
        guest: &LiveGuest,
    ) -> Result<String, SessionError> {
        section(address, guest)?;
        let stack = stack_of(self.workspace, address.stack());
        if stack.is_some_and(|stack| stack.machines().is_none()) {
            let message = format!("`{}` is no stack of machines", address.stack());
            return Err(
                SessionError::refused(message).hint("guests are adopted into `stacks/<name>/stack.yaml`")
            );
        }
        refuse_state(self.states, address, guest, target)?;
        refuse_mark(self.workspace, self.states, address, guest)?;
        refuse_condition(guest)?;
        if guest.linked_to.is_some() && self.templates.is_none() {
            self.templates = Some(self.templates_of_source(target)?);
        }
        Ok(format!("stacks/{}/stack.yaml", address.stack()))
    }

    /// Puts guests into the file of their stack.
    pub(super) fn write_guests(&mut self, path: &str, new: &[&Candidate]) -> Result<Filled, SessionError> {
        let guests: Vec<(&Candidate, &LiveGuest)> = new
            .iter()
            .filter_map(|one| match &one.live {
                Live::Guest(guest) => Some((*one, guest)),
                Live::Object(_) => None,
            })
            .collect();
        let stack = new.first().and_then(|one| stack_of(self.workspace, one.address.stack()));
        let (before, begun, defaults) = self.begin(path, stack, &guests)?;
        let mut sections: Vec<(Key, Map<String, Json>)> = Vec::new();
        let mut places = Vec::new();
        for (Candidate { address, .. }, guest) in &guests {
            let section = section(address, guest)?;
            let key = address.name();
            let Written { yaml, notes } = match address.kind() {
                kinds::CONTAINER => strata_adopt::container(key, &guest.spec, &defaults),
                kinds::TEMPLATE => strata_adopt::template(key, &guest.spec, &defaults),
                _ => {
                    let template = guest.linked_to.and_then(|base| self.template(base, address));
                    strata_adopt::linked_vm(key, &guest.spec, &defaults, template.as_deref())
                }
            };
            self.note(address, notes);
            places.push(vec![Step::from(section.name()), Step::from(address.name())]);
            match sections.iter_mut().find(|(key, _)| *key == section) {
                Some((_, entries)) => drop(entries.insert(address.name().to_owned(), yaml)),
                None => sections.push((section, Map::from_iter([(address.name().to_owned(), yaml)]))),
            }
        }
        let after = sections.iter().try_fold(begun, |text, (section, entries)| {
            edit::insert_all(&text, &[Step::from(section.name())], entries).map_err(cannot_edit(path))
        });
        Ok((FileEdit { before, after: after? }, places))
    }

    fn templates_of_source(&mut self, target: &str) -> Result<BTreeMap<u32, Address>, SessionError> {
        let mut found = BTreeMap::new();
        let repository = self.workspace.repository();
        for stack in repository.effective().filter(|stack| stack.is_default_environment) {
            let here = repository.target(stack).is_some_and(|(name, _)| name == target);
            if here && stack.machines().is_some_and(|machines| !machines.templates.is_empty()) {
                let known = self.drawn.of(self.workspace, stack)?.iter();
                let templates = known.filter(|(address, _)| address.kind() == kinds::TEMPLATE);
                found.extend(
                    templates.filter_map(|(address, vmid)| Some((vmid.parse().ok()?, address.clone()))),
                );
            }
        }
        Ok(found)
    }

    /// What a guest calls the template with this VMID, if it is adopted too or in the source.
    fn template(&self, base: u32, guest: &Address) -> Option<String> {
        let adopted =
            self.adopted.iter().filter(|(_, one)| one.vmid == Some(base)).map(|(address, _)| address);
        let address =
            adopted.chain(self.templates.as_ref()?.get(&base)).find(|own| own.kind() == kinds::TEMPLATE)?;
        Some(match address.stack() == guest.stack() {
            true => address.name().to_owned(),
            false => format!("{}/{}", address.stack(), address.name()),
        })
    }

    /// A file as it is and as it is begun, and what it says for all of its guests.
    fn begin(
        &self,
        path: &str,
        stack: Option<&EffectiveStack>,
        new: &[(&Candidate, &LiveGuest)],
    ) -> Result<(String, String, StackDefaults), SessionError> {
        if let Some(machines) = stack.and_then(EffectiveStack::machines) {
            let before = self.read(path)?;
            return Ok((before.clone(), before, stack_defaults(machines)));
        }
        self.refuse_other(path)?;
        let specs: Vec<_> = new.iter().map(|(_, guest)| &guest.spec).collect();
        let defaults = StackDefaults::of(&specs);
        let target = new.first().map(|(one, _)| one.target.as_str()).unwrap_or_default();
        let mut proxmox = Map::from_iter([(StackProxmox::target.name().to_owned(), Json::from(target))]);
        for (key, value) in [
            (StackProxmox::node, &defaults.node),
            (StackProxmox::storage, &defaults.disk_storage),
            (StackProxmox::pool, &defaults.pool),
        ] {
            proxmox.extend(value.as_deref().map(|value| (key.name().to_owned(), value.into())));
        }
        let begun = edit::set("", &[Step::from(Stack::proxmox.name())], &Json::Object(proxmox))
            .map_err(|error| SessionError::failed(format!("`{path}` cannot be made: {error}")))?;
        Ok((String::new(), begun, defaults))
    }
}

pub(crate) fn stack_defaults(stack: &Stack) -> StackDefaults {
    let proxmox = stack.proxmox.as_ref();
    let text = |value: &strata_yaml::Spanned<String>| value.value.clone();
    StackDefaults {
        node: proxmox.and_then(|proxmox| proxmox.node.as_ref()).map(text),
        pool: proxmox.and_then(|proxmox| proxmox.pool.as_ref()).map(text),
        disk_storage: proxmox.and_then(|proxmox| proxmox.storage.as_ref()?.disk.as_ref()).map(text),
    }
}
