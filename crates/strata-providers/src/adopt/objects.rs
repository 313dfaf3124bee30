//! What a datacenter has besides guests: which file of `hypervisors/` an object goes to, and what speaks against one.

use std::collections::{BTreeMap, BTreeSet};

use strata_adopt::{guests_of, host_of, is_unsaid, is_written, object_name};
use strata_proxmox::kinds::datacenter_name;
use strata_proxmox::{DatacenterObject, ProxmoxProvider};
use strata_resource::{Address, Kind};
use strata_session::{SessionError, Workspace};
use strata_source::EffectiveStack;
use strata_state::StateResource;

use super::Wish;
use super::parts;
use super::proposal::{Candidate, Draft, Drawn, FileEdit, Filled, LeftOut, Live, cannot_edit, stack_of};
use crate::orphans::States;

/// The objects that are named by their addresses.
pub(super) async fn named(
    provider: &ProxmoxProvider,
    wishes: &[&Wish],
) -> BTreeMap<Address, Result<Live, SessionError>> {
    let wishes: Vec<&Address> =
        wishes.iter().filter(|wish| wish.vmid.is_none()).map(|wish| &wish.address).collect();
    let kinds: BTreeSet<Kind> = wishes.iter().map(|address| address.kind()).collect();
    if kinds.is_empty() {
        return BTreeMap::new();
    }
    let live = provider.live_objects(Some(&kinds)).await;
    let of = |object: DatacenterObject| {
        let name = object_name(object.kind.table(), &object.spec);
        let mut own = wishes.iter().filter(|address| address.kind() == object.kind && address.name() == name);
        let address = (*own.next()?).clone();
        let result = match object.reserved {
            Some(why) => Err(SessionError::refused(format!("{} cannot be adopted: {why}", object.described))),
            None => Ok(Live::Object(object)),
        };
        Some((address, result))
    };
    let mut found: BTreeMap<Address, _> = live.found.into_iter().filter_map(of).collect();
    if !live.unseen.is_empty() {
        for address in wishes {
            let unseen = live.unseen.join("; ");
            found.entry(address.clone()).or_insert_with(|| {
                Err(SessionError::refused(format!("`{address}` cannot be looked for: {unseen}"))
                    .hint("`strata doctor --role` prints a role with everything that is needed"))
            });
        }
    }
    found
}

/// All objects of a target.
#[derive(Default)]
pub(super) struct AllObjects {
    pub(super) candidates: Vec<Candidate>,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) managed: usize,
    pub(super) remarks: Vec<String>,
}

pub(super) fn not_written(described: &str) -> SessionError {
    SessionError::refused(format!("{described}: `strata adopt` does not write objects of this kind"))
}

pub(super) async fn all(
    workspace: &Workspace,
    states: &States,
    target: &str,
    provider: &ProxmoxProvider,
    marks: bool,
    guests: &BTreeMap<u32, Address>,
) -> Result<AllObjects, SessionError> {
    let live = provider.live_objects(None).await;
    let remarks = live.unseen.iter().map(|what| format!("not listed: {what}")).collect();
    let mut objects = AllObjects { remarks, ..AllObjects::default() };
    let source = in_source(workspace, target)?;
    let mut built_in: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for object in live.found {
        let name = datacenter_name(object.kind, &object.spec).unwrap_or_default();
        let known = known_as(states, &object, target);
        let unmarked = marks && object.mark.is_none() && object.kind.table().mark_field().is_some();
        if let Some(why) = object.reserved {
            built_in.entry(why).or_default().push(object.described);
        } else if known.is_some() && !unmarked {
            objects.managed += 1;
        } else if let Some(address) = known.or_else(|| source.get(&(object.kind, name))) {
            objects.candidates.push(candidate(address.clone(), target, object));
        } else if is_unsaid(object.kind.table(), &object.spec) {
            let said = |note: &String| format!("{}: {note}", object.described);
            objects.remarks.extend(object.notes.iter().map(said));
        } else if !is_written(object.kind) {
            let hint = "write it into the source by hand, with `adopt: true` where it has that key";
            let error = not_written(&object.described).hint(hint);
            objects.left_out.push(LeftOut { vmid: None, described: object.described, address: None, error });
        } else if !guests_of(object.kind.table(), &object.spec).is_empty() {
            match parts::address(guests, &object) {
                Ok(address) => objects.candidates.push(candidate(address, target, object)),
                Err(error) => {
                    let described = object.described;
                    objects.left_out.push(LeftOut { vmid: None, described, address: None, error });
                }
            }
        } else {
            let stack = place(workspace, target, host_of(object.kind.table(), &object.spec));
            let name = object_name(object.kind.table(), &object.spec);
            objects.candidates.push(candidate(
                Address::new(None, &stack, object.kind, &name),
                target,
                object,
            ));
        }
    }
    for (why, what) in built_in {
        objects.remarks.push(format!("left alone, as {why}: {}", what.join(", ")));
    }
    Ok(objects)
}

