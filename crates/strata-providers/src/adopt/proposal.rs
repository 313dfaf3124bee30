//! What an adoption would write: the files of a repository with new guests in them.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value as Json};
use strata_adopt::{StackDefaults, Written};
use strata_blueprint::{kinds, vmid_of};
use strata_proxmox::LiveGuest;
use strata_resource::Address;
use strata_session::{SessionError, Workspace};
use strata_source::EffectiveStack;
use strata_source::stack::{Stack, StackProxmox};
use strata_yaml::Key;
use strata_yaml::edit::{self, Step};

use super::refusals::{refuse_condition, refuse_mark, refuse_state, section};
use crate::orphans::States;

/// A file as it is and as it would be. One that is not there yet is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEdit {
    pub before: String,
    pub after: String,
}

impl FileEdit {
    /// Writes it whole or not at all, and only over what was shown.
    pub fn write(&self, root: &Path, path: &str) -> Result<(), SessionError> {
        let place = root.join(path);
        let failed = |error: std::io::Error| {
            SessionError::failed(format!("cannot write `{path}`: {error}")).because(error)
        };
        let now = match std::fs::read_to_string(&place) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(failed(error)),
        };
        if now != self.before {
            return Err(SessionError::refused(format!("`{path}` was changed meanwhile"))
                .hint("run the command again: it reads the file as it is now"));
        }
        if let Some(folder) = place.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        strata_secrets::replace(&place, self.after.as_bytes()).map_err(failed)
    }
}

/// One guest that can be adopted.
#[derive(Debug, Clone)]
pub struct Proposed {
    pub vmid: u32,
    /// ``VM 9100 `db` on `pve2` ``.
    pub described: String,
    /// Its YAML is new; otherwise the source has it already.
    pub is_written: bool,
    /// What is live and the YAML does not say, one line each.
    pub notes: Vec<String>,
    pub(super) proof: String,
}

/// One guest that cannot be adopted.
#[derive(Debug, Clone)]
pub struct LeftOut {
    pub vmid: u32,
    /// As far as it is known what it is.
    pub described: String,
    /// What it would have been called.
    pub address: Option<Address>,
    pub error: SessionError,
}

/// What would be written.
#[derive(Debug, Default)]
pub struct Proposal {
    /// By path from the root of the repository.
    pub files: BTreeMap<String, FileEdit>,
    pub adopted: BTreeMap<Address, Proposed>,
    /// In the order of their VMIDs.
    pub left_out: Vec<LeftOut>,
    /// Guests of the target that are managed already.
    pub managed: usize,
    /// Whose the new entries are, by file, section and key.
    pub(super) entries: BTreeMap<(String, String, String), Address>,
}

impl Proposal {
    /// The stacks that get a guest.
    pub(super) fn stacks(&self) -> Vec<String> {
        let mut names: Vec<String> = self.adopted.keys().map(|address| address.stack().to_owned()).collect();
        names.dedup();
        names
    }
}

/// A guest that was read, and as what it is wanted.
pub(super) struct Candidate {
    pub(super) address: Address,
    pub(super) target: String,
    pub(super) guest: LiveGuest,
}

/// The stack of an address in the environment of this run.
pub(crate) fn stack_of<'w>(workspace: &'w Workspace, name: &str) -> Option<&'w EffectiveStack> {
    workspace.repository().stack(name, workspace.surroundings().environment.as_deref())
}

/// The guests that the source has, stack by stack.
#[derive(Default)]
pub(super) struct Drawn(BTreeMap<String, BTreeMap<Address, u32>>);

impl Drawn {
    pub(super) fn guests(
        &mut self,
        workspace: &Workspace,
        stack: &EffectiveStack,
    ) -> Result<&BTreeMap<Address, u32>, SessionError> {
        if !self.0.contains_key(&stack.name) {
            let blueprint = workspace.blueprint_without_secrets(stack)?;
            let guests = blueprint.graph.iter();
            let guests = guests.filter_map(|resource| Some((resource.address.clone(), vmid_of(resource)?)));
            self.0.insert(stack.name.clone(), guests.collect());
        }
        Ok(self.0.entry(stack.name.clone()).or_default())
    }
}

/// Guests while they are gathered, and then the files with them.
pub(super) struct Draft<'w> {
    workspace: &'w Workspace,
    states: &'w States,
    drawn: &'w mut Drawn,
    adopted: BTreeMap<Address, Proposed>,
    /// By the path of the file.
    new: BTreeMap<String, Vec<(&'w Candidate, Key)>>,
}

