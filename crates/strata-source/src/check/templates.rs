//! Templates that VMs are cloned from.

use strata_diagnostics::{Diagnostic, Diagnostics};
use strata_yaml::Spanned;

use super::{left_out, suggestion};
use crate::repository::{EffectiveStack, Model, Repository};
use crate::stack::Stack;

pub(super) fn check(repository: &Repository, diagnostics: &mut Diagnostics) {
    for effective in repository.effective() {
        let Some(stack) = effective.machines() else { continue };
        for template in stack.vms.values().filter_map(|vm| vm.template.as_ref()) {
            match template.split_once('/') {
                None => own(effective, stack, template, diagnostics),
                Some((other, name)) => foreign(repository, effective, (other, name), template, diagnostics),
            }
        }
    }
}

fn own(effective: &EffectiveStack, stack: &Stack, template: &Spanned<String>, diagnostics: &mut Diagnostics) {
    if !stack.templates.names(template) {
        if let Some(problem) = left_out::entry(effective, ("templates", "template"), template, template.span)
        {
            diagnostics.push(problem);
            return;
        }
        let problem =
            Diagnostic::error("unknown-template", format!("there is no template `{template}` in this stack"));
        let known: Vec<&str> = stack.templates.keys().collect();
        let hint = suggestion(template, &known).unwrap_or_else(|| {
            "add it under `templates`, or name another stack's: `stack/template`".to_owned()
        });
        diagnostics.push(problem.at(template.span).hint(hint));
    }
}

fn foreign(
    repository: &Repository,
    here: &EffectiveStack,
    (other, name): (&str, &str),
    template: &Spanned<String>,
    diagnostics: &mut Diagnostics,
) {
    if let Some(problem) = left_out::stack(repository, other, here, template.span) {
        diagnostics.push(problem);
        return;
    }
    let stack = repository.stack(other, Some(&here.environment)).or_else(|| repository.stack(other, None));
    let Some(stack) = stack else {
        let known: Vec<&str> = repository.stacks().iter().map(|entry| entry.name.value.as_str()).collect();
        let problem =
            Diagnostic::error("unknown-stack", format!("there is no stack `{other}`")).at(template.span);
        diagnostics.push(problem.maybe_hint(suggestion(other, &known)));
        return;
    };
    let known: Vec<&str> = match &stack.model {
        Model::Machines(machines) if machines.templates.names(name) => {
            let (theirs, ours) = (repository.proxmox_endpoint(stack), repository.proxmox_endpoint(here));
            if theirs.is_some() && ours.is_some() && theirs != ours {
                let message = format!("the template `{template}` is on another target");
                diagnostics.push(Diagnostic::error("wrong-target", message).at(template.span));
            }
            return;
        }
        Model::Broken | Model::Removed => return,
        Model::Machines(machines) => machines.templates.keys().collect(),
        _ => Vec::new(),
    };
    if let Some(problem) = left_out::entry(stack, ("templates", "template"), name, template.span) {
        diagnostics.push(problem);
        return;
    }
    let problem =
        Diagnostic::error("unknown-template", format!("the stack `{other}` has no template `{name}`"));
    diagnostics.push(problem.at(template.span).maybe_hint(suggestion(name, &known)));
}
