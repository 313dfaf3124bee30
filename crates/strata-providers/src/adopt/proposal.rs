//! What an adoption would write: the files of a repository with new guests and objects in them.

use std::collections::BTreeMap;
use std::path::Path;

use strata_blueprint::vmid_of;
use strata_diagnostics::{LARGEST_FILE, read_text_file};
use strata_proxmox::kinds::datacenter_name;
use strata_proxmox::{DatacenterObject, LiveGuest};
use strata_resource::{Address, Spec, Value};
use strata_session::{SessionError, Workspace};
use strata_source::EffectiveStack;
use strata_yaml::edit::{self, Step};

use super::parts::is_about_guests;
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
        let now = match read_text_file(&place, LARGEST_FILE) {
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

/// One guest or object that can be adopted.
#[derive(Debug, Clone)]
pub struct Proposed {
    /// Of a guest.
    pub vmid: Option<u32>,
    /// ``VM 9100 `db` on `pve2` ``.
    pub described: String,
    /// Its YAML is new; otherwise the source has it already.
    pub is_written: bool,
    /// What is live and the YAML does not say, one line each.
    pub notes: Vec<String>,
    pub(super) proof: Spec,
}

/// One guest or object that cannot be adopted.
#[derive(Debug, Clone)]
pub struct LeftOut {
    /// Of a guest.
    pub vmid: Option<u32>,
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
    /// Guests in the order of their VMIDs, then objects.
    pub left_out: Vec<LeftOut>,
    /// Guests and objects of the target that are managed already.
    pub managed: usize,
    /// What is said of the target as a whole: what nobody manages, what could not be listed.
    pub remarks: Vec<String>,
    /// Whose the new entries are, by file and the way to them.
    pub(super) entries: Vec<(String, Vec<Step>, Address)>,
}

impl Proposal {
    /// The stacks that get a guest.
    pub(super) fn stacks(&self) -> Vec<String> {
        let mut names: Vec<String> = self.adopted.keys().map(|address| address.stack().to_owned()).collect();
        names.dedup();
        names
    }
}

/// What was read, and as what it is wanted.
pub(super) struct Candidate {
    pub(super) address: Address,
    pub(super) target: String,
    pub(super) live: Live,
}

impl Candidate {
    /// Whether it is about guests, and stands with them.
    fn is_part(&self) -> bool {
        matches!(&self.live, Live::Object(object) if is_about_guests(object))
    }
}

/// What can be adopted.
pub(super) enum Live {
    Guest(LiveGuest),
    Object(DatacenterObject),
}

impl Live {
    pub(super) fn vmid(&self) -> Option<u32> {
        match self {
            Self::Guest(guest) => Some(guest.vmid),
            Self::Object(_) => None,
        }
    }

    pub(super) fn described(&self) -> &str {
        match self {
            Self::Guest(guest) => &guest.described,
            Self::Object(object) => &object.described,
        }
    }

    fn notes(&self) -> &[String] {
        match self {
            Self::Guest(guest) => &guest.notes,
            Self::Object(object) => &object.notes,
        }
    }

    fn proof(&self) -> Spec {
        match self {
            Self::Guest(guest) => {
                [(strata_proxmox::TAKEN_OVER.to_owned(), Value::text(guest.proof.as_str()))].into()
            }
            Self::Object(_) => Spec::new(),
        }
    }
}

/// The stack of an address in the environment of this run.
pub(crate) fn stack_of<'w>(workspace: &'w Workspace, name: &str) -> Option<&'w EffectiveStack> {
    workspace.repository().stack(name, workspace.surroundings().environment.as_deref())
}

/// What the source has, stack by stack: the VMID of a guest, the name of an object.
#[derive(Default)]
pub(super) struct Drawn(BTreeMap<String, BTreeMap<Address, String>>);

impl Drawn {
    pub(super) fn of(
        &mut self,
        workspace: &Workspace,
        stack: &EffectiveStack,
    ) -> Result<&BTreeMap<Address, String>, SessionError> {
        if !self.0.contains_key(&stack.name) {
            let blueprint = workspace.blueprint_without_secrets(stack)?;
            let known = blueprint.graph.iter().filter_map(|resource| {
                let vmid = vmid_of(resource).map(|vmid| vmid.to_string());
                let name = vmid.or_else(|| datacenter_name(resource.kind(), &resource.spec))?;
                Some((resource.address.clone(), name))
            });
            self.0.insert(stack.name.clone(), known.collect());
        }
        Ok(self.0.entry(stack.name.clone()).or_default())
    }
}

