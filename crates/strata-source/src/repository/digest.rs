//! One digest over everything that a stack's plan is made from.

use sha2::{Digest, Sha256};
use strata_yaml::{Kind, Node, ScalarKind, Source, Style};

use super::code::MODULES;
use super::{EffectiveStack, Model, Repository};
use crate::world::{World, find, join};

impl Repository {
    /// The digest of a stack's effective source: its tree with defaults and overlays, its target, the repository's id
    /// and mirrors, and the files it names. White space, comments and the order of keys change nothing.
    ///
    /// Secrets are not in it, not even hashed: a change of one is seen by the state's keyed digest.
    pub fn source_digest(&self, stack: &EffectiveStack, world: &dyn World) -> String {
        let mut hash = Sha256::new();
        hash.update(b"strata source 1\0");
        part(&mut hash, stack.name.as_bytes());
        part(&mut hash, stack.environment.as_bytes());
        hash.update(stack.tree_digest);
        let settings = self.settings_tree.get(&stack.environment).or_else(|| self.settings_tree.get(""));
        for key in ["repository", "mirrors"] {
            optional(&mut hash, settings.and_then(|tree| tree.get(key)));
        }
        let target = stack.target_name().and_then(|name| settings?.at(&["targets", name]));
        optional(&mut hash, target);
        for reference in &stack.references {
            part(&mut hash, reference.source.to_string().as_bytes());
            if reference.sensitive {
                continue;
            }
            match &reference.source {
                Source::File(path) => match find(world, &stack.folder, path) {
                    Ok((_, content)) => part(&mut hash, &content),
                    Err(_) => part(&mut hash, b"absent"),
                },
                Source::Env(name) if reference.fetched => {
                    part(&mut hash, world.env(name).unwrap_or_default().as_bytes());
                }
                Source::Env(_) | Source::Secret(_) => {}
            }
        }
        if matches!(stack.model, Model::Tofu(_)) {
            code(&mut hash, &stack.folder, world);
        }
        hexadecimal(hash)
    }
}

/// The digest of OpenTofu's code in a folder, with the modules of the repository.
pub fn code_digest(folder: &str, world: &dyn World) -> String {
    let mut hash = Sha256::new();
    code(&mut hash, folder, world);
    hexadecimal(hash)
}

/// Which of these files OpenTofu reads, only OpenTofu knows.
fn code(hash: &mut Sha256, folder: &str, world: &dyn World) {
    for folder in [folder, MODULES] {
        files(hash, folder, world);
    }
}

fn hexadecimal(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Deeper than anybody nests folders.
const MAX_DEPTH: usize = 16;

/// Every file below a folder, but what OpenTofu itself keeps there.
fn files(hash: &mut Sha256, folder: &str, world: &dyn World) {
    for path in code_files(folder, world) {
        part(hash, path.as_bytes());
        part(hash, &world.read(&path).unwrap_or_default());
    }
}

/// The paths of these files.
pub(super) fn code_files(folder: &str, world: &dyn World) -> Vec<String> {
    let mut found = Vec::new();
    gather(folder, 0, world, &mut found);
    found
}

fn gather(folder: &str, depth: usize, world: &dyn World, found: &mut Vec<String>) {
    let kept = |name: &str| name.contains(".tfstate") || name.ends_with(".tfplan");
    for entry in world.list(folder).unwrap_or_default() {
        let path = join(folder, &entry.name);
        if entry.is_folder {
            if !entry.name.starts_with('.') && depth < MAX_DEPTH {
                gather(&path, depth + 1, world, found);
            }
        } else if (!entry.name.starts_with('.') && !kept(&entry.name)) || entry.name == ".terraform.lock.hcl"
        {
            found.push(path);
        }
    }
}

/// The digest of a tree by what it means.
pub(super) fn of_tree(tree: &Node) -> [u8; 32] {
    let mut hash = Sha256::new();
    node(&mut hash, tree);
    hash.finalize().into()
}

/// Length first, so that no two sequences of parts are the same bytes.
fn part(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_be_bytes());
    hash.update(bytes);
}

fn optional(hash: &mut Sha256, value: Option<&Node>) {
    match value {
        Some(value) => node(hash, value),
        None => hash.update(b"-"),
    }
}

fn node(hash: &mut Sha256, value: &Node) {
    match &value.kind {
        Kind::Scalar(scalar) => {
            // `4` and `"4"` differ; how text is quoted does not.
            let plain = scalar.style == Style::Plain && scalar.kind() != ScalarKind::Text;
            hash.update(if plain { b"p" } else { b"t" });
            part(hash, scalar.text.as_bytes());
        }
        Kind::List(items) => {
            hash.update(b"l");
            hash.update((items.len() as u64).to_be_bytes());
            items.iter().for_each(|item| node(hash, item));
        }
        Kind::Mapping(mapping) => {
            hash.update(b"m");
            hash.update((mapping.entries.len() as u64).to_be_bytes());
            let mut entries: Vec<_> = mapping.entries.iter().collect();
            entries.sort_by(|a, b| a.key.value.cmp(&b.key.value));
            for entry in entries {
                part(hash, entry.key.value.as_bytes());
                node(hash, &entry.value);
            }
        }
    }
}