impl<'w> Draft<'w> {
    pub(super) fn new(workspace: &'w Workspace, states: &'w States, drawn: &'w mut Drawn) -> Self {
        Self { workspace, states, drawn, adopted: BTreeMap::new(), new: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, candidate: &'w Candidate) -> Result<(), SessionError> {
        let Candidate { address, target, guest } = candidate;
        let section = section(address, guest)?;
        let stack = stack_of(self.workspace, address.stack());
        if let Some(stack) = stack
            && stack.machines().is_none()
        {
            let message = format!("`{}` is no stack of machines", address.stack());
            return Err(
                SessionError::refused(message).hint("guests are adopted into `stacks/<name>/stack.yaml`")
            );
        }
        if stack.is_some_and(|stack| !stack.is_default_environment) {
            let message = format!("`{address}` is in an environment that only an overlay describes");
            return Err(SessionError::refused(message).hint("adopt it into a stack of its own, without `-e`"));
        }
        refuse_state(self.states, address, guest, target)?;
        refuse_mark(self.workspace, self.states, address, guest)?;
        refuse_condition(guest)?;
        let drawn = match stack {
            Some(stack) => self.drawn.guests(self.workspace, stack)?.get(address).copied(),
            None => None,
        };
        if let Some(own) = drawn.filter(|own| *own != guest.vmid) {
            let message = format!("`{address}` is in the source already, with the VMID {own}");
            return Err(SessionError::refused(message).hint("name another address"));
        }
        if drawn.is_none() {
            let path = match stack {
                Some(stack) => stack.path.clone(),
                None => format!("stacks/{}/stack.yaml", address.stack()),
            };
            self.new.entry(path).or_default().push((candidate, section));
        }
        let (described, proof) = (guest.described.clone(), guest.proof.clone());
        let notes = guest.notes.clone();
        let one = Proposed { vmid: guest.vmid, described, is_written: drawn.is_none(), notes, proof };
        self.adopted.insert(address.clone(), one);
        Ok(())
    }

    /// The files, and the guests that could not be put into theirs.
    pub(super) fn finish(mut self) -> (Proposal, BTreeMap<Address, SessionError>) {
        let (mut files, mut entries, mut refused) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for (path, new) in std::mem::take(&mut self.new) {
            entries.extend(new.iter().map(|(one, section)| {
                let place = (path.clone(), section.name().to_owned(), one.address.name().to_owned());
                (place, one.address.clone())
            }));
            match self.write(&path, &new) {
                Ok(edit) => drop(files.insert(path, edit)),
                Err(error) => {
                    refused.extend(new.iter().map(|(one, _)| (one.address.clone(), error.clone())));
                }
            }
        }
        (Proposal { files, entries, adopted: self.adopted, ..Proposal::default() }, refused)
    }

    /// Puts entries into the file of their stack.
    fn write(&mut self, path: &str, new: &[(&Candidate, Key)]) -> Result<FileEdit, SessionError> {
        let cannot = |error: edit::EditError| {
            SessionError::refused(format!("`{path}` cannot be edited: {error}"))
                .hint("write the entry by hand")
        };
        let stack = new.first().and_then(|(one, _)| stack_of(self.workspace, one.address.stack()));
        let (before, begun, defaults) = self.begin(path, stack, new)?;
        let mut sections: Vec<(Key, Map<String, Json>)> = Vec::new();
        for (Candidate { address, guest, .. }, section) in new {
            let Written { yaml, notes } = match address.kind() == kinds::CONTAINER {
                true => strata_adopt::container(address.name(), &guest.spec, &defaults),
                false => strata_adopt::vm(address.name(), &guest.spec, &defaults),
            };
            if let Some(one) = self.adopted.get_mut(address) {
                one.notes.extend(notes);
            }
            match sections.iter_mut().find(|(key, _)| key == section) {
                Some((_, entries)) => drop(entries.insert(address.name().to_owned(), yaml)),
                None => sections.push((*section, Map::from_iter([(address.name().to_owned(), yaml)]))),
            }
        }
        let after = sections.iter().try_fold(begun, |text, (section, entries)| {
            edit::insert_all(&text, &[Step::from(section.name())], entries).map_err(cannot)
        });
        Ok(FileEdit { before, after: after? })
    }

    /// A file as it is and as it is begun, and what it says for all of its guests.
    fn begin(
        &self,
        path: &str,
        stack: Option<&EffectiveStack>,
        new: &[(&Candidate, Key)],
    ) -> Result<(String, String, StackDefaults), SessionError> {
        let place = self.workspace.root().join(path);
        if let Some(machines) = stack.and_then(EffectiveStack::machines) {
            let before = std::fs::read_to_string(&place)
                .map_err(|error| SessionError::failed(format!("cannot read `{path}`: {error}")))?;
            return Ok((before.clone(), before, stack_defaults(machines)));
        }
        if place.exists() {
            return Err(SessionError::refused(format!(
                "`{path}` is there, and is the file of another stack"
            )));
        }
        let specs: Vec<_> = new.iter().map(|(one, _)| &one.guest.spec).collect();
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
