//! Lays defaults and environments over the files, and reads what comes out.

use std::collections::BTreeMap;

use strata_diagnostics::{Diagnostic, Diagnostics, FileId, Span, nearest};
use strata_yaml::{Context, Decode, Entry, Kind, Mapping, Node, Outside, Record, Spanned, overlay};

use super::discover::{EnvironmentFile, Found, StackFile};
use super::{DEFAULT_ENVIRONMENT, EffectiveStack, Model, Repository, StackEntry, StackKind};
use crate::cluster::topology::NodesFile;
use crate::cluster::{ClusterProxmox, flat};
use crate::environment::{Environment, SETTINGS, STACKS};
use crate::machine::container::Container;
use crate::machine::template::Template;
use crate::machine::vm::Vm;
use crate::settings::Settings;
use crate::stack::{Layer, StackProxmox};
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
    for (entry, file) in stacks.iter().zip(&files) {
        for environment in &entry.environments {
            let defaults = trees.get(environment).unwrap_or(&settings_tree).get("defaults");
            let over = overlay_of(&environments, environment, entry);
            let stack = effective_stack(world, entry, file, environment, defaults, over, diagnostics);
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
) -> (Option<T>, Vec<strata_yaml::Reference>) {
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

fn entries(
    files: &[StackFile],
    environments: &[EnvironmentFile],
    diagnostics: &mut Diagnostics,
) -> Vec<StackEntry> {
    let mut entries: Vec<StackEntry> = Vec::new();
    for file in files {
        let entry = entry(file, environments);
        if let Some(first) = entries.iter().find(|other| other.name == entry.name) {
            let message = format!("two stacks are called `{}`", entry.name);
            let problem = Diagnostic::error("name-collision", message).at_with(entry.name.span, "this one");
            let hint = "give one of them another `metadata.name`";
            diagnostics.push(problem.also(first.name.span, "and this one").hint(hint));
        }
        entries.push(entry);
    }
    entries
}

fn entry(file: &StackFile, environments: &[EnvironmentFile]) -> StackEntry {
    let metadata = |key: &str| {
        let node = file.tree.as_ref()?.at(&["metadata", key])?;
        node.as_scalar().map(|scalar| Spanned::new(scalar.text.clone(), node.span))
    };
    let name = metadata("name").unwrap_or_else(|| Spanned::new(file.name.clone(), Span::start_of(file.file)));
    let default_environment = metadata("environment").map_or(DEFAULT_ENVIRONMENT.to_owned(), |env| env.value);
    let layer = metadata("layer").and_then(|layer| {
        <Layer as strata_yaml::Choice>::ALL.iter().copied().find(|known| known.as_str() == layer.value)
    });
    let mut all = vec![default_environment.clone()];
    for environment in environments {
        let named = environment.tree.as_ref().is_some_and(|tree| names_stack(tree, file.kind, &name));
        if named && environment.name != default_environment {
            all.push(environment.name.clone());
        }
    }
    StackEntry {
        name,
        layer: layer.unwrap_or(file.layer),
        kind: file.kind,
        path: file.path.clone(),
        folder: file.folder.clone(),
        default_environment,
        environments: all,
    }
}

/// The section of an environment that holds stacks of a kind.
fn section(kind: StackKind) -> &'static str {
    match kind {
        StackKind::Machines | StackKind::Tofu => "stacks",
        StackKind::Cluster => "clusters",
        StackKind::Hypervisor => "hypervisors",
    }
}

fn names_stack(environment: &Node, kind: StackKind, name: &str) -> bool {
    environment.at(&[section(kind), name]).is_some()
}

fn overlay_of<'a>(environments: &'a [EnvironmentFile], name: &str, entry: &StackEntry) -> Option<&'a Node> {
    let environment = environments.iter().find(|environment| environment.name == name)?;
    environment
        .tree
        .as_ref()?
        .at(&[section(entry.kind), &entry.name])
        .filter(|node| node.as_mapping().is_some())
}

