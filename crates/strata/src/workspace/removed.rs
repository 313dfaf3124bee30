//! Stacks that left the source. Their states are still in the store, and so is what these states know: it is planned as a removal.

use std::collections::BTreeSet;

use futures::stream::{self, StreamExt, TryStreamExt};
use strata_blueprint::{cluster_target, kinds};
use strata_cluster::RemovedCluster;
use strata_resource::{Address, Lineage};
use strata_source::stack::Layer;
use strata_source::{EffectiveStack, Model};
use strata_state::{ReplayedState, StateDocument, Store, StoreError, replay};

use super::targets::Targets;
use super::{StackSession, Workspace, layer};
use crate::command_error::CommandError;

/// How many states are read at once.
const AT_ONCE: usize = 8;

/// What the store has and the source does not.
#[derive(Default)]
pub(crate) struct Removed {
    /// Stacks of the environment at hand.
    pub(crate) stacks: Vec<RemovedStack>,
    /// Keys of states in environments that no stack is part of any more.
    pub(crate) elsewhere: Vec<String>,
    /// States that cannot be read, and why: nobody can say whose they are.
    pub(crate) unreadable: Vec<(String, String)>,
}

pub(crate) struct RemovedStack {
    pub(crate) stack: EffectiveStack,
    /// How many objects its state knows.
    pub(crate) objects: usize,
    /// The folder that its code was in, where OpenTofu made it: without the code nothing of it can be destroyed.
    pub(crate) tofu: Option<String>,
}

impl RemovedStack {
    /// What is wrong, and what helps.
    pub(crate) fn problem(&self) -> CommandError {
        let name = &self.stack.name;
        match &self.tofu {
            Some(folder) => CommandError::refused(format!(
                "stack `{name}` is not in the source any more, and what OpenTofu made for it is still there"
            ))
            .hint(format!(
                "only its code can destroy it: put `{folder}` back, `strata destroy {name}`, then remove it"
            )),
            None => CommandError::refused(format!(
                "stack `{name}` is not in the source any more, and its state has {}",
                counted(self.objects)
            ))
            .hint(format!(
                "`strata plan {name}` shows what goes, `strata destroy {name}` removes it; put the stack back to keep it"
            )),
        }
    }
}

pub(crate) fn counted(objects: usize) -> String {
    if objects == 1 { "1 object".to_owned() } else { format!("{objects} objects") }
}

impl<'c> Workspace<'c> {
    /// The repository, and what the store has of stacks that left it. `names` are those that the command line names: a store that
    /// cannot list is asked for them.
    pub(crate) async fn load_with_removed(
        context: &'c crate::context::Context,
        names: &[String],
    ) -> Result<Self, CommandError> {
        let workspace = Self::load(context)?;
        workspace.find_removed(names).await?;
        Ok(workspace)
    }

    /// Looks into the store, once.
    pub(crate) async fn find_removed(&self, names: &[String]) -> Result<(), CommandError> {
        if self.removed.get().is_some() || self.are_in_the_source(names) {
            return Ok(());
        }
        let mut found = Removed::default();
        // Without an id there is no state of ours; whoever needs one says what is missing.
        if let Ok(repository) = self.repository_id() {
            let store = self.store()?;
            let known: BTreeSet<String> = self.state_keys().into_iter().collect();
            let mut keys: BTreeSet<String> = store.keys().await?.into_iter().collect();
            if !store.lists().await? {
                keys.extend(self.guessed_keys(names));
            }
            let wanted = self.context.global.environment.as_deref();
            let unknown = keys.into_iter().filter(|key| !known.contains(key)).filter(|key| match wanted {
                Some(environment) => key.split_once('/').is_some_and(|(own, _)| own == environment),
                None => true,
            });
            let reads = unknown.map(|key| read(store.as_ref(), repository, key));
            let reads = stream::iter(reads.collect::<Vec<_>>()).buffered(AT_ONCE);
            for (key, state) in reads.try_collect::<Vec<_>>().await? {
                match state {
                    Left::Ours(state) => self.sort_in(&mut found, &key, &state),
                    Left::Unreadable(reason) => found.unreadable.push((key, reason)),
                    Left::Nothing => {}
                }
            }
        }
        let _ = self.removed.set(found);
        Ok(())
    }

    /// Whether all that was asked for is in the source: then nobody asked for what left it. A layer has stacks of both.
    fn are_in_the_source(&self, names: &[String]) -> bool {
        let environment = self.context.global.environment.as_deref();
        !names.is_empty()
            && !names.iter().any(|name| name.starts_with("layer:"))
            && self.repository.select(names, environment).is_ok()
    }

