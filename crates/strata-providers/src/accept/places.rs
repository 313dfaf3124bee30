//! Where the fields of an object can be written: its own entry, and that of the environment.

use strata_adopt::accept::{Entry, entries_named};
use strata_blueprint::kinds;
use strata_resource::Address;
use strata_session::Workspace;
use strata_source::cluster::topology::NodesFile;
use strata_source::cluster::{Cluster, ClusterSpec};
use strata_source::environment::Environment;
use strata_source::hypervisor::Hypervisor;
use strata_source::machine::guest::Guest;
use strata_source::machine::vm::Vm;
use strata_source::stack::Stack;
use strata_source::{EffectiveStack, Model};
use strata_yaml::{Decode as _, edit};

/// An entry of a file.
pub(super) struct Place {
    /// From the root of the repository.
    pub(super) file: String,
    pub(super) entry: Entry,
    /// Its keys are those of a guest in `stack.yaml`.
    pub(super) is_guest: bool,
    /// The entry stands for several guests.
    pub(super) shared: Option<String>,
}

/// The entries that say what an object is, the nearest first.
pub(super) fn places(
    workspace: &Workspace,
    stack: &EffectiveStack,
    address: &Address,
    text: &dyn Fn(&str) -> String,
) -> Vec<Place> {
    let own = match &stack.model {
        Model::Machines(machines) => guest(machines, address)
            .into_iter()
            .map(|(path, shared)| Place {
                file: stack.path.clone(),
                entry: Entry { path, shape: Stack::shape() },
                is_guest: true,
                shared,
            })
            .collect(),
        Model::Cluster(_) => cluster_node(workspace, stack, address),
        Model::Hypervisor(_) => {
            let file = edit::value_of(&text(&stack.path)).unwrap_or_default();
            // Addresses have no `/`. What has no entry of its own stands under its kind, or at the top.
            let mut found = entries_named(&file, &address.name().replace('~', "/"));
            found.extend([vec![address.kind().table().name.to_owned()], Vec::new()]);
            found
                .into_iter()
                .map(|path| Place {
                    file: stack.path.clone(),
                    entry: Entry { path, shape: Hypervisor::shape() },
                    is_guest: false,
                    shared: None,
                })
                .collect()
        }
        Model::Tofu(_) | Model::Broken | Model::Removed => Vec::new(),
    };
    let over: Vec<Place> = own.iter().filter_map(|place: &Place| overlaid(stack, place)).collect();
    match stack.is_default_environment {
        true => own.into_iter().chain(over).collect(),
        // The file of the stack is what every environment begins with.
        false => over,
    }
}

/// The keys that lead to a guest, and the entry that it shares with others.
fn guest(machines: &Stack, address: &Address) -> Option<(Vec<String>, Option<String>)> {
    let (section, key, each, counted) = if address.kind() == kinds::CONTAINER {
        let all = machines.container_instances();
        let one = all.into_iter().find(|one| one.name == address.name())?;
        (Stack::containers, one.key, one.spec.each.keys().next().map(str::to_owned), one.index.is_some())
    } else if address.kind() == kinds::VM {
        let one = machines.vm_instances().into_iter().find(|one| one.name == address.name())?;
        (Stack::vms, one.key, one.spec.each.keys().next().map(str::to_owned), one.index.is_some())
    } else {
        let one = machines.template_instances().into_iter().find(|one| one.name == address.name())?;
        return Some((vec![Stack::templates.name().to_owned(), one.key.value.clone()], None));
    };
    let section = section.name().to_owned();
    Some(match each {
        Some(entry) => {
            let group = key.strip_suffix(entry.as_str())?.strip_suffix('-')?.to_owned();
            (vec![section, group, Vm::each.name().to_owned(), entry], None)
        }
        None => {
            let shared = counted.then(|| format!("`{}` of `{key}`", Guest::count));
            (vec![section, key.value.clone()], shared)
        }
    })
}

/// What one machine of a cluster has for itself.
fn cluster_node(workspace: &Workspace, stack: &EffectiveStack, address: &Address) -> Vec<Place> {
    let beside = format!("{}/nodes.yaml", stack.folder);
    let nodes = ClusterSpec::nodes.name().to_owned();
    let (file, path, shape) = match workspace.root().join(&beside).is_file() {
        true => (beside, vec![nodes], NodesFile::shape()),
        false => (stack.path.clone(), vec![Cluster::cluster.name().to_owned(), nodes], Cluster::shape()),
    };
    let path = path.into_iter().chain([address.name().to_owned()]).collect();
    vec![Place { file, entry: Entry { path, shape }, is_guest: false, shared: None }]
}

/// The same entry in the file of the stack's environment.
fn overlaid(stack: &EffectiveStack, place: &Place) -> Option<Place> {
    let section = match &stack.model {
        Model::Machines(_) => Environment::stacks,
        Model::Cluster(_) => Environment::clusters,
        Model::Hypervisor(_) => Environment::hypervisors,
        Model::Tofu(_) | Model::Broken | Model::Removed => return None,
    };
    let lead = [section.name().to_owned(), stack.name.clone()];
    let below = place.entry.path.iter().cloned();
    // `nodes.yaml` says the same as `cluster.nodes`.
    let inner = (place.file != stack.path).then(|| Cluster::cluster.name().to_owned());
    Some(Place {
        file: format!("environments/{}.yaml", stack.environment),
        entry: Entry {
            path: lead.into_iter().chain(inner).chain(below).collect(),
            shape: Environment::shape(),
        },
        is_guest: place.is_guest,
        shared: place.shared.clone(),
    })
}
