//! Objects that get another address, in their state or in another one. A move itself changes nothing remote: the record goes, and what its
//! address shows up in (the ownership mark, perhaps the name) is brought up to date by the plan as any other field.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strata_resource::{Address, Lineage, Resource, ResourceGraph};
use strata_state::{
    Action, Departed, Destination, Effect, JournalRecord, MadeAs, OpenEntry, StateDocument, StateResource,
    Store, StoreError, replay,
};

use crate::object_key::ObjectKey;
use crate::run::{EngineError, LockedRun};

/// One object that gets another address, as the state of a stack sees it.
#[derive(Debug, Clone)]
pub enum Move {
    Within {
        from: Address,
        to: Address,
    },
    /// From another state, with the record as this one will have it.
    Arrival {
        from: Address,
        from_key: String,
        to: Address,
        record: Box<StateResource>,
    },
    /// To another state.
    Departure {
        from: Address,
        to: Address,
        to_key: String,
    },
}

/// The same as a plan shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedMove {
    pub from: Address,
    pub to: Address,
    /// The state that it comes from, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_key: Option<String>,
    /// The state that it goes to, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_key: Option<String>,
}

impl Move {
    pub fn planned(&self) -> PlannedMove {
        let (from, to, from_key, to_key) = match self {
            Self::Within { from, to } => (from, to, None, None),
            Self::Arrival { from, from_key, to, .. } => (from, to, Some(from_key.clone()), None),
            Self::Departure { from, to, to_key } => (from, to, None, Some(to_key.clone())),
        };
        PlannedMove { from: from.clone(), to: to.clone(), from_key, to_key }
    }

    /// What the document says when it is done. Done twice it is the same.
    pub fn apply_to(&self, document: &mut StateDocument) {
        match self {
            Self::Within { from, to } => {
                let lineage = document.lineage.clone();
                if let Some(mut record) = document.resources.remove(from) {
                    keep_origin(&mut record, from, &lineage, None);
                    document.resources.entry(to.clone()).or_insert(record);
                }
                for record in document.resources.values_mut() {
                    if record.depends_on.remove(from) {
                        record.depends_on.insert(to.clone());
                    }
                }
            }
            Self::Arrival { to, record, .. } => {
                // What comes back is here again.
                let arrives = ObjectKey::of_record(to.kind(), record);
                document.departed.retain(|gone| key_of(gone) != arrives);
                document.resources.entry(to.clone()).or_insert_with(|| (**record).clone());
            }
            Self::Departure { from, .. } => {
                if let Some(record) = document.resources.remove(from) {
                    note_departure(document, from, &record);
                }
                for record in document.resources.values_mut() {
                    record.depends_on.remove(from);
                }
            }
        }
    }
}

fn key_of(departed: &Departed) -> ObjectKey {
    ObjectKey::of(departed.address.kind(), &departed.target, &departed.identity)
}

/// Only what derives from this state can be derived here again.
fn note_departure(document: &mut StateDocument, from: &Address, record: &StateResource) {
    let made = record.made_as.as_deref();
    if made.is_some_and(|made| made.lineage != document.lineage) {
        return;
    }
    let address = made.map_or(from, |made| &made.address).clone();
    let again = made.map_or(0, |made| made.again);
    let identity = address.kind().table().identity_of(&record.spec);
    let departed = Departed { address, again, target: record.target.clone(), identity };
    if !document.departed.contains(&departed) {
        document.departed.push(departed);
    }
}

