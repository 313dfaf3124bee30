//! Objects that stand under a wanted identity and are ours under another address of the repository: most likely they were renamed in the
//! source, and nobody wrote that down.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strata_resource::{Address, Lineage, Resource, Spec};
use strata_state::{StateResource, replay};

use crate::moves::is_known_twice;
use crate::object_key::ObjectKey;
use crate::refresh::{Live, answers_in};
use crate::run::{Run, StackView};
use crate::{Look, Sighting, Unmanaged, Wanted};

/// Where a stack stands in its repository.
#[derive(Debug, Clone)]
pub struct Home {
    /// The repository's id.
    pub repository: String,
    /// The stack's own file: there can stand what was moved.
    pub file: String,
    /// The states that the source speaks of, by their keys, and whether the objects of each can be moved.
    pub states: Arc<BTreeMap<String, bool>>,
}

/// What an object of ours is called, that stands where another one is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownAs {
    pub address: Address,
    /// The key of its state.
    pub key: String,
    /// That state knows it; otherwise only its ownership mark says so.
    pub recorded: bool,
    /// The source has no such stack any more.
    pub stack_left: bool,
    /// It can be moved to the stack that is planned.
    pub movable: bool,
}

/// One state of the repository.
struct Known {
    key: String,
    lineage: Lineage,
    resources: BTreeMap<Address, StateResource>,
}

impl Run {
    /// Of everything that is wanted and whose identity something else has: what that is called in this repository, if it is of it. What a
    /// state or a mark says is proven by a look. It is asked only where a plan is refused, so it may cost something.
    pub(crate) async fn known_elsewhere(
        &self,
        stack: &StackView,
        own: &BTreeMap<Address, StateResource>,
        live: &Live,
        look: &Look,
    ) -> BTreeMap<Address, KnownAs> {
        let Some(home) = &stack.home else { return BTreeMap::new() };
        let taken = stack.graph.iter().filter_map(|resource| match live.current.get(&resource.address) {
            Some(Sighting::Unmanaged(unmanaged)) => Some((resource, unmanaged)),
            _ => None,
        });
        let taken: Vec<(&Resource, &Unmanaged)> = taken.collect();
        let unwanted: Vec<(&Address, &StateResource)> = own
            .iter()
            .filter(|(address, _)| stack.graph.get(address).is_none())
            .filter(|(address, _)| matches!(live.current.get(*address), Some(Sighting::Ours(_))))
            .collect();
        if taken.is_empty() && unwanted.is_empty() {
            return BTreeMap::new();
        }
        let mut states =
            vec![Known { key: stack.key.clone(), lineage: stack.lineage.clone(), resources: own.clone() }];
        states.extend(self.other_states(stack, home).await);
        let mut found: BTreeMap<Address, KnownAs> =
            unwanted.into_iter().filter_map(|one| known_twice(one, &states, stack, home)).collect();
        for (resource, unmanaged) in taken {
            if let Some(known) = self.known_as(resource, unmanaged, &states, stack, home, look).await {
                found.insert(resource.address.clone(), known);
            }
        }
        found
    }

    async fn known_as(
        &self,
        resource: &Resource,
        unmanaged: &Unmanaged,
        states: &[Known],
        stack: &StackView,
        home: &Home,
        look: &Look,
    ) -> Option<KnownAs> {
        let object = ObjectKey::of(resource.kind(), &resource.target, &resource.spec);
        let found = |state: &Known, address: &Address, recorded: bool| KnownAs {
            address: address.clone(),
            key: state.key.clone(),
            recorded,
            stack_left: !home.states.contains_key(&state.key),
            movable: environment(&state.key) == environment(&stack.key)
                && address.kind() == resource.kind()
                && [&state.key, &stack.key].iter().all(|key| home.states.get(*key).copied().unwrap_or(true)),
        };
        for state in states {
            for (address, record) in &state.resources {
                if ObjectKey::of_record(address.kind(), record) == object
                    && *address != resource.address
                    && self
                        .is_ours(&record.target, address, &record.spec, Some(record), &state.lineage, look)
                        .await
                {
                    return Some(found(state, address, true));
                }
            }
        }
        let (lineage, address) = unmanaged.mark.as_ref()?;
        let address: Address = address.parse().ok()?;
        let marked = states
            .iter()
            .find(|state| state.lineage.as_str() == lineage || state.lineage.short() == lineage)?;
        let ours =
            self.is_ours(&resource.target, &address, &resource.spec, None, &marked.lineage, look).await;
        (ours && address != resource.address).then(|| found(marked, &address, false))
    }