fn candidate(address: Address, target: &str, object: DatacenterObject) -> Candidate {
    Candidate { address, target: target.to_owned(), live: Live::Object(object) }
}

/// What the source has on a target already, by kind and name.
fn in_source(workspace: &Workspace, target: &str) -> Result<BTreeMap<(Kind, String), Address>, SessionError> {
    let (mut drawn, mut known) = (Drawn::default(), BTreeMap::new());
    let guests = |stack: &&EffectiveStack| {
        stack.machines().is_some() && stack.is_default_environment && on(workspace, stack, target)
    };
    for stack in hypervisors(workspace, target).chain(workspace.repository().effective().filter(guests)) {
        let own = drawn.of(workspace, stack)?.iter();
        known.extend(own.map(|(address, name)| ((address.kind(), name.clone()), address.clone())));
    }
    Ok(known)
}

/// The files of `hypervisors/` on a target.
fn hypervisors<'w>(
    workspace: &'w Workspace,
    target: &'w str,
) -> impl Iterator<Item = &'w EffectiveStack> + 'w {
    let here = move |stack: &&EffectiveStack| {
        stack.hypervisor().is_some() && stack.is_default_environment && on(workspace, stack, target)
    };
    workspace.repository().effective().filter(here)
}

fn on(workspace: &Workspace, stack: &EffectiveStack, target: &str) -> bool {
    workspace.repository().target(stack).is_some_and(|(name, _)| name == target)
}

/// The hosts that the settings in a file are about.
fn hosts(stack: &EffectiveStack) -> Vec<&str> {
    let proxmox = stack.hypervisor().and_then(|hypervisor| hypervisor.proxmox.as_ref());
    let hosts = proxmox.into_iter().flat_map(|proxmox| proxmox.node.iter().chain(&proxmox.nodes));
    hosts.map(|host| host.value.as_str()).collect()
}

/// The stack that an object goes to: one that is there, or a new one for the datacenter, or for the host.
fn place(workspace: &Workspace, target: &str, host: Option<&str>) -> String {
    let fits = |stack: &&EffectiveStack| match host {
        Some(host) => hosts(stack) == [host],
        None => stack.name == target || hosts(stack).is_empty(),
    };
    let mut there: Vec<&EffectiveStack> = hypervisors(workspace, target).filter(fits).collect();
    there.sort_by_key(|stack| stack.name != target);
    if let Some(stack) = there.first() {
        return stack.name.clone();
    }
    let names = match host {
        Some(host) => [format!("{target}-{host}"), format!("{target}-host-{host}")],
        None => [target.to_owned(), format!("{target}-datacenter")],
    };
    let taken =
        |name: &&String| workspace.repository().stacks().iter().any(|stack| stack.name.value == **name);
    names.iter().find(|name| !taken(name)).unwrap_or(&names[1]).clone()
}

/// The address that a state of this repository knows an object by.
fn known_as<'s>(states: &'s States, object: &DatacenterObject, target: &str) -> Option<&'s Address> {
    let name = datacenter_name(object.kind, &object.spec);
    let same = |(address, record): &(&Address, &StateResource)| {
        address.kind() == object.kind
            && record.target == target
            && datacenter_name(object.kind, &record.spec) == name
    };
    let mut records = states.0.values().flat_map(|state| &state.document.resources);
    records.find(same).map(|(address, _)| address)
}