    /// What was found; nothing if nobody looked.
    pub(crate) fn removed(&self) -> &[RemovedStack] {
        self.removed.get().map(|removed| removed.stacks.as_slice()).unwrap_or_default()
    }

    /// States of this repository that no run of this environment is about.
    pub(crate) fn states_elsewhere(&self) -> &[String] {
        self.removed.get().map(|removed| removed.elsewhere.as_slice()).unwrap_or_default()
    }

    /// States that cannot be read, and that no stack of the source has.
    pub(crate) fn unreadable_states(&self) -> &[(String, String)] {
        self.removed.get().map(|removed| removed.unreadable.as_slice()).unwrap_or_default()
    }

    pub(crate) fn removed_stack(&self, name: &str) -> Option<&RemovedStack> {
        self.removed().iter().find(|removed| removed.stack.name == name)
    }

    /// Says what a plan cannot show: code of OpenTofu that is gone, states of environments that are gone.
    pub(crate) fn tell_removed(&self, selected: &[String]) {
        let printer = self.context.printer;
        for removed in self.removed().iter().filter(|removed| removed.tofu.is_some()) {
            if selected.is_empty() {
                let problem = removed.problem();
                printer.event(&serde_json::json!({"event": "removed-stack", "stack": removed.stack.name, "error": problem}));
                printer.note(problem.render().replacen("error:", "warning:", 1));
            }
        }
        for key in self.states_elsewhere() {
            let environment = key.split('/').next().unwrap_or_default();
            printer.event(&serde_json::json!({"event": "unplanned-state", "key": key}));
            printer.note(format!(
                "warning: the store has the state `{key}`, which is in no stack of the source; `strata -e {environment} plan` shows what is left of it"
            ));
        }
    }

    /// Keys that a name on the command line can mean.
    fn guessed_keys(&self, names: &[String]) -> Vec<String> {
        let environments: BTreeSet<String> = match &self.context.global.environment {
            Some(environment) => BTreeSet::from([environment.clone()]),
            None => {
                let mut all: BTreeSet<String> =
                    self.repository.environments().into_iter().map(str::to_owned).collect();
                all.insert(strata_source::DEFAULT_ENVIRONMENT.to_owned());
                all
            }
        };
        let names = names.iter().filter(|name| !name.contains(':'));
        names
            .flat_map(|name| {
                let own = bare_name(name);
                environments.iter().map(move |environment| format!("{environment}/{own}"))
            })
            .collect()
    }

    fn sort_in(&self, found: &mut Removed, key: &str, state: &ReplayedState) {
        let Some((environment, name)) = key.split_once('/') else { return };
        let addresses = || {
            let recorded = state.document.resources.keys();
            recorded.chain(state.open.iter().map(|entry| &entry.address))
        };
        // An address names its environment unless that was the stack's own.
        let is_default = match addresses().next() {
            Some(address) => address.environment().is_none(),
            None => self.repository.stacks().iter().any(|entry| entry.default_environment == environment),
        };
        let asked = self.context.global.environment.as_deref();
        let taken = self.repository.stacks().iter().any(|entry| entry.name.value == name);
        // Without `-e` a run is about each stack in its own environment, and about one of a name.
        let mine = match asked {
            Some(asked) => asked == environment,
            None => is_default && !taken && !found.stacks.iter().any(|other| other.stack.name == name),
        };
        if !mine {
            let known = self.repository.environments().contains(&environment);
            if asked.is_none() && (!known || is_default) {
                found.elsewhere.push(key.to_owned());
            }
            return;
        }
        let layer = layer_of(addresses());
        let objects: BTreeSet<&Address> = addresses().collect();
        let tofu = match &state.document.tofu {
            Some(folder) => Some(folder.clone()),
            // What an older version wrote says only that there are outputs and nothing that has them.
            None if objects.is_empty() => Some(format!("stacks/{name}")),
            None => None,
        };
        found.stacks.push(RemovedStack {
            stack: self.repository.removed(name, environment, is_default, layer),
            objects: objects.len(),
            tofu,
        });
    }

    /// The stacks that are left of the arguments and that only the store knows.
    pub(super) fn select_removed(&self, arguments: &[String]) -> Vec<&EffectiveStack> {
        let wanted = |removed: &&RemovedStack| {
            arguments.is_empty() || arguments.iter().any(|argument| is_meant(argument, &removed.stack))
        };
        self.removed().iter().filter(wanted).map(|removed| &removed.stack).collect()
    }