    /// Whether a look proves an object to be the one of an address.
    async fn is_ours(
        &self,
        target: &str,
        address: &Address,
        spec: &Spec,
        recorded: Option<&StateResource>,
        lineage: &Lineage,
        look: &Look,
    ) -> bool {
        let Ok(provider) = self.providers.get(target) else { return false };
        let wanted = [Wanted { address, spec, recorded, begun: None, lineage }];
        match answers_in(look, provider.as_ref(), &wanted).await {
            Ok(seen) => matches!(seen.first(), Some(Sighting::Ours(_))),
            Err(_) => false,
        }
    }

    /// The other states of the repository. What cannot be read says nothing.
    async fn other_states(&self, stack: &StackView, home: &Home) -> Vec<Known> {
        let listed = self.store.keys().await.unwrap_or_default();
        let keys: BTreeSet<String> = listed.into_iter().chain(home.states.keys().cloned()).collect();
        let mut states = Vec::new();
        for key in keys.into_iter().filter(|key| *key != stack.key) {
            let lineage = Lineage::derive(&home.repository, &key);
            let mut resources = BTreeMap::new();
            if let Ok(journal) = self.store.read_journal(&key).await
                && let Ok(Some(document)) = self.store.read(&key).await
                && document.lineage == lineage
            {
                resources = replay(document, journal).document.resources;
            }
            states.push(Known { key, lineage, resources });
        }
        states
    }
}

/// An object that is to be removed here and that another state of the environment has, too: one of them is older than a move. A target of the same
/// name can be another datacenter in another environment.
fn known_twice(
    own: (&Address, &StateResource),
    states: &[Known],
    stack: &StackView,
    home: &Home,
) -> Option<(Address, KnownAs)> {
    let others = states
        .iter()
        .filter(|state| state.key != stack.key && environment(&state.key) == environment(&stack.key));
    others.flat_map(|state| state.resources.iter().map(move |other| (state, other))).find_map(
        |(state, other)| {
            is_known_twice(own, other).then(|| {
                let stack_left = !home.states.contains_key(&state.key);
                let (address, key) = (other.0.clone(), state.key.clone());
                (own.0.clone(), KnownAs { address, key, recorded: true, stack_left, movable: false })
            })
        },
    )
}

fn environment(key: &str) -> &str {
    key.split_once('/').map_or("", |(environment, _)| environment)
}

impl KnownAs {
    /// The line that says where it went, for the source: addresses there name no environment.
    fn moved_line(&self, to: &Address) -> String {
        let (from, to) = match self.stack_left && self.address.name() == to.name() {
            true => (self.address.stack().to_owned(), to.stack().to_owned()),
            false => (bare(&self.address), bare(to)),
        };
        format!("moved: [{{from: {from}, to: {to}}}]")
    }

    /// What to do about it, where `wanted` is to stand; `both` if the source has either.
    pub(crate) fn hint(&self, wanted: &Address, both: bool, file: &str) -> String {
        let Self { address, .. } = self;
        if both {
            return format!(
                "its identity is free once `{address}` has left it: apply without `{wanted}` first, or give that one another identity"
            );
        }
        if !self.movable {
            return format!("it cannot become `{wanted}`: give that one another identity");
        }
        let line = self.moved_line(wanted);
        let write = format!("write `{line}` into `{file}`; nothing else of it changes");
        if !self.recorded {
            let stack = address.stack();
            return format!("no state knows it: `strata state recover {stack}` records it; then {write}");
        }
        if self.stack_left && line.matches('/').count() == 0 {
            return format!("if stack `{}` was renamed, {write}", address.stack());
        }
        let how = if address.stack() == wanted.stack() { "renamed" } else { "moved here" };
        format!("if it was {how}, {write}")
    }
}

fn bare(address: &Address) -> String {
    format!("{}/{}/{}", address.stack(), address.kind(), address.name())
}