/// Names in environments that no stack has.
fn unknown_stacks(stacks: &[StackEntry], environments: &[EnvironmentFile], diagnostics: &mut Diagnostics) {
    for tree in environments.iter().filter_map(|environment| environment.tree.as_ref()) {
        for key in STACKS {
            let Some(named) = tree.get(key).and_then(Node::as_mapping) else { continue };
            let known: Vec<&str> = stacks
                .iter()
                .filter(|entry| section(entry.kind) == key)
                .map(|entry| entry.name.value.as_str())
                .collect();
            for entry in named.entries.iter().filter(|entry| !known.contains(&entry.key.value.as_str())) {
                let message = format!("there is no stack `{}` in `{key}/`", entry.key);
                let meant =
                    nearest(&entry.key, known.iter().copied()).map(|name| format!("did you mean `{name}`?"));
                let problem =
                    Diagnostic::error("unknown-stack", message).at(entry.key.span).maybe_hint(meant);
                diagnostics.push(if known.is_empty() {
                    problem
                } else {
                    problem.note(format!("known: {}", known.join(", ")))
                });
            }
        }
    }
}

fn effective_stack(
    world: &dyn World,
    entry: &StackEntry,
    file: &StackFile,
    environment: &str,
    defaults: Option<&Node>,
    over: Option<&Node>,
    diagnostics: &mut Diagnostics,
) -> EffectiveStack {
    let outside = Around { world, folder: &file.folder };
    let tree = file.tree.as_ref().and_then(|tree| {
        let tree = if file.kind == StackKind::Cluster && flat::is_flat(tree) {
            flat::convert(tree, file.nodes.as_ref(), &outside, diagnostics)?
        } else {
            with_nodes(tree, file.nodes.as_ref(), &outside, diagnostics)
        };
        let tree = match over {
            Some(over) => overlay(&tree, over),
            None => tree,
        };
        Some(match defaults {
            Some(defaults) => with_defaults(tree, defaults, file.kind),
            None => tree,
        })
    });
    let (model, references) = match (&tree, file.kind) {
        (_, StackKind::Tofu) => (Model::Tofu, Vec::new()),
        (None, _) => (Model::Broken, Vec::new()),
        (Some(tree), kind) => model(tree, kind, &outside, diagnostics),
    };
    let tree = tree.unwrap_or_else(|| Node::mapping(Vec::new(), Span::start_of(file.file)));
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
        tree,
    }
}

fn model(
    tree: &Node,
    kind: StackKind,
    outside: &dyn Outside,
    diagnostics: &mut Diagnostics,
) -> (Model, Vec<strata_yaml::Reference>) {
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
        StackKind::Tofu => (Some(Model::Tofu), Vec::new()),
    };
    (model.unwrap_or(Model::Broken), references)
}

/// `nodes.yaml` says the same as `cluster.nodes`, and wins.
fn with_nodes(
    tree: &Node,
    nodes: Option<&Node>,
    outside: &dyn Outside,
    diagnostics: &mut Diagnostics,
) -> Node {
    let Some(nodes) = nodes else { return tree.clone() };
    read::<NodesFile>(nodes, outside, diagnostics);
    let Some(list) = nodes.get("nodes") else { return tree.clone() };
    let entry = |key: &str, value: Node| Entry { key: Spanned::new(key.to_owned(), nodes.span), value };
    let inner = Node::mapping(vec![entry("nodes", list.clone())], nodes.span);
    overlay(tree, &Node::mapping(vec![entry("cluster", inner)], nodes.span))
}

/// The repository's defaults under what a stack says.
fn with_defaults(mut tree: Node, defaults: &Node, kind: StackKind) -> Node {
    let Kind::Mapping(mapping) = &mut tree.kind else { return tree };
    match kind {
        StackKind::Machines => {
            under_each::<Vm>(mapping, "vms", defaults.get("vm"));
            under_each::<Container>(mapping, "containers", defaults.get("container"));
            under_each::<Template>(mapping, "templates", defaults.get("template"));
            under::<StackProxmox>(mapping, "proxmox", defaults.get("proxmox"), true);
        }
        StackKind::Cluster => under::<ClusterProxmox>(mapping, "proxmox", defaults.get("proxmox"), false),
        StackKind::Hypervisor => {
            under::<crate::hypervisor::HypervisorProxmox>(mapping, "proxmox", defaults.get("proxmox"), true);
        }
        StackKind::Tofu => {}
    }
    tree
}

