//! What speaks against a guest before anything is drawn.

use std::collections::BTreeMap;

use strata_blueprint::kinds;
use strata_proxmox::LiveGuest;
use strata_resource::Address;
use strata_session::{SessionError, Workspace};
use strata_source::stack::Stack;
use strata_yaml::Key;

use crate::orphans::{States, vmid};

/// Where an entry goes, if the guest is of the kind that the address names.
pub(super) fn section(address: &Address, guest: &LiveGuest) -> Result<Key, SessionError> {
    if guest.is_container_template {
        let message =
            format!("{} is a template, and stacks have no templates of containers", guest.described);
        return Err(SessionError::refused(message).hint(
            "leave it as it is: containers that were cloned from it are adopted without it; or clone it in full, and delete it",
        ));
    }
    match guest.kind {
        kind if kind != address.kind() => Err(SessionError::refused(format!(
            "`{address}` names a {}; {} is none",
            address.kind().table().name,
            guest.described
        ))
        .hint(format!("write `{}/{}/{}`", address.stack(), guest.kind.table().name, address.name()))),
        kinds::CONTAINER => Ok(Stack::containers),
        kinds::TEMPLATE => Ok(Stack::templates),
        _ => Ok(Stack::vms),
    }
}

/// The address that a state of this repository knows a guest by.
pub(super) fn known_as<'s>(states: &'s States, guest: u32, target: &str) -> Option<&'s Address> {
    let records = states.0.values().flat_map(|state| &state.document.resources);
    let mut guests = records.filter(|(known, _)| strata_proxmox::kinds::is_guest(known.kind()));
    let same =
        |record: &strata_state::StateResource| vmid(&record.spec) == Some(guest) && record.target == target;
    guests.find(|(_, record)| same(record)).map(|(known, _)| known)
}

/// The guests of a target that states of this repository know.
pub(super) fn known_guests(states: &States, target: &str) -> BTreeMap<u32, Address> {
    let records = states.0.values().flat_map(|state| &state.document.resources);
    let guests = records
        .filter(|(known, record)| strata_proxmox::kinds::is_guest(known.kind()) && record.target == target);
    guests.filter_map(|(known, record)| Some((vmid(&record.spec)?, known.clone()))).collect()
}

/// A state that knows the address as another guest, or the guest under another address.
pub(super) fn refuse_state(
    states: &States,
    address: &Address,
    guest: &LiveGuest,
    target: &str,
) -> Result<(), SessionError> {
    match known_as(states, guest.vmid, target) {
        Some(known) if known == address => Ok(()),
        Some(known) => {
            let message = format!("{} is managed already, as `{known}`", guest.described);
            Err(SessionError::refused(message).hint(format!(
                "`strata state mv {known} {address}` renames it, with its entry in the source"
            )))
        }
        None if states.0.values().any(|state| state.document.resources.contains_key(address)) => {
            let message = format!("`{address}` is in the state already, as another guest");
            Err(SessionError::refused(message).hint("name another address"))
        }
        None => Ok(()),
    }
}

/// A mark of anybody else, or of another address, or of another guest.
pub(super) fn refuse_mark(
    workspace: &Workspace,
    states: &States,
    address: &Address,
    guest: &LiveGuest,
) -> Result<(), SessionError> {
    let Some(mark) = &guest.mark else { return Ok(()) };
    let described = &guest.described;
    if mark.vmid != guest.vmid {
        let message = format!("{described} is a copy: it carries the ownership mark of VMID {}", mark.vmid);
        return Err(SessionError::refused(message).hint("remove that line from its notes, then adopt it"));
    }
    match states.owner_of(workspace, mark)? {
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

/// A guest that somebody is at work on, or that is not yet what its configuration says.
pub(super) fn refuse_condition(guest: &LiveGuest) -> Result<(), SessionError> {
    if let Some(lock) = &guest.lock {
        let message = format!("{} is locked ({lock})", guest.described);
        return Err(SessionError::refused(message).hint(unlocking(guest, lock)));
    }
    if !guest.spec.contains_key("name") {
        let message =
            format!("{} has no name, and an address ends with the name of its guest", guest.described);
        let hint = format!(
            "name it (`{} set {} --{} NAME`), then adopt it",
            tool(guest),
            guest.vmid,
            if guest.kind == kinds::CONTAINER { "hostname" } else { "name" }
        );
        return Err(SessionError::refused(message).hint(hint));
    }
    if !guest.pending.is_empty() {
        let fields: Vec<String> = guest.pending.iter().map(|field| format!("`{field}`")).collect();
        let message =
            format!("{} has changes that wait for a restart: {}", guest.described, fields.join(", "));
        return Err(SessionError::refused(message).hint("restart it, or revert them, then adopt it"));
    }
    Ok(())
}

fn tool(guest: &LiveGuest) -> &'static str {
    if guest.kind == kinds::CONTAINER { "pct" } else { "qm" }
}

/// What ends a lock: what it was set for, or a person who knows that nothing works on the guest any more.
fn unlocking(guest: &LiveGuest, lock: &str) -> String {
    let (tool, vmid, node) = (tool(guest), guest.vmid, &guest.node);
    match lock {
        "suspended" => format!("start it (`{tool} resume {vmid}` on `{node}`), then adopt it"),
        "mounted" => format!("`{tool} unmount {vmid}` on `{node}`, then adopt it"),
        _ => format!(
            "wait until its task has ended, then adopt it; `{tool} unlock {vmid}` on `{node}` frees it where no task works on it any more"
        ),
    }
}
