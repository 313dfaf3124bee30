//! Stacks that left the source. Their states are still in the store, and so is what these states know: it is planned as a removal.

use std::collections::BTreeSet;

use futures::stream::{self, StreamExt, TryStreamExt};
use strata_resource::{Address, Lineage};
use strata_source::stack::Layer;
use strata_source::{EffectiveStack, Model};
use strata_state::{ReplayedState, StateDocument, Store, StoreError, replay};

use super::{Workspace, layer};
use crate::error::SessionError;

/// How many states are read at once.
const AT_ONCE: usize = 8;

/// What the store has and the source does not.
#[derive(Default)]
pub(super) struct Removed {
    /// Stacks of the environment at hand.
    pub stacks: Vec<RemovedStack>,
    /// Keys of states in environments that no stack is part of any more.
    pub elsewhere: Vec<String>,
    /// States that cannot be read, and why: nobody can say whose they are.
    pub unreadable: Vec<(String, String)>,
}

pub struct RemovedStack {
    pub stack: EffectiveStack,
    /// How many objects its state knows.
    pub objects: usize,
    /// The folder that its code was in, where OpenTofu made it: without the code nothing of it can be destroyed.
    pub tofu: Option<String>,
}

impl RemovedStack {
    /// The key of its state.
    pub fn key(&self) -> String {
        super::key(&self.stack)
    }

    /// What is wrong, and what helps.
    pub fn problem(&self) -> SessionError {
        let name = &self.stack.name;
        match &self.tofu {
            Some(folder) => SessionError::refused(format!(
                "stack `{name}` is not in the source any more, and what OpenTofu made for it is still there"
            ))
            .hint(format!(
                "only its code can destroy it: put `{folder}` back, `strata destroy {name}`, then remove it"
            )),
            None => SessionError::refused(format!(
                "stack `{name}` is not in the source any more, and its state has {}",
                counted(self.objects)
            ))
            .hint(format!(
                "`strata plan {name}` shows what goes, `strata destroy {name}` removes it; put the stack back to keep it"
            )),
        }
    }
}

pub fn counted(objects: usize) -> String {
    if objects == 1 { "1 object".to_owned() } else { format!("{objects} objects") }
}

impl Workspace {
    /// Looks into the store, once.
    pub async fn find_removed(&self, names: &[String]) -> Result<(), SessionError> {
        if self.removed.get().is_some() || self.are_in_the_source(names) && !self.moves_out_of_removed() {
            return Ok(());
        }
        let mut found = Removed::default();
        // Without an id there is no state of ours; whoever needs one says what is missing.
        if let Ok(repository) = self.repository_id() {
            let store = self.store()?;
            let known: BTreeSet<String> = self.state_keys().into_iter().collect();
            let mut keys: BTreeSet<String> = store.keys().await?.into_iter().collect();
            if !store.lists().await? {
                let moved = self.moved_stacks();
                keys.extend(self.guessed_keys(&[names, &moved].concat()));
            }
            let wanted = self.surroundings.environment.as_deref();
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
        let environment = self.surroundings.environment.as_deref();
        !names.is_empty()
            && !names.iter().any(|name| name.starts_with("layer:"))
            && names.iter().all(|name| match self.pattern(name) {
                // A pattern means nothing that left the source.
                Some(pattern) => {
                    let mut stacks = self.repository.stacks().iter();
                    stacks.any(|entry| pattern.can_match_in(&entry.name.value))
                }
                None => self.repository.select(std::slice::from_ref(name), environment).is_ok(),
            })
    }

    /// What was found; nothing if nobody looked.
    pub fn removed(&self) -> &[RemovedStack] {
        self.removed.get().map(|removed| removed.stacks.as_slice()).unwrap_or_default()
    }

    /// States of this repository that no run of this environment is about.
    pub fn states_elsewhere(&self) -> &[String] {
        self.removed.get().map(|removed| removed.elsewhere.as_slice()).unwrap_or_default()
    }

    /// States that cannot be read, and that no stack of the source has.
    pub fn unreadable_states(&self) -> &[(String, String)] {
        self.removed.get().map(|removed| removed.unreadable.as_slice()).unwrap_or_default()
    }

    pub fn removed_stack(&self, name: &str) -> Option<&RemovedStack> {
        self.removed().iter().find(|removed| removed.stack.name == name)
    }

    /// Keys that a name on the command line can mean.
    fn guessed_keys(&self, names: &[String]) -> Vec<String> {
        let environments: BTreeSet<String> = match &self.surroundings.environment {
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
        let asked = self.surroundings.environment.as_deref();
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
        let objects: BTreeSet<&Address> = addresses().collect();
        let layer = self.surroundings.providers.layer_of(&objects.iter().copied().collect::<Vec<_>>());
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

    /// Without its code nothing of a stack that OpenTofu made can be planned.
    pub(super) fn refuse_removed_code(&self, selected: &[&EffectiveStack]) -> Result<(), SessionError> {
        let removed = selected.iter().filter(|stack| super::is_removed(stack));
        let mut found = removed.filter_map(|stack| self.removed_stack(&stack.name));
        match found.find(|removed| removed.tofu.is_some()) {
            Some(removed) => Err(removed.problem()),
            None => Ok(()),
        }
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

/// `web`, `test/web`, `stacks/web`, `hypervisors/pve.yaml`, `layer:workloads`.
fn is_meant(argument: &str, stack: &EffectiveStack) -> bool {
    if let Some(layer) = argument.strip_prefix("layer:") {
        return Layer::of_word(layer) == Some(stack.layer);
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
