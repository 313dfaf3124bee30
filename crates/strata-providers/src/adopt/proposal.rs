//! The files of a repository with new guests in them, and what speaks against a guest before anything is drawn.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};
use strata_adopt::StackDefaults;
use strata_blueprint::{kinds, vmid_of};
use strata_proxmox::LiveGuest;
use strata_resource::Address;
use strata_session::{SessionError, Workspace};
use strata_source::EffectiveStack;
use strata_source::stack::{Stack, StackProxmox};
use strata_yaml::Key;
use strata_yaml::edit::{self, Step};

use super::Wish;
use crate::orphans::{States, vmid};

/// A file as it is and as it would be. One that is not there yet is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEdit {
    pub before: String,
    pub after: String,
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

/// What would be written.
#[derive(Debug, Default)]
pub struct Proposal {
    /// By path from the root of the repository.
    pub files: BTreeMap<String, FileEdit>,
    pub adopted: BTreeMap<Address, Proposed>,
    pub refused: BTreeMap<Address, SessionError>,
}

impl Proposal {
    /// The stacks that get a guest.
    pub(super) fn stacks(&self) -> Vec<String> {
        let mut names: Vec<String> = self.adopted.keys().map(|address| address.stack().to_owned()).collect();
        names.dedup();
        names
    }
}

fn stack_of<'w>(workspace: &'w Workspace, address: &Address) -> Option<&'w EffectiveStack> {
    workspace.repository().stack(address.stack(), workspace.surroundings().environment.as_deref())
}

/// The target that a wish is about.
pub(super) fn target_of(workspace: &Workspace, wish: &Wish) -> Result<String, SessionError> {
    let stack = stack_of(workspace, &wish.address);
    let known = stack.and_then(|stack| workspace.repository().target(stack)).map(|(name, _)| name.to_owned());
    match (&wish.target, known) {
        (Some(asked), Some(known)) if *asked != known => Err(SessionError::refused(format!(
            "the stack `{}` is on the target `{known}`, not on `{asked}`",
            wish.address.stack()
        ))),
        (Some(asked), _) => Ok(asked.clone()),
        (None, Some(known)) => Ok(known),
        (None, None) => {
            let targets = &workspace.repository().settings.targets;
            let mut proxmox = targets.iter().filter(|(_, target)| target.proxmox.is_some());
            match (proxmox.next(), proxmox.next()) {
                (Some((name, _)), None) => Ok(name.value.clone()),
                _ => Err(SessionError::failed("which target the guest is on is not known")
                    .hint("name it with `--target`")),
            }
        }
    }
}

/// Files while guests are put into them.
pub(super) struct Draft<'w> {
    workspace: &'w Workspace,
    states: &'w States,
    proposal: Proposal,
}

impl<'w> Draft<'w> {
    pub(super) fn new(workspace: &'w Workspace, states: &'w States) -> Self {
        Self { workspace, states, proposal: Proposal::default() }
    }

    pub(super) fn finish(self) -> Proposal {
        self.proposal
    }

    pub(super) fn add(&mut self, wish: &Wish, target: &str, guest: &LiveGuest) -> Result<(), SessionError> {
        let address = &wish.address;
        let section = section(address, guest)?;
        let stack = stack_of(self.workspace, address);
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
        self.refuse_state(address, guest, target)?;
        self.refuse_mark(address, guest)?;
        refuse_condition(guest)?;
        let drawn = match stack {
            Some(stack) => self.workspace.blueprint_without_secrets(stack)?.graph.get(address).cloned(),
            None => None,
        };
        let mut notes = guest.notes.clone();
        let is_written = match drawn.as_ref().and_then(vmid_of) {
            Some(own) if own == guest.vmid => false,
            Some(own) => {
                let message = format!("`{address}` is in the source already, with the VMID {own}");
                return Err(SessionError::refused(message).hint("name another address"));
            }
            None => {
                notes.extend(self.write(address, section, stack, target, guest)?);
                true
            }
        };
        let (described, proof) = (guest.described.clone(), guest.proof.clone());
        let one = Proposed { vmid: guest.vmid, described, is_written, notes, proof };
        self.proposal.adopted.insert(address.clone(), one);
        Ok(())
    }

    /// A state that knows the address as another guest, or the guest under another address.
    fn refuse_state(&self, address: &Address, guest: &LiveGuest, target: &str) -> Result<(), SessionError> {
        let records = self.states.0.values().flat_map(|state| &state.document.resources);
        for (known, record) in records.filter(|(known, _)| strata_proxmox::kinds::is_guest(known.kind())) {
            let same = vmid(&record.spec) == Some(guest.vmid) && record.target == target;
            if known == address && !same {
                let message = format!("`{address}` is in the state already, as another guest");
                return Err(SessionError::refused(message).hint("name another address"));
            }
            if known != address && same {
                let message = format!("{} is managed already, as `{known}`", guest.described);
                return Err(SessionError::refused(message).hint(format!(
                    "`strata state mv {known} {address}` renames it, with its entry in the source"
                )));
            }
        }
        Ok(())
    }

