//! A root that stays what it is: Strata drives OpenTofu for it. The modules it calls come along.

use std::collections::BTreeSet;

use strata_source::world::join;

use super::super::Import;
use super::super::files::{CODE, folder_of};
use super::super::hcl;
use super::super::tree::SourceLine;
use super::Root;
use strata_tofu::resolve_path;

pub(super) fn keep(import: &mut Import<'_>, root: &Root<'_>, why: &str) {
    let rest = match root.folder.split_once("stacks/") {
        Some((_, rest)) => rest.to_owned(),
        None => super::own_name(root),
    };
    // The name of a stack is the name of its folder.
    let (above, last) = rest.rsplit_once('/').map_or(("", rest.as_str()), |(above, last)| (above, last));
    let mut own = last.to_owned();
    if !import.stacks.insert(own.clone()) {
        own = import.stack_name(last, &SourceLine::new(&root.folder, 1));
    }
    let target = format!("stacks/{}", join(above, &own));
    let mut copied: BTreeSet<String> = BTreeSet::new();
    folder(import, &root.folder, &target, &mut copied);
    let place = SourceLine::new(&root.folder, 1);
    import.note(Some(&place), format!("{why}: it is kept as `{target}`, written by hand, for `strata tofu`"));
}

/// Copies a folder, and the modules that it calls to `modules/`.
fn folder(import: &mut Import<'_>, from: &str, to: &str, copied: &mut BTreeSet<String>) {
    if !copied.insert(from.to_owned()) {
        return;
    }
    // What the code reads lies beside it: templates, scripts.
    let all = if from.is_empty() { import.files.inside("", "") } else { import.files.below(from) };
    let roots: Vec<String> = import.files.folders_with_code().into_iter().collect();
    for path in all {
        let inner = folder_of(&path);
        // A root within a root is one of its own.
        if inner != from
            && roots.iter().any(|other| {
                other != from
                    && other.starts_with(from)
                    && (inner == other || inner.starts_with(&format!("{other}/")))
            })
        {
            continue;
        }
        let relative = path.strip_prefix(from).unwrap_or(&path).trim_start_matches('/').to_owned();
        if relative.ends_with(".tfstate") || relative.ends_with(".tfstate.backup") {
            import.note(
                Some(&SourceLine::new(&path, 1)),
                "a state was not copied: see `strata import --state`",
            );
            import.files.read(&path);
            continue;
        }
        let Some(mut text) = import.read(&path) else { continue };
        if CODE.iter().any(|ending| path.ends_with(ending)) {
            text = with_modules(import, from, to, &path, text, copied);
        }
        import.imported.files.insert(format!("{to}/{relative}"), text);
    }
}

/// Sources of modules that lie elsewhere are written again.
fn with_modules(
    import: &mut Import<'_>,
    from: &str,
    to: &str,
    path: &str,
    text: String,
    copied: &mut BTreeSet<String>,
) -> String {
    let Ok((_, blocks)) = hcl::parse(path, &text) else { return text };
    let mut text = text;
    for block in blocks.iter().filter(|block| block.kind == "module") {
        let Some(source) =
            block.literal("source").filter(|source| source.starts_with("../")).map(str::to_owned)
        else {
            continue;
        };
        let Some(module) =
            resolve_path(from, &source).filter(|module| !import.files.below(module).is_empty())
        else {
            import.note(Some(&block.place), format!("the module `{source}` is not in the repository"));
            continue;
        };
        let new =
            format!("modules/{}", module.split_once("modules/").map_or(module.as_str(), |(_, rest)| rest));
        folder(import, &module, &new, copied);
        let up = "../".repeat(to.split('/').count());
        text = text.replace(&format!("\"{source}\""), &format!("\"{up}{new}\""));
    }
    text
}
