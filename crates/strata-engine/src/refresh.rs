//! Looks at everything that a plan is about: each object once, all targets side by side.

use std::collections::BTreeMap;

use futures::future::try_join_all;
use strata_resource::{Address, Lineage, ResourceGraph, Spec, identity_of};
use strata_state::{StateDocument, StateResource};

use crate::run::{EngineError, Providers};
use crate::{Sighting, Wanted};

/// What is live.
#[derive(Debug, Clone, Default)]
pub struct Live {
    /// Under the identity that the source asks for, or, for what left the source, that the state knows.
    pub current: BTreeMap<Address, Sighting>,
    /// Under the identity that the state knows, where the source now asks for another.
    pub former: BTreeMap<Address, Sighting>,
    /// Older objects that wait to be deleted, in the order of the state.
    pub deposed: BTreeMap<Address, Vec<Sighting>>,
}

enum Slot {
    Current,
    Former,
    Deposed,
}

struct Question<'a> {
    slot: Slot,
    address: &'a Address,
    target: &'a str,
    spec: &'a Spec,
    recorded: Option<&'a StateResource>,
}

/// Looks at every object of the graph and of the state.
pub async fn refresh(
    graph: &ResourceGraph,
    state: &StateDocument,
    lineage: &Lineage,
    providers: &Providers,
) -> Result<Live, EngineError> {
    let questions = questions(graph, state);
    let mut by_target: BTreeMap<&str, Vec<&Question<'_>>> = BTreeMap::new();
    for question in &questions {
        by_target.entry(question.target).or_default().push(question);
    }
    let asked = by_target.into_iter().map(|(target, questions)| async move {
        let provider = providers.get(target)?;
        let wanted: Vec<Wanted<'_>> = questions
            .iter()
            .map(|question| Wanted {
                address: question.address,
                spec: question.spec,
                recorded: question.recorded,
                lineage,
            })
            .collect();
        let answers = provider
            .observe_all(&wanted)
            .await
            .map_err(|error| EngineError::Observe { target: target.to_owned(), error: Box::new(error) })?;
        Ok::<_, EngineError>(questions.into_iter().zip(answers).collect::<Vec<_>>())
    });
    let mut live = Live::default();
    for (question, sighting) in try_join_all(asked).await?.into_iter().flatten() {
        let address = question.address.clone();
        match question.slot {
            Slot::Current => {
                live.current.insert(address, sighting);
            }
            Slot::Former => {
                live.former.insert(address, sighting);
            }
            Slot::Deposed => live.deposed.entry(address).or_default().push(sighting),
        }
    }
    Ok(live)
}

fn questions<'a>(graph: &'a ResourceGraph, state: &'a StateDocument) -> Vec<Question<'a>> {
    let mut questions = Vec::with_capacity(graph.len());
    for resource in graph.iter() {
        let (address, target, spec) = (&resource.address, resource.target.as_str(), &resource.spec);
        let recorded = state.resources.get(address);
        let moved = recorded.filter(|recorded| {
            identity_of(address.kind(), &recorded.spec) != identity_of(address.kind(), spec)
        });
        match moved {
            // What the state knows says nothing about another identity.
            Some(former) => {
                questions.push(Question { slot: Slot::Current, address, target, spec, recorded: None });
                questions.push(Question {
                    slot: Slot::Former,
                    address,
                    target: &former.target,
                    spec: &former.spec,
                    recorded: Some(former),
                });
            }
            None => questions.push(Question { slot: Slot::Current, address, target, spec, recorded }),
        }
    }
    for (address, recorded) in &state.resources {
        let target = recorded.target.as_str();
        if graph.get(address).is_none() {
            let recorded = Some(recorded);
            let spec = &state.resources[address].spec;
            questions.push(Question { slot: Slot::Current, address, target, spec, recorded });
        }
        for deposed in &recorded.deposed {
            questions.push(Question {
                slot: Slot::Deposed,
                address,
                target,
                spec: &deposed.spec,
                recorded: None,
            });
        }
    }
    questions
}
