//! Lays defaults and environments over the files, and reads what comes out.

use std::collections::BTreeMap;

use strata_diagnostics::{Diagnostic, Diagnostics, FileId, Span};
use strata_yaml::{Context, Decode, Entry, Node, Outside, Reference, Shape, Spanned, overlay};

use super::defaults::with_defaults;
use super::discover::{DiscoveredFiles, StackFile};
use super::each::{addresses, expand};
use super::membership::{entries, order, overlay_of, unknown_stacks};
use super::profiles::{ProfileUses, refuse_in_defaults, with_profiles};
use super::{EffectiveStack, LeftOut, Model, Repository, StackEntry, StackKind, digest};
use crate::cluster::topology::NodesFile;
use crate::cluster::{Cluster, flat};
use crate::environment::localize::{Localizer, add_tags};
use crate::environment::naming::EnvName;
use crate::environment::offsets::Movement;
use crate::environment::{Environment, SETTINGS};
use crate::hypervisor::Hypervisor;
use crate::settings::Settings;
use crate::stack::Stack;
use crate::world::{World, find};

const SETTINGS_HINT: &str = "it names at least the targets that stacks are applied to";

/// Files beside a stack, then at the root; variables as given.
struct StackFiles<'w> {
    world: &'w dyn World,
    folder: &'w str,
}

impl Outside for StackFiles<'_> {
    fn env(&self, name: &str) -> Option<String> {
        self.world.env(name)
    }

    fn file(&self, path: &str, _: FileId) -> Result<String, String> {
        let (place, content) = find(self.world, self.folder, path)?;
        String::from_utf8(content).map_err(|_| format!("`{place}` is not UTF-8 text"))
    }
}

