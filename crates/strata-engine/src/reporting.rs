//! What objects report of themselves that nobody wrote, such as addresses of a DHCP server: asked when a stack was applied, recorded with its facts.
//! No plan waits for it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use strata_resource::{Address, Kind, Spec, Value};
use strata_state::StateDocument;

use crate::events::Event;
use crate::run::{EngineError, LockedRun, Providers};
use crate::{Reported, StopSignal};

/// The first pause before somebody is asked again, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// What an object reported before stays true of it when something else about it changes.
pub(crate) fn keep_reported(kind: Kind, facts: &mut Spec, former: &Spec) {
    for fact in kind.table().reported_facts {
        facts.extend(former.get(*fact).map(|value| ((*fact).to_owned(), value.clone())));
    }
}

/// Asks objects of a state, once.
async fn ask(
    providers: &Providers,
    document: &StateDocument,
    asked: &BTreeSet<Address>,
) -> BTreeMap<Address, Reported> {
    let mut by_target: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for (address, record) in document.resources.iter().filter(|(address, _)| asked.contains(*address)) {
        by_target.entry(&record.target).or_default().push((address, record));
    }
    let mut answered = BTreeMap::new();
    for (target, objects) in by_target {
        let Ok(provider) = providers.get(target) else { continue };
        let answers = provider.report(&objects).await;
        answered.extend(objects.iter().map(|(address, _)| (*address).clone()).zip(answers));
    }
    answered
}

impl LockedRun {
    /// Asks these objects and records what they report. Those that an output needs, and that have reported nothing yet, are asked until they answer, for
    /// as long as that is worth it.
    pub async fn record_reports(
        &mut self,
        asked: &BTreeSet<Address>,
        outputs: &BTreeMap<String, Value>,
        stop: &StopSignal,
    ) -> Result<(), EngineError> {
        let mut answered = ask(&self.run.providers, self.state(), asked).await;
        let needed: BTreeSet<&Address> = outputs.values().flat_map(inputs).map(|(from, _)| from).collect();
        let is_open = |address: &Address| {
            needed.contains(address)
                && !has_reported(self.state(), address)
                && self.state().resources.contains_key(address)
        };
        let mut open: BTreeMap<Address, Duration> = answered
            .iter()
            .filter(|(address, _)| is_open(address))
            .filter_map(|(address, reported)| match reported {
                Reported::NoAnswer { seconds, .. } => Some((address.clone(), Duration::from_secs(*seconds))),
                Reported::Nothing | Reported::Facts(_) => None,
            })
            .collect();
        for (address, patience) in open.iter().filter(|(_, patience)| !patience.is_zero()) {
            self.run
                .events
                .emit(Event::ReportAwaited { address: address.clone(), seconds: patience.as_secs() });
        }
        let (mut waited, mut pause) = (Duration::ZERO, PAUSES.0);
        while open.values().any(|patience| *patience > waited) && !stop.stopping() {
            self.still_held()?;
            tokio::select! {
                biased;
                () = stop.called(1) => break,
                () = tokio::time::sleep(pause) => {}
            }
            waited += pause;
            pause = (pause * 2).min(PAUSES.1);
            let again: BTreeSet<Address> = open
                .iter()
                .filter(|(_, patience)| **patience + pause > waited)
                .map(|(at, _)| at.clone())
                .collect();
            for (address, reported) in ask(&self.run.providers, self.state(), &again).await {
                if !matches!(reported, Reported::NoAnswer { .. }) {
                    open.remove(&address);
                }
                answered.insert(address, reported);
            }
        }
        for address in open.into_keys() {
            if let Some(Reported::NoAnswer { why, .. }) = answered.get(&address) {
                self.run.events.emit(Event::ReportMissing { address, why: why.clone() });
            }
        }
        let mut document = self.state().clone();
        record(&mut document, &answered);
        if document.resources != self.state().resources {
            self.edit(|state| state.resources = document.resources).await?;
        }
        Ok(())
    }
}

fn has_reported(document: &StateDocument, address: &Address) -> bool {
    let facts = document.resources.get(address).map(|record| &record.facts);
    facts.is_some_and(|facts| {
        address.kind().table().reported_facts.first().is_some_and(|first| facts.contains_key(*first))
    })
}

/// Puts reports where they are kept. Where no answer came the former one stays.
fn record(document: &mut StateDocument, answered: &BTreeMap<Address, Reported>) {
    for (address, reported) in answered {
        let (Reported::Facts(facts), Some(record)) = (reported, document.resources.get_mut(address)) else {
            continue;
        };
        let known = address.kind().table().reported_facts;
        record.facts.retain(|fact, _| !known.contains(&fact.as_str()));
        record.facts.extend(facts.clone());
    }
}

/// The outputs of a stack with what its state knows. One that needs what nobody knows yet is left out.
pub fn with_outputs(document: &StateDocument, outputs: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let fact = |address: &Address, name: &str| document.resources.get(address)?.facts.get(name).cloned();
    let filled = outputs.iter().map(|(name, value)| (name.clone(), value.clone().with_inputs(&fact)));
    filled.filter(|(_, value)| value.unfilled().is_none()).collect()
}

/// Everything that a value needs of other objects.
pub fn inputs(value: &Value) -> Vec<(&Address, &str)> {
    match value {
        Value::Input { address, output } => vec![(&**address, output.as_str())],
        Value::List(list) => list.iter().flat_map(inputs).collect(),
        Value::Map(map) => map.values().flat_map(inputs).collect(),
        _ => Vec::new(),
    }
}