/// Objects that are wanted and not there yet, and that would derive the same as one that was made here before them and lives under another
/// address, or in another state. How many there are is part of what they derive.
pub fn made_again(
    document: &StateDocument,
    begun: &BTreeSet<Address>,
    graph: &ResourceGraph,
) -> BTreeMap<Address, MadeAs> {
    let lineage = &document.lineage;
    let is_new = |address: &Address| !document.resources.contains_key(address) && !begun.contains(address);
    let renamed = |address: &Address, again: u32| {
        document
            .resources
            .values()
            .filter_map(|record| record.made_as.as_deref())
            .any(|made| made.address == *address && made.lineage == *lineage && made.again == again)
    };
    let taken = |resource: &Resource, again: u32| {
        let key = ObjectKey::of(resource.kind(), &resource.target, &resource.spec);
        let named = key.clone().renamed(lineage, &lineage.short_of(again));
        // The name of a volume holds the lineage; a guest has its VMID, and what derives from its address.
        if key.clone().renamed(lineage, "") != key {
            return document.departed.iter().any(|gone| key_of(gone) == named);
        }
        renamed(&resource.address, again)
            || document.departed.iter().any(|gone| gone.address == resource.address && gone.again == again)
    };
    let again = |resource: &Resource| {
        let again = (0..).find(|again| !taken(resource, *again)).filter(|again| *again > 0)?;
        let (address, lineage) = (resource.address.clone(), lineage.clone());
        Some((address.clone(), MadeAs { address, lineage, digest_key: None, again }))
    };
    graph.iter().filter(|resource| is_new(&resource.address)).filter_map(again).collect()
}

/// Notes where an object was made, the first time it is moved.
pub fn keep_origin(
    record: &mut StateResource,
    address: &Address,
    lineage: &Lineage,
    digest_key: Option<String>,
) {
    let (address, lineage) = (address.clone(), lineage.clone());
    record.made_as.get_or_insert_with(|| Box::new(MadeAs { address, lineage, digest_key, again: 0 }));
}

/// Whether two records are about one object.
pub fn is_same_object(address: &Address, one: &StateResource, other: &StateResource) -> bool {
    ObjectKey::of_record(address.kind(), one) == ObjectKey::of_record(address.kind(), other)
}

/// Whether two records are about one object, whatever their addresses. What everybody has who writes the same is nobody's.
pub fn is_known_twice(one: (&Address, &StateResource), other: (&Address, &StateResource)) -> bool {
    let key = |(address, record): (&Address, &StateResource)| ObjectKey::of_record(address.kind(), record);
    !one.0.kind().table().seen_by_record && key(one) == key(other)
}

/// Whether two records would be about one object if the lineage in their names were the same.
pub fn is_same_but_for_lineage(
    address: &Address,
    (one, lineage): (&StateResource, &Lineage),
    (target, spec, other): (&str, &strata_resource::Spec, &Lineage),
) -> bool {
    let key = ObjectKey::of_record(address.kind(), one);
    // What was moved before is still called as it was made.
    let made = one.made_as.as_ref().map_or(lineage, |made| &made.lineage);
    key.renamed(made, other.short()) == ObjectKey::of(address.kind(), target, spec)
}

impl LockedRun {
    /// Gives objects other addresses within this state.
    pub async fn rename(&mut self, moves: &[Move]) -> Result<(), EngineError> {
        let within: Vec<&Move> = moves.iter().filter(|one| matches!(one, Move::Within { .. })).collect();
        if within.iter().all(|one| !self.state.document.resources.contains_key(&one.planned().from)) {
            return Ok(());
        }
        self.edit(|document| within.iter().for_each(|one| one.apply_to(document))).await
    }

    /// Gives objects to another state that is locked too. Wherever this ends, an object is in one of the states, and an entry of the
    /// journal says of which one it is to leave: first that is written, then the state that gets it, then the one that it leaves.
    pub async fn hand_over(&mut self, to: &mut Self, arrivals: &[Move]) -> Result<(), EngineError> {
        if let Some(entry) = to.state.open.first() {
            return Err(EngineError::Open { address: entry.address.to_string() });
        }
        let key = to.state.document.key.clone();
        let entries = self.begin_departures(&key, arrivals).await?;
        let missing = |one: &&Move| !to.state.document.resources.contains_key(&one.planned().to);
        let new: Vec<&Move> = arrivals.iter().filter(missing).collect();
        if !new.is_empty() {
            to.edit(|document| new.iter().for_each(|one| one.apply_to(document))).await?;
        }
        self.end_departures(entries).await
    }