fn under_each<T: Record>(mapping: &mut Mapping, key: &str, defaults: Option<&Node>) {
    let Some(defaults) = defaults else { return };
    let Some(section) = mapping.entries.iter_mut().find(|entry| entry.key.value == key) else { return };
    if let Kind::Mapping(machines) = &mut section.value.kind {
        for machine in machines.entries.iter_mut().filter(|entry| entry.value.as_mapping().is_some()) {
            machine.value = beneath::<T>(defaults, &machine.value);
        }
    }
}

fn under<T: Record>(mapping: &mut Mapping, key: &str, defaults: Option<&Node>, add: bool) {
    let Some(defaults) = defaults.filter(|defaults| defaults.as_mapping().is_some()) else { return };
    match mapping.entries.iter_mut().find(|entry| entry.key.value == key) {
        Some(entry) if entry.value.as_mapping().is_some() => {
            entry.value = beneath::<T>(defaults, &entry.value)
        }
        Some(_) => {}
        None if add => {
            let value = beneath::<T>(defaults, &Node::mapping(Vec::new(), defaults.span));
            mapping.entries.push(Entry { key: Spanned::new(key.to_owned(), defaults.span), value });
        }
        None => {}
    }
}

/// Defaults beneath what is said: a default goes where it would stand beside a key that excludes it, or that is
/// another name for it, or where it means nothing.
fn beneath<T: Record>(defaults: &Node, said: &Node) -> Node {
    let (Some(below), Some(above)) = (defaults.as_mapping(), said.as_mapping()) else { return said.clone() };
    let spec = T::spec();
    let excluded = |key: &str| {
        let Some(field) =
            spec.fields.iter().find(|field| field.key == key || field.rules.aliases.contains(&key))
        else {
            return true;
        };
        let renamed = |written: &str| {
            written != key && (written == field.key || field.rules.aliases.contains(&written))
        };
        above.keys().any(renamed)
            || spec.at_most_one.iter().chain(&spec.exactly_one).any(|group| {
                group.contains(&field.key)
                    && above.keys().any(|written| written != key && group.contains(&written))
            })
    };
    let entries = below.entries.iter().filter(|entry| !excluded(&entry.key)).cloned().collect();
    overlay(&Node { span: said.span, kind: Kind::Mapping(Mapping { entries }) }, said)
}

/// Lower layers first, then what others depend on, then by name.
fn order(stacks: &mut [StackEntry], effective: &BTreeMap<(String, String), EffectiveStack>) {
    stacks.sort_by(|a, b| (a.layer, &a.name.value).cmp(&(b.layer, &b.name.value)));
    let needs: BTreeMap<String, Vec<String>> = stacks
        .iter()
        .map(|entry| {
            let of = |environment: &String| effective.get(&(entry.name.value.clone(), environment.clone()));
            let needed = entry.environments.iter().filter_map(of).flat_map(EffectiveStack::depends_on);
            (entry.name.value.clone(), needed.map(|name| name.value.clone()).collect())
        })
        .collect();
    // A stack's rank is one more than the highest it needs; the bound ends cycles, which are reported elsewhere.
    let mut rank: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..=stacks.len() {
        for (name, needed) in &needs {
            let highest = needed.iter().filter_map(|other| rank.get(other).map(|rank| rank + 1)).max();
            let own = highest.unwrap_or(0).min(stacks.len());
            rank.insert(name.clone(), own);
        }
    }
    stacks.sort_by_key(|entry| (entry.layer, rank.get(&entry.name.value).copied().unwrap_or(0)));
}