pub(super) fn assemble(
    world: &dyn World,
    found: DiscoveredFiles,
    diagnostics: &mut Diagnostics,
) -> Repository {
    let DiscoveredFiles { mut sources, settings, stacks: files, environments } = found;
    let root = StackFiles { world, folder: "" };
    let settings_tree = match settings {
        Some((_, tree)) => tree,
        None => {
            missing_settings(world, &files, diagnostics);
            let file = sources.add("strata.yaml", "");
            Node::mapping(Vec::new(), Span::start_of(file))
        }
    };
    let (settings, mut references) = read_in::<Settings>(&settings_tree, EnvName::Any, &root, diagnostics);
    let settings = settings.unwrap_or_else(|| empty_settings(&settings_tree));

    let mut trees = BTreeMap::from([(String::new(), settings_tree.clone())]);
    let mut changed = BTreeMap::new();
    let mut offsets = BTreeMap::new();
    for environment in &environments {
        let Some(tree) = &environment.tree else { continue };
        let name = EnvName::Named(&environment.name);
        let (own, _) = read_in::<Environment>(tree, name, &root, diagnostics);
        if let Some(own) = own.and_then(|own| own.offsets) {
            offsets.insert(environment.name.clone(), own);
        }
        if let Some(laid) = settings_of(&settings_tree, tree) {
            let (read, more) = read_in::<Settings>(&laid, name, &root, diagnostics);
            references.extend(more);
            if let Some(read) = read {
                changed.insert(environment.name.clone(), read);
            }
            trees.insert(environment.name.clone(), laid);
        }
    }

    let (mut stacks, left_out) = entries(&files, &environments, diagnostics);
    let mut movements: BTreeMap<&str, Movement<'_>> =
        offsets.iter().map(|(name, own)| (name.as_str(), Movement::new(own, diagnostics))).collect();
    let mut uses = ProfileUses::default();
    for tree in trees.values() {
        uses.write(tree.get("profiles"));
        refuse_in_defaults(tree, diagnostics);
    }
    let mut effective = BTreeMap::new();
    for (entry, file) in stacks.iter().zip(files) {
        let mut file = file;
        let has_name = file.tree.as_ref().is_some_and(|tree| tree.at(&["metadata", "environment"]).is_some());
        for (place, environment) in entry.environments.iter().enumerate() {
            // The last environment takes the tree itself: most stacks have one, and the tree can be large.
            let last = place + 1 == entry.environments.len();
            let tree = if last { file.tree.take() } else { file.tree.clone() };
            let of_environment = trees.get(environment).unwrap_or(&settings_tree);
            let own = environments.iter().find(|own| own.name == *environment);
            let name = match has_name || own.is_some() {
                true => EnvName::Named(environment),
                false => EnvName::Nameless,
            };
            let layers = Layers {
                tree,
                defaults: of_environment.get("defaults"),
                profiles: of_environment.get("profiles"),
                over: overlay_of(&environments, environment, entry),
                tags: own.and_then(|own| own.tree.as_ref()?.get("tags")?.as_list()).unwrap_or_default(),
            };
            let localizer = Localizer {
                name,
                movement: movements.get_mut(environment.as_str()),
                file: own.map(|own| own.file),
                diagnostics,
            };
            let stack = effective_stack(world, entry, &file, environment, layers, localizer, &mut uses);
            effective.insert((entry.name.value.clone(), environment.clone()), stack);
        }
    }
    // What could not be read may have lain in one of them.
    let all_read = !diagnostics.has_errors();
    if all_read {
        diagnostics.extend(uses.unused());
    }
    for movement in movements.values().filter(|_| all_read) {
        for (what, key) in movement.unused() {
            let message = format!("no {what} `{key}` in this environment");
            diagnostics.push(Diagnostic::warning("unused", message).at(key.span));
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
        offsets,
        left_out,
    }
}

/// The same of a tree that may hold `{env}`.
fn read_in<T: Decode>(
    tree: &Node,
    name: EnvName<'_>,
    outside: &dyn Outside,
    diagnostics: &mut Diagnostics,
) -> (Option<T>, Vec<Reference>) {
    let mut tree = tree.clone();
    Localizer { name, movement: None, file: None, diagnostics }.walk(&mut tree, &T::shape());
    read(&tree, outside, diagnostics)
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
    /// Of strata.yaml.
    profiles: Option<&'a Node>,
    /// The environment's, for every guest.
    tags: &'a [Node],
}

fn effective_stack(
    world: &dyn World,
    entry: &StackEntry,
    file: &StackFile,
    environment: &str,
    layers: Layers<'_>,
    mut localizer: Localizer<'_, '_>,
    uses: &mut ProfileUses,
) -> EffectiveStack {
    let outside = StackFiles { world, folder: &file.folder };
    let tree = layers.tree.and_then(|tree| {
        let tree = if file.kind == StackKind::Cluster && flat::is_flat(&tree) {
            flat::convert(&tree, file.nodes.as_ref(), &outside, localizer.diagnostics)?
        } else {
            with_nodes(tree, file.nodes.as_ref(), localizer.name, &outside, localizer.diagnostics)
        };
        let tree = match layers.over {
            Some(over) => overlay(&tree, over),
            None => tree,
        };
        let mut tree = tree;
        if file.kind == StackKind::Machines {
            expand(&mut tree, localizer.diagnostics);
        }
        with_profiles(&mut tree, layers.profiles, file.kind, uses, localizer.diagnostics);
        if let Some(defaults) = layers.defaults {
            tree = with_defaults(tree, defaults, file.kind);
        }
        if file.kind == StackKind::Machines {
            addresses(&mut tree);
        }
        add_tags(&mut tree, file.kind, layers.tags);
        localizer.walk(&mut tree, &shape(file.kind));
        Some(tree)
    });
    let (model, references) = match (&tree, file.kind) {
        (None, _) => (Model::Broken, Vec::new()),
        (Some(tree), kind) => model(tree, kind, &outside, localizer.diagnostics),
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
        left_out: layers.over.map(left_out_of).unwrap_or_default(),
    }
}

/// Entries of sections that an overlay leaves out: `vms: {debug: null}`, and those of an `each`.
fn left_out_of(over: &Node) -> Vec<LeftOut> {
    let mut found = Vec::new();
    let entries =
        |node: &'_ Node| node.as_mapping().map(|mapping| mapping.entries.clone()).unwrap_or_default();
    for section in entries(over) {
        let mut note = |name: String, span: Span| {
            found.push(LeftOut { section: section.key.value.clone(), name, span });
        };
        for guest in entries(&section.value) {
            if guest.value.is_null() {
                note(guest.key.value.clone(), guest.value.span);
            }
            for member in guest.value.get("each").map(entries).unwrap_or_default() {
                if member.value.is_null() {
                    note(format!("{}-{}", guest.key, member.key), member.value.span);
                    note(format!("{}.{}", guest.key, member.key), member.value.span);
                }
            }
        }
    }
    found
}

fn shape(kind: StackKind) -> Shape {
    match kind {
        StackKind::Machines | StackKind::Tofu => Stack::shape(),
        StackKind::Cluster => Cluster::shape(),
        StackKind::Hypervisor => Hypervisor::shape(),
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
    name: EnvName<'_>,
    outside: &dyn Outside,
    diagnostics: &mut Diagnostics,
) -> Node {
    let Some(nodes) = nodes else { return tree };
    read_in::<NodesFile>(nodes, name, outside, diagnostics);
    let Some(list) = nodes.get("nodes") else { return tree };
    let entry = |key: &str, value: Node| Entry { key: Spanned::new(key.to_owned(), nodes.span), value };
    let inner = Node::mapping(vec![entry("nodes", list.clone())], nodes.span);
    overlay(&tree, &Node::mapping(vec![entry("cluster", inner)], nodes.span))
}
