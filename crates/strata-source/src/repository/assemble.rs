//! Lays defaults and environments over the files, and reads what comes out.

use std::collections::BTreeMap;

use strata_diagnostics::{Diagnostic, Diagnostics, FileId, Span};
use strata_yaml::{Context, Decode, Entry, Node, Outside, Reference, Spanned, overlay};

use super::defaults::with_defaults;
use super::discover::{Found, StackFile};
use super::membership::{entries, order, overlay_of, unknown_stacks};
use super::{EffectiveStack, Model, Repository, StackEntry, StackKind, digest};
use crate::cluster::flat;
use crate::cluster::topology::NodesFile;
use crate::environment::{Environment, SETTINGS};
use crate::settings::Settings;
use crate::world::{World, find};

const SETTINGS_HINT: &str = "it names at least the targets that stacks are applied to";

/// Files beside a stack, then at the root; variables as given.
struct Around<'w> {
    world: &'w dyn World,
    folder: &'w str,
}

impl Outside for Around<'_> {
    fn env(&self, name: &str) -> Option<String> {
        self.world.env(name)
    }

    fn file(&self, path: &str, _: FileId) -> Result<String, String> {
        let (place, content) = find(self.world, self.folder, path)?;
        String::from_utf8(content).map_err(|_| format!("`{place}` is not UTF-8 text"))
    }
}

pub(super) fn assemble(world: &dyn World, found: Found, diagnostics: &mut Diagnostics) -> Repository {
    let Found { mut sources, settings, stacks: files, environments } = found;
    let root = Around { world, folder: "" };
    let settings_tree = match settings {
        Some((_, tree)) => tree,
        None => {
            missing_settings(world, &files, diagnostics);
            let file = sources.add("strata.yaml", "");
            Node::mapping(Vec::new(), Span::start_of(file))
        }
    };
    let (settings, mut references) = read::<Settings>(&settings_tree, &root, diagnostics);
    let settings = settings.unwrap_or_else(|| empty_settings(&settings_tree));

    let mut trees = BTreeMap::from([(String::new(), settings_tree.clone())]);
    let mut changed = BTreeMap::new();
    for environment in &environments {
        let Some(tree) = &environment.tree else { continue };
        read::<Environment>(tree, &root, diagnostics);
        if let Some(laid) = settings_of(&settings_tree, tree) {
            let (read, more) = read::<Settings>(&laid, &root, diagnostics);
            references.extend(more);
            if let Some(read) = read {
                changed.insert(environment.name.clone(), read);
            }
            trees.insert(environment.name.clone(), laid);
        }
    }

    let mut stacks = entries(&files, &environments, diagnostics);
    let mut effective = BTreeMap::new();
    for (entry, file) in stacks.iter().zip(files) {
        let mut file = file;
        for (place, environment) in entry.environments.iter().enumerate() {
            // The last environment takes the tree itself: most stacks have one, and the tree can be large.
            let last = place + 1 == entry.environments.len();
            let tree = if last { file.tree.take() } else { file.tree.clone() };
            let defaults = trees.get(environment).unwrap_or(&settings_tree).get("defaults");
            let over = overlay_of(&environments, environment, entry);
            let layers = Layers { tree, defaults, over };
            let stack = effective_stack(world, entry, &file, environment, layers, diagnostics);
            effective.insert((entry.name.value.clone(), environment.clone()), stack);
        }
    }
    unknown_stacks(&stacks, &environments, diagnostics);
    order(&mut stacks, &effective);
    Repository {
        sources,
        settings,
        stacks,
        effective,
        environments: changed,
        settings_tree: trees,
        references,
    }
}

/// Reads a tree as `T`, and gives the references that it holds.
fn read<T: Decode>(
    tree: &Node,
    outside: &dyn Outside,
    diagnostics: &mut Diagnostics,
) -> (Option<T>, Vec<Reference>) {
    let mut cx = Context::new(diagnostics, outside);
    let value = T::decode(tree, &mut cx);
    (value, cx.into_references())
}

/// A repository has settings, unless it is a cluster of the flat family at the root.
fn missing_settings(world: &dyn World, files: &[StackFile], diagnostics: &mut Diagnostics) {
    match world.read("strata.yaml") {
        Ok(content) if content.iter().all(u8::is_ascii_whitespace) => {
            diagnostics.push(Diagnostic::error("empty-file", "`strata.yaml` is empty").hint(SETTINGS_HINT));
        }
        // It is there and could not be read: that has been reported.
        Ok(_) => {}
        Err(_) if files.iter().any(|file| file.folder.is_empty()) => {}
        Err(_) => {
            let problem = Diagnostic::error("no-repository", "there is no `strata.yaml` here");
            diagnostics.push(problem.hint("run `strata init`, or name the repository with `-C DIR`"));
        }
    }
}

