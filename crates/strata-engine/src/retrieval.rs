//! Finding again what a lost state knew: ownership marks, names that only we give, and who answers to our keys.
//!
//! Nothing remote is changed, and nothing is guessed. An object is recorded if it proves to be ours without a record. One that can carry no
//! mark is recorded only if it is exactly what the source asks for, and is named apart. Whatever cannot be seen, or proves nothing, is left out.

use std::collections::{BTreeMap, BTreeSet};

use strata_resource::{Address, Resource, Spec};
use strata_state::ReplayedState;

use crate::adoption::{Adoption, Proofs};
use crate::planner::out_of_sight;
use crate::refresh::answers;
use crate::run::{EngineError, LockedRun, Run, StackView};
use crate::{Sighting, Unseen, Wanted};

/// What was found of a stack that its state does not know.
#[derive(Debug, Clone, Default)]
pub struct Retrieval {
    /// What the state is to say.
    pub adoption: Adoption,
    /// Among these: objects that can carry no mark and are exactly what the source asks for.
    pub by_content: BTreeSet<Address>,
    /// Objects of which nobody can say whether they are there.
    pub unknown: BTreeMap<Address, Unseen>,
    /// Objects with a wanted identity that nothing proves ours, and why not.
    pub unproven: BTreeMap<Address, String>,
    /// What the source asks for and is not there.
    pub missing: BTreeSet<Address>,
}

impl Retrieval {
    /// Whether there is nothing that the state should say and does not.
    pub fn is_empty(&self) -> bool {
        self.adoption.records.is_empty()
    }

    /// Whether nothing was left out. What is not there is for the next apply to make.
    pub fn is_complete(&self) -> bool {
        self.unknown.is_empty() && self.unproven.is_empty() && self.adoption.refused.is_empty()
    }

    /// The fields of each record that no remote gives back: they say what the source says.
    pub fn unreadable(&self) -> impl Iterator<Item = (&Address, Vec<&'static str>)> {
        self.adoption.records.iter().filter_map(|(address, record)| {
            let fields = out_of_reach(address, &record.spec);
            (!fields.is_empty()).then_some((address, fields))
        })
    }
}

fn out_of_reach(address: &Address, spec: &Spec) -> Vec<&'static str> {
    let table = address.kind().table();
    let is_set = |path: &str| {
        let mut parts = path.split('.');
        let first = parts.next().and_then(|first| spec.get(first));
        let last = parts.try_fold(first?, |at, part| at.as_map().filter(|_| part != "*")?.get(part));
        last.map(|_| ())
    };
    let hidden = table.all_fields().filter(|field| field.write_only).map(|field| field.path);
    let sources = table.made_from.into_iter().flat_map(|made_from| made_from.fields.iter().copied());
    let fields: BTreeSet<&'static str> =
        hidden.chain(sources).filter(|path| is_set(path).is_some()).collect();
    fields.into_iter().collect()
}

impl Run {
    /// Looks for what the state does not know, and writes nothing.
    pub async fn retrieve(&self, stack: &StackView, state: &ReplayedState) -> Result<Retrieval, EngineError> {
        if let Some(entry) = state.open.first() {
            return Err(EngineError::Open { address: entry.address.to_string() });
        }
        let live = self.look(&stack.graph, state, &stack.lineage, &crate::Look::default()).await?;
        let mut found = Retrieval::default();
        let (mut proofs, mut unmarked) = (Proofs::new(), Vec::new());
        let known = &state.document.resources;
        for resource in stack.graph.iter().filter(|resource| !known.contains_key(&resource.address)) {
            let (address, table) = (resource.address.clone(), resource.kind().table());
            let sighting = live.current.get(&address).unwrap_or(&Sighting::Absent);
            match sighting {
                Sighting::Ours(observed) => drop(proofs.insert(address, observed.facts.clone())),
                Sighting::Unmanaged(why) if table.mark_field().is_none() && table.is_adoptable() => {
                    unmarked.push((resource, why.to_string()));
                }
                Sighting::Unmanaged(why) => drop(found.unproven.insert(address, why.to_string())),
                Sighting::Absent if table.seen_by_record => drop(proofs.insert(address, Spec::new())),
                Sighting::Absent => drop(found.missing.insert(address)),
                Sighting::Unreachable(why) => {
                    let unseen = Unseen::new(why, "recover again once it answers");
                    found.unknown.insert(address, unseen);
                }
                Sighting::Busy(_) | Sighting::Unknown(_) => {
                    let unseen = out_of_sight(&address, sighting).unwrap_or_default();
                    found.unknown.insert(address, unseen);
                }
            }
        }
        for (resource, why) in unmarked {
            match self.is_as_wanted(stack, resource).await? {
                true => {
                    found.by_content.insert(resource.address.clone());
                    proofs.insert(resource.address.clone(), Spec::new());
                }
                false => drop(found.unproven.insert(resource.address.clone(), why)),
            }
        }
        found.adoption = self.survey(stack, &state.document, &proofs).await?;
        found.leave_out_what_proves_nothing(!known.is_empty());
        self.complete_facts(stack, &mut found.adoption).await?;
        Ok(found)
    }