/// Guests and objects while they are gathered, and then the files with them.
pub(super) struct Draft<'w> {
    pub(super) workspace: &'w Workspace,
    pub(super) states: &'w States,
    pub(super) drawn: &'w mut Drawn,
    pub(super) adopted: BTreeMap<Address, Proposed>,
    /// Templates of the source, by VMID, once they are asked for.
    pub(super) templates: Option<BTreeMap<u32, Address>>,
    /// By the path of the file.
    new: BTreeMap<String, Vec<&'w Candidate>>,
}

/// A file with new entries, and the way to each of them.
pub(super) type Filled = (FileEdit, Vec<Vec<Step>>);

fn unchanged(text: String) -> Filled {
    (FileEdit { before: text.clone(), after: text }, Vec::new())
}

impl<'w> Draft<'w> {
    pub(super) fn new(workspace: &'w Workspace, states: &'w States, drawn: &'w mut Drawn) -> Self {
        let (adopted, new) = (BTreeMap::new(), BTreeMap::new());
        Self { workspace, states, drawn, adopted, templates: None, new }
    }

    pub(super) fn add(&mut self, candidate: &'w Candidate) -> Result<(), SessionError> {
        let Candidate { address, target, live } = candidate;
        let stack = stack_of(self.workspace, address.stack());
        if stack.is_some_and(|stack| !stack.is_default_environment) {
            let message = format!("`{address}` is in an environment that only an overlay describes");
            return Err(SessionError::refused(message).hint("adopt it into a stack of its own, without `-e`"));
        }
        let (new_path, name) = match live {
            Live::Guest(guest) => (self.check_guest(address, target, guest)?, guest.vmid.to_string()),
            Live::Object(object) => (
                self.check_object(candidate, object)?,
                datacenter_name(object.kind, &object.spec).unwrap_or_default(),
            ),
        };
        let drawn = match stack {
            Some(stack) => self.drawn.of(self.workspace, stack)?.get(address).cloned(),
            None => None,
        };
        if let Some(own) = drawn.as_ref().filter(|own| **own != name) {
            let what = if live.vmid().is_some() { "with the VMID" } else { "as" };
            let message = format!("`{address}` is in the source already, {what} {own}");
            return Err(SessionError::refused(message).hint("name another address"));
        }
        if drawn.is_none() {
            let path = stack.map_or(new_path, |stack| stack.path.clone());
            self.new.entry(path).or_default().push(candidate);
        }
        let one = Proposed {
            vmid: live.vmid(),
            described: live.described().to_owned(),
            is_written: drawn.is_none(),
            notes: live.notes().to_vec(),
            proof: live.proof(),
        };
        self.adopted.insert(address.clone(), one);
        Ok(())
    }

    /// The files, and what could not be put into theirs.
    pub(super) fn finish(mut self) -> (Proposal, BTreeMap<Address, SessionError>) {
        let (mut files, mut entries, mut refused) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        for (path, new) in std::mem::take(&mut self.new) {
            let (parts, whole): (Vec<_>, Vec<_>) = new.iter().copied().partition(|one| one.is_part());
            let filled = match whole.first().map(|one| &one.live) {
                None => self.read(&path).map(unchanged),
                Some(Live::Object(_)) => self.write_objects(&path, &whole),
                Some(Live::Guest(_)) => self.write_guests(&path, &whole),
            };
            match filled.and_then(|filled| self.write_parts(&path, filled, &parts)) {
                Ok((edit, places)) => {
                    let placed = places.into_iter().zip(whole.iter().chain(&parts));
                    entries.extend(placed.map(|(place, one)| (path.clone(), place, one.address.clone())));
                    files.insert(path, edit);
                }
                Err(error) => {
                    refused.extend(new.iter().map(|one| (one.address.clone(), error.clone())));
                }
            }
        }
        (Proposal { files, entries, adopted: self.adopted, ..Proposal::default() }, refused)
    }

    /// What is live and the YAML does not say.
    pub(super) fn note(&mut self, address: &Address, notes: Vec<String>) {
        if let Some(one) = self.adopted.get_mut(address) {
            one.notes.extend(notes);
        }
    }

    pub(super) fn read(&self, path: &str) -> Result<String, SessionError> {
        read_text_file(&self.workspace.root().join(path), LARGEST_FILE)
            .map_err(|error| SessionError::failed(format!("cannot read `{path}`: {error}")))
    }

    pub(super) fn refuse_other(&self, path: &str) -> Result<(), SessionError> {
        match self.workspace.root().join(path).exists() {
            true => {
                Err(SessionError::refused(format!("`{path}` is there, and is the file of another stack")))
            }
            false => Ok(()),
        }
    }
}

pub(super) fn cannot_edit(path: &str) -> impl Fn(edit::EditError) -> SessionError {
    move |error| {
        SessionError::refused(format!("`{path}` cannot be edited: {error}")).hint("write the entry by hand")
    }
}