/// Settings for a file that could not be read: nothing is set.
fn empty_settings(tree: &Node) -> Settings {
    let nothing = Node::mapping(Vec::new(), tree.span);
    let mut ignored = Diagnostics::new();
    let mut cx = Context::new(&mut ignored, &strata_yaml::NoOutside);
    Settings::decode(&nothing, &mut cx).expect("no key of the settings is required")
}

/// The settings of an environment, if it changes any.
fn settings_of(base: &Node, environment: &Node) -> Option<Node> {
    let entries: Vec<Entry> = environment
        .as_mapping()?
        .entries
        .iter()
        .filter(|entry| SETTINGS.contains(&entry.key.value.as_str()))
        .cloned()
        .collect();
    (!entries.is_empty()).then(|| overlay(base, &Node::mapping(entries, environment.span)))
}

/// What is laid on what, the file first.
struct Layers<'a> {
    tree: Option<Node>,
    defaults: Option<&'a Node>,
    over: Option<&'a Node>,
}

fn effective_stack(
    world: &dyn World,
    entry: &StackEntry,
    file: &StackFile,
    environment: &str,
    layers: Layers<'_>,
    diagnostics: &mut Diagnostics,
) -> EffectiveStack {
    let outside = Around { world, folder: &file.folder };
    let tree = layers.tree.and_then(|tree| {
        let tree = if file.kind == StackKind::Cluster && flat::is_flat(&tree) {
            flat::convert(&tree, file.nodes.as_ref(), &outside, diagnostics)?
        } else {
            with_nodes(tree, file.nodes.as_ref(), &outside, diagnostics)
        };
        let tree = match layers.over {
            Some(over) => overlay(&tree, over),
            None => tree,
        };
        Some(match layers.defaults {
            Some(defaults) => with_defaults(tree, defaults, file.kind),
            None => tree,
        })
    });
    let (model, references) = match (&tree, file.kind) {
        (None, _) => (Model::Broken, Vec::new()),
        (Some(tree), kind) => model(tree, kind, &outside, diagnostics),
    };
    let tree_digest = tree.as_ref().map(digest::of_tree).unwrap_or_default();
    EffectiveStack {
        name: entry.name.value.clone(),
        environment: environment.to_owned(),
        is_default_environment: environment == entry.default_environment,
        layer: entry.layer,
        path: entry.path.clone(),
        folder: entry.folder.clone(),
        file: file.file,
        model,
        references,
        tree_digest,
    }
}

fn model(
    tree: &Node,
    kind: StackKind,
    outside: &dyn Outside,
    diagnostics: &mut Diagnostics,
) -> (Model, Vec<Reference>) {
    let (model, references) = match kind {
        StackKind::Machines => {
            let (stack, references) = read(tree, outside, diagnostics);
            (stack.map(|stack| Model::Machines(Box::new(stack))), references)
        }
        StackKind::Cluster => {
            let (cluster, references) = read(tree, outside, diagnostics);
            (cluster.map(|cluster| Model::Cluster(Box::new(cluster))), references)
        }
        StackKind::Hypervisor => {
            let (hypervisor, references) = read(tree, outside, diagnostics);
            (hypervisor.map(|hypervisor| Model::Hypervisor(Box::new(hypervisor))), references)
        }
        StackKind::Tofu => {
            let (stack, references) = read(tree, outside, diagnostics);
            (stack.map(|stack| Model::Tofu(Box::new(stack))), references)
        }
    };
    (model.unwrap_or(Model::Broken), references)
}

/// `nodes.yaml` says the same as `cluster.nodes`, and wins.
fn with_nodes(
    tree: Node,
    nodes: Option<&Node>,
    outside: &dyn Outside,
    diagnostics: &mut Diagnostics,
) -> Node {
    let Some(nodes) = nodes else { return tree };
    read::<NodesFile>(nodes, outside, diagnostics);
    let Some(list) = nodes.get("nodes") else { return tree };
    let entry = |key: &str, value: Node| Entry { key: Spanned::new(key.to_owned(), nodes.span), value };
    let inner = Node::mapping(vec![entry("nodes", list.clone())], nodes.span);
    overlay(&tree, &Node::mapping(vec![entry("cluster", inner)], nodes.span))
}