    async fn begin_departures(
        &mut self,
        key: &str,
        arrivals: &[Move],
    ) -> Result<Vec<OpenEntry>, EngineError> {
        if let Some(entry) = self.state.open.first() {
            return Err(EngineError::Open { address: entry.address.to_string() });
        }
        let mut entries = Vec::new();
        for PlannedMove { from, to, .. } in arrivals.iter().map(Move::planned) {
            let Some(record) = self.state.document.resources.get(&from) else { continue };
            self.state.last_id += 1;
            entries.push(OpenEntry {
                id: self.state.last_id,
                action: Action::Update,
                target: record.target.clone(),
                identity: from.kind().table().identity_of(&record.spec),
                spec_digest: String::new(),
                becomes: None,
                begun: self.run.clock.now(),
                tasks: Vec::new(),
                to: Some(Box::new(Destination { key: key.to_owned(), address: to })),
                address: from,
            });
        }
        self.state.unfolded |= !entries.is_empty();
        self.state.open.extend(entries.iter().cloned());
        self.append(entries.iter().cloned().map(JournalRecord::Begin).collect()).await?;
        Ok(entries)
    }

    async fn end_departures(&mut self, entries: Vec<OpenEntry>) -> Result<(), EngineError> {
        let end = |entry: &OpenEntry| JournalRecord::End {
            id: entry.id,
            address: entry.address.clone(),
            effect: Effect::Remove,
        };
        self.append(entries.iter().map(end).collect()).await?;
        for entry in entries {
            self.state.open.retain(|open| open.id != entry.id);
            let to = entry.address.clone();
            // Whatever needed it here cannot name it any more.
            Move::Departure { from: entry.address, to, to_key: String::new() }
                .apply_to(&mut self.state.document);
        }
        let before = self.state.document.serial;
        self.save().await?;
        self.edits += self.state.document.serial - before;
        Ok(())
    }

    async fn append(&mut self, mut records: Vec<JournalRecord>) -> Result<(), EngineError> {
        if records.is_empty() {
            return Ok(());
        }
        self.tally.seal(&mut records);
        let written = self.lock.append_journal(&records).await;
        if written.is_err() {
            self.tally.doubt();
        }
        Ok(written?)
    }

    /// Whether the object of a move that was interrupted is in another state by now. Only whoever holds this lock moves it out of here, so
    /// what the others say of it does not change meanwhile. It may have been moved on from where it was to go, and a state that cannot be
    /// read may have it: then it stays open, as an object in two states would be removed by one of them.
    pub(crate) async fn has_arrived(&self, entry: &OpenEntry) -> Result<bool, EngineError> {
        let store = self.run.store.as_ref();
        let object = ObjectKey::of_entry(entry);
        let first = entry.to.iter().map(|to| to.key.clone());
        let mut keys: Vec<String> = first.chain(store.keys().await?).collect();
        keys.retain(|key| *key != self.state.document.key);
        let mut unreadable = None;
        for key in keys {
            let document = match read(store, &key).await {
                Ok(document) => document,
                Err(error) if error.is_of_one_state() => {
                    unreadable.get_or_insert((key, Box::new(error)));
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let mut known = document.iter().flat_map(|document| &document.resources);
            if known.any(|(address, record)| ObjectKey::of_record(address.kind(), record) == object) {
                return Ok(true);
            }
        }
        match unreadable {
            None => Ok(false),
            Some((key, error)) => {
                Err(EngineError::Arrival { address: entry.address.to_string(), key, error })
            }
        }
    }
}

/// A state with its journal, whoever works on it.
async fn read(store: &dyn Store, key: &str) -> Result<Option<StateDocument>, StoreError> {
    // The journal first: a writer folds it into the document and then clears it.
    let journal = store.read_journal(key).await?;
    Ok(store.read(key).await?.map(|document| replay(document, journal).document))
}

#[cfg(test)]
mod tests;
