//! A stack of machines: its images, templates, VMs, containers and outputs.

mod ha;
mod replication;

use strata_diagnostics::Diagnostic;
use strata_source::stack::Stack;

use crate::kinds;
use crate::site::{Blueprint, Draft, Site};

/// Draws the whole stack. All mistakes are gathered; with one of them there is no blueprint.
pub fn draw_stack(site: &Site<'_>, stack: &Stack) -> Result<Blueprint, Vec<Diagnostic>> {
    let named = stack
        .proxmox
        .as_ref()
        .and_then(|proxmox| proxmox.target.as_ref())
        .map(|target| target.value.as_str());
    let Some(target) = named.or(site.default_target) else {
        let message = format!("the stack `{}` names no target", site.stack);
        let hint = "set `proxmox: {target: …}`; with one target in strata.yaml it can be left out";
        return Err(vec![Diagnostic::error("no-target", message).hint(hint)]);
    };
    let mut draft = Draft::new(site, target.to_owned());
    for instance in stack.template_instances() {
        draft.template(stack, &instance);
    }
    let (vms, containers) = (stack.vm_instances(), stack.container_instances());
    let mut seats: Vec<_> = vms.iter().map(|vm| (draft.address(kinds::VM, &vm.name), vm.seat())).collect();
    seats.extend(containers.iter().map(|one| (draft.address(kinds::CONTAINER, &one.name), one.seat())));
    draft.spread(&seats);
    for instance in &vms {
        draft.vm(stack, instance);
    }
    for instance in &containers {
        draft.container(stack, instance);
    }
    draft.high_availability(stack);
    draft.replications(stack);
    draft.outputs(stack);
    if let Err(error) = draft.blueprint.graph.check()
        && draft.found.is_empty()
    {
        draft.found.push(Diagnostic::error("dependencies", error.to_string()));
    }
    if draft.found.iter().any(Diagnostic::is_error) { Err(draft.found) } else { Ok(draft.blueprint) }
}
