//! Outputs: that the machines they speak of exist.

use strata_diagnostics::{Diagnostic, Diagnostics};
use strata_yaml::{Map, Spanned};

use super::{left_out, suggestion};
use crate::repository::{EffectiveStack, Model, Repository};
use crate::stack::output::{OutputKind, OutputPath, Which};
use crate::stack::tofu::StackOutput;

pub(super) fn check(repository: &Repository, diagnostics: &mut Diagnostics) {
    for stack in repository.effective() {
        for path in outputs(stack).into_iter().flat_map(Map::values) {
            one(stack, path, diagnostics);
        }
        for input in stack.tofu().into_iter().flat_map(|tofu| tofu.inputs.values()) {
            given(repository, stack, input, diagnostics);
        }
    }
}

fn outputs(stack: &EffectiveStack) -> Option<&Map<Spanned<OutputPath>>> {
    match &stack.model {
        Model::Machines(machines) => Some(&machines.outputs),
        Model::Cluster(cluster) => Some(&cluster.outputs),
        Model::Hypervisor(_) | Model::Tofu(_) | Model::Broken | Model::Removed => None,
    }
}

/// Of a stack that Strata makes itself, all outputs are known.
fn given(
    repository: &Repository,
    stack: &EffectiveStack,
    input: &Spanned<StackOutput>,
    diagnostics: &mut Diagnostics,
) {
    if let Some(problem) = left_out::stack(repository, &input.stack, stack, input.span) {
        diagnostics.push(problem);
        return;
    }
    let same = repository.stack(&input.stack, Some(&stack.environment));
    let Some(other) = same.or_else(|| repository.stack(&input.stack, None)) else {
        let names: Vec<&str> = repository.stacks().iter().map(|entry| entry.name.value.as_str()).collect();
        let problem = Diagnostic::error("unknown-stack", format!("there is no stack `{}`", input.stack));
        diagnostics.push(problem.at(input.span).maybe_hint(suggestion(&input.stack, &names)));
        return;
    };
    if let Some(known) = outputs(other)
        && !known.names(&input.output)
    {
        if let Some(problem) = left_out::entry(other, ("outputs", "output"), &input.output, input.span) {
            diagnostics.push(problem);
            return;
        }
        let names: Vec<&str> = known.keys().collect();
        let message = format!("the stack `{}` has no output `{}`", other.name, input.output);
        let problem = Diagnostic::error("unknown-output", message).at(input.span);
        diagnostics.push(problem.maybe_hint(suggestion(&input.output, &names)));
    }
}

fn one(stack: &EffectiveStack, path: &Spanned<OutputPath>, diagnostics: &mut Diagnostics) {
    let Some((known, count)) = machines(stack, path) else {
        let message = format!(
            "a {} has no `{}`",
            if stack.cluster().is_some() { "cluster" } else { "stack" },
            path.kind
        );
        diagnostics.push(Diagnostic::error("unknown-output", message).at(path.span));
        return;
    };
    let Some(count) = count else {
        if let Some(problem) = left_out::entry(stack, (path.kind.as_str(), "guest"), &path.name, path.span) {
            diagnostics.push(problem);
            return;
        }
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let message = format!("there is no `{}` in `{}`", path.name, path.kind);
        let problem = Diagnostic::error("unknown-output", message).at(path.span);
        diagnostics.push(problem.maybe_hint(suggestion(&path.name, &known)));
        return;
    };
    let problem = match (path.which, count) {
        (Which::One, Some(count)) => Some((
            format!("`{}` stands for {count} machine{}", path.name, if count == 1 { "" } else { "s" }),
            "write `[*]` for all of them or `[0]` for the first",
        )),
        (Which::Index(index), Some(count)) if index >= count => {
            Some((format!("`{}` has only {count} machines", path.name), "indexes count from 0"))
        }
        (Which::Index(index), None) if index > 0 => {
            Some((format!("`{}` is one machine", path.name), "remove the index"))
        }
        _ => None,
    };
    if let Some((message, hint)) = problem {
        diagnostics.push(Diagnostic::error("unknown-output", message).at(path.span).hint(hint));
    }
}

/// All names of the path's kind; and, if the path's name is one, its count (`Some(None)` for a single machine).
fn machines(stack: &EffectiveStack, path: &OutputPath) -> Option<(Vec<String>, Option<Option<u32>>)> {
    let name = path.name.as_str();
    match (&stack.model, path.kind) {
        (Model::Machines(machines), OutputKind::Vms) => {
            let known = machines.vms.keys().map(str::to_owned).collect();
            let count = machines.vms_named(name).map(|named| {
                let counted = || machines.vms.get(named.keys.first()?).and_then(|vm| vm.guest.count);
                if named.is_group { u32::try_from(named.keys.len()).ok() } else { counted() }
            });
            Some((known, count))
        }
        (Model::Machines(machines), OutputKind::Containers) => {
            let known = machines.containers.keys().map(str::to_owned).collect();
            let count = machines.containers_named(name).map(|named| {
                let counted = || machines.containers.get(named.keys.first()?).and_then(|one| one.guest.count);
                if named.is_group { u32::try_from(named.keys.len()).ok() } else { counted() }
            });
            Some((known, count))
        }
        (Model::Machines(machines), OutputKind::Templates) => {
            let count = machines.templates.get(name).map(|template| match template.nodes.len() {
                0 => None,
                nodes => u32::try_from(nodes).ok(),
            });
            let count = count.or_else(|| machines.templates.names(name).then_some(None));
            Some((machines.templates.keys().map(str::to_owned).collect(), count))
        }
        (Model::Cluster(cluster), OutputKind::Nodes) => {
            let names: Vec<String> = cluster
                .machines(&stack.name, &mut Diagnostics::new())
                .into_iter()
                .map(|machine| machine.name)
                .collect();
            let found = names.iter().any(|known| known == name).then_some(None);
            Some((names, found))
        }
        _ => None,
    }
}