    /// Whether an argument means a stack that only the store knows.
    pub(super) fn means_removed(&self, argument: &str) -> bool {
        self.removed().iter().any(|removed| is_meant(argument, &removed.stack))
    }

    /// A removed stack, ready to be planned: nothing of it is wanted.
    pub(super) fn open_removed(
        &self,
        stack: &EffectiveStack,
        mut targets: Targets,
    ) -> Result<StackSession, CommandError> {
        let own = cluster_target(&stack.name);
        let mut view = self.empty_view(stack)?;
        view.removed = Some(stack.name.clone());
        targets.insert(&own, std::sync::Arc::new(RemovedCluster::new(&stack.name)));
        Ok(StackSession {
            name: stack.name.clone(),
            layer: layer(stack),
            view,
            run: self.run(targets, None)?,
            source_digest: self.source_digest(stack),
            outputs: std::collections::BTreeMap::new(),
            wrapped_key: None,
            removed: true,
            cluster: None,
        })
    }
}

/// In which order stacks are worked on: removed workloads go first, what they stood on goes last.
pub(super) fn in_order(selected: Vec<&EffectiveStack>, destroy: bool) -> Vec<&EffectiveStack> {
    let (removed, mut kept): (Vec<_>, Vec<_>) =
        selected.into_iter().partition(|stack| matches!(stack.model, Model::Removed));
    // What depends on a lower layer goes before it.
    if destroy {
        kept.reverse();
    }
    let (below, mut first): (Vec<_>, Vec<_>) =
        removed.into_iter().partition(|stack| stack.layer == Layer::Hypervisors);
    first.sort_by_key(|stack| std::cmp::Reverse(layer(stack)));
    first.into_iter().chain(kept).chain(below).collect()
}

/// `web`, `test/web`, `stacks/web`, `hypervisors/pve.yaml`, `layer:standalone`.
fn is_meant(argument: &str, stack: &EffectiveStack) -> bool {
    if let Some(layer) = argument.strip_prefix("layer:") {
        return stack.layer.as_str() == layer;
    }
    argument == super::key(stack) || bare_name(argument) == stack.name
}

/// The name of a stack in a path to where it stood.
fn bare_name(argument: &str) -> &str {
    let path = argument.strip_prefix("./").unwrap_or(argument).trim_end_matches('/');
    let below = ["stacks/", "clusters/", "hypervisors/"].iter().find_map(|folder| path.strip_prefix(folder));
    let name = below.unwrap_or(path);
    ["/stack.yaml", "/cluster.yaml", ".yaml"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
}

fn layer_of<'a>(addresses: impl Iterator<Item = &'a Address> + Clone) -> Layer {
    let mut kinds = addresses.map(Address::kind);
    if kinds.clone().any(strata_proxmox::kinds::is_datacenter) {
        return Layer::Hypervisors;
    }
    let of_cluster = |kind| matches!(kind, kinds::MACHINE | kinds::BOOTSTRAP | kinds::KUBERNETES);
    if kinds.any(of_cluster) { Layer::Platforms } else { Layer::Standalone }
}

enum Left {
    Ours(Box<ReplayedState>),
    Unreadable(String),
    /// Somebody else's, or of a stack that was destroyed.
    Nothing,
}

async fn read(store: &dyn Store, repository: &str, key: String) -> Result<(String, Left), StoreError> {
    let lineage = Lineage::derive(repository, &key);
    let state = async {
        let journal = store.read_journal(&key).await?;
        Ok::<_, StoreError>((store.read(&key).await?, journal))
    };
    let (document, journal) = match state.await {
        Ok(state) => state,
        Err(
            error @ (StoreError::Damaged { .. }
            | StoreError::Sealed { .. }
            | StoreError::Newer { .. }
            | StoreError::Journal { .. }),
        ) => return Ok((key, Left::Unreadable(error.to_string()))),
        Err(error) => return Err(error),
    };
    let ours = match &document {
        Some(document) => document.lineage == lineage,
        // A first apply that died. Whose it was is told by the names and marks of what it began.
        None => serde_json::to_string(&journal).is_ok_and(|text| text.contains(lineage.short())),
    };
    if !ours {
        return Ok((key, Left::Nothing));
    }
    let state = replay(document.unwrap_or_else(|| StateDocument::new(lineage, &key)), journal);
    let document = &state.document;
    let empty = document.resources.is_empty()
        && state.open.is_empty()
        && document.outputs.is_empty()
        && document.tofu.is_none();
    Ok((key, if empty { Left::Nothing } else { Left::Ours(Box::new(state)) }))
}