    /// A mark of anybody else, or of another address, or of another guest.
    fn refuse_mark(&self, address: &Address, guest: &LiveGuest) -> Result<(), SessionError> {
        let Some(mark) = &guest.mark else { return Ok(()) };
        let described = &guest.described;
        if mark.vmid != guest.vmid {
            let message =
                format!("{described} is a copy: it carries the ownership mark of VMID {}", mark.vmid);
            return Err(SessionError::refused(message).hint("remove that line from its notes, then adopt it"));
        }
        match self.states.owner_of(self.workspace, mark)? {
            Some((_, owner)) if owner == *address => Ok(()),
            Some((_, owner)) => Err(SessionError::refused(format!(
                "{described} carries the ownership mark of `{owner}` in this repository"
            ))
            .hint(format!("`strata state recover {}` records it under that address", owner.stack()))),
            None => Err(SessionError::refused(format!(
                "{described} carries the ownership mark of another repository, as `{}`",
                mark.address
            ))
            .hint("remove it from the state there, and the line from its notes; then adopt it")),
        }
    }

    /// Puts its entry into the file of its stack. Gives what the entry does not say.
    fn write(
        &mut self,
        address: &Address,
        section: Key,
        stack: Option<&EffectiveStack>,
        target: &str,
        guest: &LiveGuest,
    ) -> Result<Vec<String>, SessionError> {
        let path = match stack {
            Some(stack) => stack.path.clone(),
            None => format!("stacks/{}/stack.yaml", address.stack()),
        };
        let edited = self.proposal.files.get(&path).cloned();
        let FileEdit { before, after } = match edited {
            Some(edit) => edit,
            None => begun(self.workspace, &path, stack, target, guest)?,
        };
        let defaults = match stack.and_then(EffectiveStack::machines) {
            Some(machines) => defaults(machines),
            None => StackDefaults { node: new_node(&after), ..StackDefaults::default() },
        };
        let written = match address.kind() == kinds::CONTAINER {
            true => strata_adopt::container(address.name(), &guest.spec, &defaults),
            false => strata_adopt::vm(address.name(), &guest.spec, &defaults),
        };
        let place = [Step::from(section.name()), Step::from(address.name())];
        let after = edit::insert(&after, &place, &written.yaml).map_err(|error| {
            SessionError::refused(format!("`{path}` cannot be edited: {error}"))
                .hint("write the entry by hand")
        })?;
        self.proposal.files.insert(path, FileEdit { before, after });
        Ok(written.notes)
    }
}

/// Where an entry goes, if the guest is of the kind that the address names.
fn section(address: &Address, guest: &LiveGuest) -> Result<Key, SessionError> {
    if guest.is_template {
        let message = format!("{} is a template", guest.described);
        return Err(SessionError::refused(message)
            .hint("what it was made from cannot be read: write it under `templates`, with its image and another VMID"));
    }
    match guest.kind {
        kind if kind != address.kind() => Err(SessionError::refused(format!(
            "`{address}` names a {}; {} is none",
            address.kind().table().name,
            guest.described
        ))
        .hint(format!("write `{}/{}/{}`", address.stack(), guest.kind.table().name, address.name()))),
        kinds::CONTAINER => Ok(Stack::containers),
        _ => Ok(Stack::vms),
    }
}

/// A guest that somebody is at work on, or that is not yet what its configuration says.
fn refuse_condition(guest: &LiveGuest) -> Result<(), SessionError> {
    if let Some(lock) = &guest.lock {
        let message = format!("{} is locked ({lock})", guest.described);
        return Err(SessionError::refused(message).hint("wait until its task has ended, then adopt it"));
    }
    if !guest.pending.is_empty() {
        let fields: Vec<String> = guest.pending.iter().map(|field| format!("`{field}`")).collect();
        let message =
            format!("{} has changes that wait for a restart: {}", guest.described, fields.join(", "));
        return Err(SessionError::refused(message).hint("restart it, or revert them, then adopt it"));
    }
    Ok(())
}

/// The file of a stack as it is, or a new one that says where the stack is.
fn begun(
    workspace: &Workspace,
    path: &str,
    stack: Option<&EffectiveStack>,
    target: &str,
    guest: &LiveGuest,
) -> Result<FileEdit, SessionError> {
    let place = workspace.root().join(path);
    if stack.is_some() {
        let before = std::fs::read_to_string(&place)
            .map_err(|error| SessionError::failed(format!("cannot read `{path}`: {error}")))?;
        return Ok(FileEdit { after: before.clone(), before });
    }
    if place.exists() {
        return Err(SessionError::refused(format!("`{path}` is there, and is the file of another stack")));
    }
    let mut proxmox = Map::new();
    proxmox.insert(StackProxmox::target.name().to_owned(), target.into());
    proxmox.insert(StackProxmox::node.name().to_owned(), guest.node.as_str().into());
    let after = edit::set("", &[Step::from(Stack::proxmox.name())], &Json::Object(proxmox))
        .map_err(|error| SessionError::failed(format!("`{path}` cannot be made: {error}")))?;
    Ok(FileEdit { before: String::new(), after })
}

/// The node that a new file names.
fn new_node(text: &str) -> Option<String> {
    let value = edit::value_of(text).ok()?;
    Some(value.get(Stack::proxmox.name())?.get(StackProxmox::node.name())?.as_str()?.to_owned())
}

fn defaults(stack: &Stack) -> StackDefaults {
    let proxmox = stack.proxmox.as_ref();
    let text = |value: &strata_yaml::Spanned<String>| value.value.clone();
    StackDefaults {
        node: proxmox.and_then(|proxmox| proxmox.node.as_ref()).map(text),
        pool: proxmox.and_then(|proxmox| proxmox.pool.as_ref()).map(text),
        disk_storage: proxmox.and_then(|proxmox| proxmox.storage.as_ref()?.disk.as_ref()).map(text),
    }
}