/// A mark of anybody else, or of another address.
fn refuse_mark(address: &Address, object: &DatacenterObject) -> Result<(), SessionError> {
    match object.mark.as_ref().filter(|mark| mark.address != address.to_string()) {
        Some(mark) => {
            let message = format!("{} carries the ownership mark of `{}`", object.described, mark.address);
            Err(SessionError::refused(message).hint(
                "`strata recover` records what this repository made; otherwise remove it from the state there, and the mark from its comment",
            ))
        }
        None => Ok(()),
    }
}

impl Draft<'_> {
    /// The file that a new stack would get, if nothing speaks against the object.
    pub(super) fn check_object(
        &mut self,
        candidate: &Candidate,
        object: &DatacenterObject,
    ) -> Result<String, SessionError> {
        let Candidate { address, target, .. } = candidate;
        match known_as(self.states, object, target) {
            Some(known) if known != address => {
                let message = format!("{} is managed already, as `{known}`", object.described);
                return Err(SessionError::refused(message).hint(format!(
                    "`strata state mv {known} {address}` renames it, with its entry in the source"
                )));
            }
            Some(_) => {}
            None => refuse_mark(address, object)?,
        }
        if parts::is_about_guests(object) {
            self.entries_of(address, object)?;
            return Ok(format!("stacks/{}/stack.yaml", address.stack()));
        }
        let host = host_of(object.kind.table(), &object.spec);
        let Some(stack) = stack_of(self.workspace, address.stack()) else {
            return Ok(format!("hypervisors/{}.yaml", address.stack()));
        };
        if stack.hypervisor().is_none() {
            let message = format!("`{}` is no file of `hypervisors/`", address.stack());
            return Err(SessionError::refused(message).hint("name another one: `<name>/<kind>/<object>`"));
        }
        if host.is_some_and(|host| hosts(stack) != [host]) {
            let message = format!("`{}` is not the file of this host alone", stack.path);
            return Err(SessionError::refused(message)
                .hint("what differs from host to host needs a file for each of them: name another stack"));
        }
        Ok(stack.path.clone())
    }

    /// Puts objects into a file of `hypervisors/`.
    pub(super) fn write_objects(&mut self, path: &str, new: &[&Candidate]) -> Result<Filled, SessionError> {
        let stack = new.first().and_then(|one| stack_of(self.workspace, one.address.stack()));
        let (mut objects, mut host) = (Vec::new(), None);
        for one in new {
            let Live::Object(object) = &one.live else { continue };
            let table = object.kind.table();
            let written =
                strata_adopt::object(table, &object.spec).ok_or_else(|| not_written(&object.described))?;
            host = host.or(host_of(table, &object.spec));
            self.note(&one.address, written.notes.clone());
            objects.push(written);
        }
        let before = match stack {
            Some(_) => self.read(path)?,
            None => {
                self.refuse_other(path)?;
                String::new()
            }
        };
        let target = new.first().map(|one| one.target.as_str()).unwrap_or_default();
        let begun = match before.is_empty() {
            true => strata_adopt::new_file(target, host).map_err(cannot_edit(path))?,
            false => before.clone(),
        };
        let (after, places) = strata_adopt::put_objects(&begun, &objects).map_err(cannot_edit(path))?;
        Ok((FileEdit { before, after }, places))
    }
}

#[cfg(test)]
mod tests {
    use strata_blueprint::kinds;

    /// Kinds that no entry is written for yet: `strata adopt --all` names their objects, and leaves them as they are.
    const NOT_WRITTEN: [&str; 6] =
        ["acmeaccount", "acmeplugin", "certificate", "repositories", "sdndns", "sdnipam"];

    #[test]
    fn every_object_of_a_datacenter_can_be_written_or_is_named() {
        strata_proxmox::kinds::register();
        let unwritten = kinds::ALL
            .iter()
            .filter(|kind| strata_proxmox::kinds::is_datacenter(**kind) && !strata_adopt::is_written(**kind));
        let mut names: Vec<&str> = unwritten.map(|kind| kind.table().name).collect();
        names.sort_unstable();
        assert_eq!(names, NOT_WRITTEN, "without a line in `SECTIONS` of strata-adopt/src/datacenter.rs");
    }
}
