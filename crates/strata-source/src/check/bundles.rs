//! The secrets of clusters: one set of keys is one cluster of one environment.

use std::collections::BTreeMap;
use std::path::PathBuf;

use strata_diagnostics::{Diagnostic, Diagnostics, Span};

use crate::cluster::bundle::BundleOwner;
use crate::repository::{EffectiveStack, Repository};
use crate::world::World;

pub(super) fn check(repository: &Repository, world: &dyn World, diagnostics: &mut Diagnostics) {
    let mut by_path: BTreeMap<PathBuf, &EffectiveStack> = BTreeMap::new();
    let mut by_content: BTreeMap<Vec<u8>, (PathBuf, &EffectiveStack)> = BTreeMap::new();
    for stack in repository.effective() {
        let read = |path: &std::path::Path| world.read(&path.to_string_lossy());
        let Some(path) = stack.bundle_path(|path| read(path).is_ok()) else { continue };
        if let Some(first) = by_path.get(&path) {
            diagnostics.push(shared(first, stack, &path));
            continue;
        }
        by_path.insert(path.clone(), stack);
        let Ok(content) = read(&path) else { continue };
        if let Some(found) = foreign(repository, stack, &path, &content) {
            diagnostics.push(found);
        } else if let Some((first, other)) = by_content.get(sealed(&content)) {
            diagnostics.push(copied(first, other, stack, &path));
        }
        by_content.entry(sealed(&content).to_vec()).or_insert((path, stack));
    }
}

/// The encrypted values. What follows them says who can read them, and may differ from copy to copy.
fn sealed(content: &[u8]) -> &[u8] {
    const READERS: &[u8] = b"\nsops:";
    let at = content.windows(READERS.len()).position(|window| window == READERS);
    &content[..at.unwrap_or(content.len())]
}

fn place(stack: &EffectiveStack) -> Option<Span> {
    let talos = &stack.cluster()?.cluster.talos;
    Some(talos.secrets.as_ref().map_or(talos.version.span, |secrets| secrets.span))
}

fn label(stack: &EffectiveStack) -> String {
    format!("`{}` in `{}`", stack.name, stack.environment)
}

fn at(problem: Diagnostic, stack: &EffectiveStack) -> Diagnostic {
    match place(stack) {
        Some(span) => problem.at(span),
        None => problem,
    }
}

fn shared(first: &EffectiveStack, second: &EffectiveStack, path: &std::path::Path) -> Diagnostic {
    let message = format!(
        "{} and {} would have the same keys, `{}`: their nodes would join one etcd",
        label(first),
        label(second),
        path.display()
    );
    let problem = at(Diagnostic::error("shared-keys", message), second);
    let overlaid = if second.is_default_environment { first } else { second };
    problem.hint(match first.name == second.name {
        true => format!(
            "leave `talos.secrets` out, and each environment has a file of its own; or name another one for `{0}` in environments/{0}.yaml",
            overlaid.environment
        ),
        false => "name another file under `talos.secrets`, or leave it out".to_owned(),
    })
}

fn copied(
    first: &std::path::Path,
    of: &EffectiveStack,
    stack: &EffectiveStack,
    path: &std::path::Path,
) -> Diagnostic {
    let message = format!(
        "`{}` is a copy of `{}`: the nodes of {} would join the etcd of {}",
        path.display(),
        first.display(),
        label(stack),
        label(of)
    );
    let hint = format!("remove `{}`: `strata apply` generates keys for a new cluster", path.display());
    at(Diagnostic::error("copied-keys", message), stack).hint(hint)
}

/// The file says that it was made for another one.
fn foreign(
    repository: &Repository,
    stack: &EffectiveStack,
    path: &std::path::Path,
    content: &[u8],
) -> Option<Diagnostic> {
    let owner = BundleOwner::read(content)?;
    let own = &repository.settings.repository.as_ref()?.value;
    let elsewhere = owner.repository != *own;
    if !elsewhere && owner.environment == stack.environment && owner.cluster == stack.name {
        return None;
    }
    let of = if elsewhere { format!("{owner} of another repository") } else { owner.to_string() };
    let message = format!(
        "`{}` holds the keys of {of}: the nodes of {} would join its etcd",
        path.display(),
        label(stack)
    );
    let hint = format!(
        "remove `{0}`: `strata apply` generates keys for a new cluster; if that cluster was renamed, `strata secrets edit {0}` says so under `strata_unencrypted`",
        path.display()
    );
    Some(at(Diagnostic::error("foreign-keys", message), stack).hint(hint))
}
