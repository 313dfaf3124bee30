//! Looks at everything that a plan is about: each object once, all targets side by side.

use std::borrow::Cow;
use std::collections::BTreeMap;

use futures::future::try_join_all;
use strata_resource::{Address, Lineage, ResourceGraph, Spec, Value, secret_like};
use strata_state::{OpenEntry, StateDocument, StateResource};

use crate::object_key::ObjectKey;
use crate::recovery::begun_spec;
use crate::run::{EngineError, Providers, Sealing};
use crate::{ErrorClass, Look, Provider, ProviderError, Sighting, Wanted};

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
    recorded: Option<Cow<'a, StateResource>>,
    begun: Option<&'a Spec>,
}

/// Looks at every object of the graph and of the state, as a part of a look at more.
pub async fn refresh(
    graph: &ResourceGraph,
    state: &StateDocument,
    open: &[OpenEntry],
    lineage: &Lineage,
    providers: &Providers,
    look: &Look,
) -> Result<Live, EngineError> {
    let questions = questions(graph, state, open);
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
                recorded: question.recorded.as_deref(),
                begun: question.begun,
                lineage,
            })
            .collect();
        let answers = answers_in(look, provider.as_ref(), &wanted)
            .await
            .map_err(|error| EngineError::Observe { target: target.to_owned(), error: Box::new(error) })?;
        let answers =
            wanted.iter().zip(answers).map(|(wanted, seen)| veiled(wanted, seen, providers.sealing()));
        Ok::<_, EngineError>(questions.into_iter().zip(answers.collect::<Vec<_>>()).collect::<Vec<_>>())
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

/// What a remote gives back of a secret is one, whoever asked for it: the source, the state, or a run that died.
fn veiled(wanted: &Wanted<'_>, sighting: Sighting, sealing: &Sealing) -> Sighting {
    let Sighting::Ours(mut observed) = sighting else { return sighting };
    let recorded = wanted.recorded.map(|recorded| &recorded.spec);
    let peers: Vec<&Spec> = [Some(wanted.spec), recorded, wanted.begun].into_iter().flatten().collect();
    if peers.iter().any(|peer| peer.values().any(Value::has_secret)) {
        let spec = Value::Map(secret_like(std::mem::take(&mut observed.spec), &peers));
        let spec = match sealing.of(wanted.address) {
            Some((key, address)) => spec.sealed(key, address),
            None => spec,
        };
        if let Value::Map(spec) = spec {
            observed.spec = spec;
        }
    }
    Sighting::Ours(observed)
}

/// Asks a provider; an answer that is missing must not be taken for an object that is gone.
pub(crate) async fn answers(
    provider: &dyn Provider,
    wanted: &[Wanted<'_>],
) -> Result<Vec<Sighting>, ProviderError> {
    answers_in(&Look::default(), provider, wanted).await
}

pub(crate) async fn answers_in(
    look: &Look,
    provider: &dyn Provider,
    wanted: &[Wanted<'_>],
) -> Result<Vec<Sighting>, ProviderError> {
    let answers = provider.observe_in(look, wanted).await?;
    if answers.len() != wanted.len() {
        let message = format!("{} answers to {} questions", answers.len(), wanted.len());
        return Err(ProviderError::new(ErrorClass::Internal, message));
    }
    Ok(answers)
}

fn questions<'a>(
    graph: &'a ResourceGraph,
    state: &'a StateDocument,
    open: &'a [OpenEntry],
) -> Vec<Question<'a>> {
    let mut questions = Vec::with_capacity(graph.len());
    for resource in graph.iter() {
        let (address, target, spec) = (&resource.address, resource.target.as_str(), &resource.spec);
        let (kind, recorded) = (address.kind(), state.resources.get(address));
        let moved = recorded
            .filter(|recorded| ObjectKey::of_record(kind, recorded) != ObjectKey::of(kind, target, spec));
        // What the state knows says nothing about another place.
        let known = recorded.filter(|_| moved.is_none()).map(Cow::Borrowed);
        let begun = open.iter().find(|entry| entry.address == *address).and_then(begun_spec);
        questions.push(Question { slot: Slot::Current, address, target, spec, recorded: known, begun });
        questions.extend(moved.map(|former| Question {
            slot: Slot::Former,
            address,
            target: &former.target,
            spec: &former.spec,
            recorded: Some(Cow::Borrowed(former)),
            begun: None,
        }));
    }
    for (address, recorded) in &state.resources {
        if graph.get(address).is_none() {
            // What is staged on a host is ours only where something is open.
            let staged = open.iter().find(|entry| entry.address == *address && address.kind().table().staged);
            questions.push(Question {
                slot: Slot::Current,
                address,
                target: &recorded.target,
                spec: &recorded.spec,
                recorded: Some(Cow::Borrowed(recorded)),
                begun: staged.and_then(begun_spec),
            });
        }
        questions.extend(recorded.deposed.iter().map(|former| Question {
            slot: Slot::Deposed,
            address,
            target: &former.target,
            spec: &former.spec,
            recorded: Some(Cow::Owned(recorded.with_former(former))),
            begun: None,
        }));
    }
    questions
}

#[cfg(test)]
mod tests;