    /// What is seen only through its record has its facts from a look with that record.
    async fn complete_facts(&self, stack: &StackView, adoption: &mut Adoption) -> Result<(), EngineError> {
        let mut by_target: BTreeMap<String, Vec<Address>> = BTreeMap::new();
        for (address, record) in &adoption.records {
            if address.kind().table().seen_by_record {
                by_target.entry(record.target.clone()).or_default().push(address.clone());
            }
        }
        for (target, addresses) in by_target {
            let wanted: Vec<Wanted<'_>> = addresses
                .iter()
                .filter_map(|address| adoption.records.get_key_value(address))
                .map(|(address, record)| Wanted {
                    address,
                    spec: &record.spec,
                    recorded: Some(record),
                    begun: None,
                    lineage: &stack.lineage,
                })
                .collect();
            let seen = answers(self.providers.get(&target)?.as_ref(), &wanted).await;
            let seen = seen.map_err(|error| EngineError::Observe { target, error: Box::new(error) })?;
            for (address, sighting) in addresses.iter().zip(seen) {
                if let (Some(record), Sighting::Ours(observed)) =
                    (adoption.records.get_mut(address), sighting)
                {
                    record.facts = observed.facts;
                }
            }
        }
        Ok(())
    }

    /// Whether an object that can carry no mark is exactly what the source asks for.
    async fn is_as_wanted(&self, stack: &StackView, resource: &Resource) -> Result<bool, EngineError> {
        let wanted = Wanted {
            address: &resource.address,
            spec: &resource.spec,
            recorded: None,
            begun: Some(&resource.spec),
            lineage: &stack.lineage,
        };
        let provider = self.providers.get(&resource.target)?;
        let seen = answers(provider.as_ref(), &[wanted]).await;
        let seen = seen.map_err(|error| EngineError::Observe {
            target: resource.target.clone(),
            error: Box::new(error),
        })?;
        Ok(matches!(seen.first(), Some(Sighting::Ours(_))))
    }
}

impl LockedRun {
    /// The same, as things are under the lock.
    pub async fn retrieve(&self, stack: &StackView) -> Result<Retrieval, EngineError> {
        self.run.retrieve(stack, &self.state).await
    }
}

impl Retrieval {
    /// What is seen only through its record says nothing by itself: without anything else of its stack it is not recorded.
    fn leave_out_what_proves_nothing(&mut self, has_state: bool) {
        let seen_by_record = |address: &Address| address.kind().table().seen_by_record;
        let Self { adoption, missing, .. } = self;
        let is_there = has_state || adoption.records.keys().any(|address| !seen_by_record(address));
        if !is_there {
            missing.extend(std::mem::take(&mut adoption.records).into_keys());
        }
        let gone: Vec<Address> =
            adoption.refused.keys().filter(|&one| seen_by_record(one)).cloned().collect();
        for address in gone {
            adoption.refused.remove(&address);
            missing.insert(address);
        }
        self.by_content.retain(|address| self.adoption.records.contains_key(address));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use strata_state::StateResource;

    use super::*;

    fn record(spec: serde_json::Value) -> StateResource {
        serde_json::from_value(json!({"target": "t", "spec": spec, "stage": "compute"}))
            .unwrap_or_else(|error| panic!("{error}"))
    }

    fn found(records: &[&str]) -> Retrieval {
        let mut found = Retrieval::default();
        for address in records {
            found.adoption.records.insert(crate::test_kinds::address(address), record(json!({})));
        }
        found
    }

    #[test]
    fn what_is_seen_only_by_its_record_is_no_find_by_itself() {
        let mut alone = found(&["s/schematic/x"]);
        alone.leave_out_what_proves_nothing(false);
        assert!(alone.is_empty() && alone.missing.len() == 1);
        let mut beside = found(&["s/schematic/x", "s/vm/a"]);
        beside.leave_out_what_proves_nothing(false);
        assert_eq!((beside.adoption.records.len(), beside.missing.len()), (2, 0));
        let mut known = found(&["s/schematic/x"]);
        known.leave_out_what_proves_nothing(true);
        assert_eq!(known.adoption.records.len(), 1);
    }

    #[test]
    fn what_is_not_there_is_missing_and_not_refused() {
        let mut gone = found(&["s/vm/a"]);
        let refused = [("s/flux/f", "it is not there"), ("s/vm/b", "somebody else's")];
        for (address, why) in refused {
            gone.adoption.refused.insert(crate::test_kinds::address(address), why.to_owned());
        }
        gone.leave_out_what_proves_nothing(false);
        assert_eq!((gone.missing.len(), gone.adoption.refused.len()), (1, 1));
        assert!(!gone.is_complete());
    }

    #[test]
    fn values_that_no_remote_gives_back_are_named() {
        let mut all = found(&["s/vm/plain"]);
        let spec =
            json!({"vmid": 1, "cloudinit": {"user": "a", "password": "x"}, "clone": {"template": 9000}});
        all.adoption.records.insert(crate::test_kinds::address("s/vm/a"), record(spec));
        let named: Vec<_> = all.unreadable().map(|(address, fields)| (address.to_string(), fields)).collect();
        assert_eq!(named, [("s/vm/a".to_owned(), vec!["clone", "cloudinit.password"])]);
    }
}
