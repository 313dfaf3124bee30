//! Closes what an interrupted run left open, by looking at the remote (docs/ownership.md has the table).

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;
use strata_resource::{Address, FieldPath, Spec, claimed_spec, with_slots};
use strata_state::{
    Action, DeposedObject, Effect, JournalRecord, OpenEntry, ReplayedState, StateDocument, StateResource,
};

use crate::events::Event;
use crate::object_key::ObjectKey;
use crate::planner::out_of_sight;
use crate::refresh::{Live, answers};
use crate::run::{EngineError, LockedRun};
use crate::{ErrorClass, Observed, OperationContext, Provider, ProviderError, Sighting, Unseen, Wanted};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Resolution {
    /// It had been done; only the record was missing.
    Finished,
    /// It was made, perhaps not to the end; the plan completes it.
    Adopted,
    /// Nothing of it is there; the plan does it again if it is still wanted.
    NotDone,
    /// Something that is not ours has the identity; it was not touched.
    #[serde(rename = "left-to-stranger")]
    LeftUnmanaged,
    /// Nobody can see what came of it: the entry stays open, and nothing is done at its address.
    StaysOpen,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ResolvedEntry {
    pub address: Address,
    pub action: Action,
    pub resolution: Resolution,
}

pub(crate) async fn resolve_all(locked: &mut LockedRun) -> Result<Vec<ResolvedEntry>, EngineError> {
    let mut resolved = Vec::new();
    for entry in locked.state.open.clone() {
        locked.run.events.emit(Event::RecoveryStarted { entry: entry.clone() });
        if entry.to.is_some() {
            let (effect, resolution) = match locked.has_arrived(&entry).await? {
                true => (Effect::Remove, Resolution::Finished),
                false => (Effect::Unchanged, Resolution::NotDone),
            };
            resolved.push(close(locked, entry, effect, resolution).await?);
            continue;
        }
        let provider = locked.run.providers.get(&entry.target)?.clone();
        let context = Watching { locked, entry: &entry };
        let failed = |error: ProviderError| EngineError::Recovery {
            address: entry.address.to_string(),
            error: Box::new(error),
        };
        let sighting = match provider.wait_for_tasks(&entry, &context).await {
            Ok(()) => sight(provider.as_ref(), &entry, &locked.state.document).await.map_err(failed)?,
            Err(error) => Sighting::Unknown(held_up(error).map_err(failed)?),
        };
        if let Some(unseen) = out_of_sight(&entry.address, &sighting) {
            let (address, action) = (entry.address.clone(), entry.action);
            locked.deferred.insert(entry.id, unseen);
            let entry = ResolvedEntry { address, action, resolution: Resolution::StaysOpen };
            locked.run.events.emit(Event::RecoveryDone { resolved: entry.clone() });
            resolved.push(entry);
            continue;
        }
        let (effect, resolution) =
            decide(&entry, sighting, &locked.state.document).map_err(|error| failed(*error))?;
        resolved.push(close(locked, entry, effect, resolution).await?);
    }
    Ok(resolved)
}

/// Writes down what came of an entry.
async fn close(
    locked: &mut LockedRun,
    entry: OpenEntry,
    effect: Effect,
    resolution: Resolution,
) -> Result<ResolvedEntry, EngineError> {
    let end = JournalRecord::End { id: entry.id, address: entry.address.clone(), effect: effect.clone() };
    let mut records = vec![end];
    locked.tally.seal(&mut records);
    if let Err(error) = locked.lock.append_journal(&records).await {
        locked.tally.doubt();
        return Err(error.into());
    }
    effect.apply_to(&mut locked.state.document, entry.address.clone());
    locked.state.open.retain(|open| open.id != entry.id);
    locked.state.unfolded = true;
    let entry = ResolvedEntry { address: entry.address, action: entry.action, resolution };
    locked.run.events.emit(Event::RecoveryDone { resolved: entry.clone() });
    Ok(entry)
}

/// What keeps this one object from being judged, such as a lock that only a person can take away. It holds up nothing else: the entry stays
/// open. What is about the whole remote, or about this run, ends the recovery.
fn held_up(error: ProviderError) -> Result<Unseen, ProviderError> {
    match error.class {
        ErrorClass::Conflict | ErrorClass::TaskFailed | ErrorClass::Refused => {
            Ok(Unseen::new(error.message, error.hint.unwrap_or_else(|| "apply again".to_owned())))
        }
        _ => Err(error),
    }
}

/// Looks at the object of an entry once its tasks have ended.
pub(crate) async fn sight(
    provider: &dyn Provider,
    entry: &OpenEntry,
    document: &StateDocument,
) -> Result<Sighting, ProviderError> {
    let recorded = document.resources.get(&entry.address).and_then(|known| record_at(known, entry));
    let wanted = Wanted {
        address: &entry.address,
        spec: &entry.identity,
        recorded: recorded.as_ref(),
        begun: begun_spec(entry),
        lineage: &document.lineage,
    };
    let sighting = answers(provider, &[wanted]).await?.pop();
    sighting.ok_or_else(|| ProviderError::new(ErrorClass::Internal, "the target gave no answer"))
}

/// What an open create was to make; of what is always there and only changed, what it was to become.
pub(crate) fn begun_spec(entry: &OpenEntry) -> Option<&Spec> {
    let staged = entry.address.kind().table().staged && entry.to.is_none();
    match &entry.becomes {
        Some(becomes) if staged || entry.action == Action::Create => Some(&becomes.spec),
        // Also a removal stages its changes: that one was begun says whose they are.
        None if staged => Some(&entry.identity),
        _ => None,
    }
}

/// What the state knows of the very object that an entry is about: the current one of its address, or a former one.
fn record_at(known: &StateResource, entry: &OpenEntry) -> Option<StateResource> {
    let (kind, key) = (entry.address.kind(), ObjectKey::of_entry(entry));
    if ObjectKey::of_record(kind, known) == key {
        return Some(known.clone());
    }
    let former = known.deposed.iter().find(|former| ObjectKey::of_former(kind, former) == key)?;
    Some(known.with_former(former))
}

/// What an open entry means, given what is there.
pub(crate) fn decide(
    entry: &OpenEntry,
    sighting: Sighting,
    document: &StateDocument,
) -> Result<(Effect, Resolution), Box<ProviderError>> {
    Ok(match (entry.action, sighting) {
        (_, sighting @ (Sighting::Unknown(_) | Sighting::Busy(_))) => {
            let Unseen { what, hint } = out_of_sight(&entry.address, &sighting).unwrap_or_default();
            return Err(Box::new(ProviderError::new(ErrorClass::Unreachable, what).hint(hint)));
        }
        // A machine that reboots cannot be asked. What was begun is done again from its start, which does no harm.
        (Action::Update, Sighting::Unreachable(_)) => {
            (begun_update(entry, None, &|_| true, document), Resolution::Adopted)
        }
        (Action::Create | Action::Delete, Sighting::Unreachable(_)) => {
            (Effect::Unchanged, Resolution::NotDone)
        }
        (Action::Create, Sighting::Ours(observed)) => {
            (begun_create(entry, &observed, document), Resolution::Adopted)
        }
        (Action::Update, Sighting::Ours(observed)) => {
            // What was to be added and is not there was not added, or is gone again.
            let is_there = |slot: &FieldPath| slot.value_in(&observed.spec).is_some();
            (begun_update(entry, Some(&observed.facts), &is_there, document), Resolution::Adopted)
        }
        (Action::Delete, Sighting::Ours(_)) => (begun_delete(entry, document), Resolution::NotDone),
        (Action::Delete, Sighting::Absent) => (removed(entry, document), Resolution::Finished),
        (Action::Create | Action::Update, Sighting::Absent) => (Effect::Unchanged, Resolution::NotDone),
        (_, Sighting::Unmanaged(_)) => (Effect::Unchanged, Resolution::LeftUnmanaged),
    })
}

/// The state as the next apply begins with it, as far as a look without the lock can say: what an open entry was to make by one request, and is there.
///
/// Without it a plan would give a new object once more what cannot be read back, such as a password, which not every login may do.
pub(crate) fn foreseen<'s>(state: &'s ReplayedState, live: &Live) -> Cow<'s, ReplayedState> {
    let mut foreseen = Cow::Borrowed(state);
    for entry in &state.open {
        let made =
            entry.action == Action::Create && entry.to.is_none() && entry.address.kind().table().at_once;
        if !made || state.document.resources.contains_key(&entry.address) {
            continue;
        }
        let Some(sighting @ Sighting::Ours(observed)) = live.current.get(&entry.address) else { continue };
        // Another object of the same address may be wanted by now.
        let (kind, seen) = (entry.address.kind(), ObjectKey::of_entry(entry));
        if ObjectKey::of(kind, &entry.target, &observed.spec) != seen {
            continue;
        }
        if let Ok((effect, _)) = decide(entry, sighting.clone(), &state.document) {
            effect.apply_to(&mut foreseen.to_mut().document, entry.address.clone());
        }
    }
    foreseen
}

/// An object that was made but perhaps not to the end. The state says what it was to become, whatever the source says by now.
fn begun_create(entry: &OpenEntry, observed: &Observed, document: &StateDocument) -> Effect {
    let Some(becomes) = &entry.becomes else { return Effect::Unchanged };
    let (kind, key) = (entry.address.kind(), ObjectKey::of_entry(entry));
    let mut deposed = Vec::new();
    if let Some(known) = document.resources.get(&entry.address) {
        deposed.extend(known.deposed.iter().cloned());
        let (target, spec, facts) = (known.target.clone(), known.spec.clone(), known.facts.clone());
        deposed.push(DeposedObject { target, spec, facts });
        deposed.retain(|former| ObjectKey::of_former(kind, former) != key);
    }
    let facts = observed.facts.clone();
    // What one request makes is there as a whole, with what cannot be read back.
    let partial = !kind.table().at_once;
    Effect::Put(Box::new(StateResource { facts, partial, deposed, ..(**becomes).clone() }))
}

/// An update that may have been done in part: what it was to add is ours from now on, so that it can also be removed.
///
/// `seen` are the facts of the object, where it was looked at. Where changes are staged, others make slots of the same object: only those
/// that the state knows or that were `added` are ours.
pub(crate) fn begun_update(
    entry: &OpenEntry,
    seen: Option<&Spec>,
    added: &dyn Fn(&FieldPath) -> bool,
    document: &StateDocument,
) -> Effect {
    let Some(becomes) = &entry.becomes else { return Effect::Unchanged };
    let kind = entry.address.kind();
    let mut becomes = becomes.clone();
    if kind.table().staged {
        let known = document.resources.get(&entry.address).map(|known| &known.spec);
        let ours =
            |slot: &FieldPath| known.is_some_and(|known| slot.value_in(known).is_some()) || added(slot);
        becomes.spec = with_slots(kind.rules(), &becomes.spec, &ours);
    }
    let Some(known) = document.resources.get(&entry.address) else {
        // Ours by its ownership mark, by `adopt`, or, as the network of a host, by its first change: known from now on.
        let facts = seen.unwrap_or(&becomes.facts).clone();
        let first = StateResource { partial: true, facts, ..*becomes };
        return if kind.table().recorded_when_begun {
            Effect::Put(Box::new(first))
        } else {
            Effect::Unchanged
        };
    };
    let spec = claimed_spec(kind.rules(), &known.spec, &becomes.spec);
    // What is staged or not reloaded on a host is not seen by its fields: the record says that something is open.
    let partial = known.partial || kind.table().staged;
    let same = spec == known.spec && partial == known.partial;
    if same || ObjectKey::of_record(kind, known) != ObjectKey::of_entry(entry) {
        return Effect::Unchanged;
    }
    Effect::Put(Box::new(StateResource { spec, partial, ..known.clone() }))
}

/// A removal that may have been done in part; only of what is staged does that have to be remembered.
fn begun_delete(entry: &OpenEntry, document: &StateDocument) -> Effect {
    match document.resources.get(&entry.address) {
        Some(known) if entry.address.kind().table().staged => {
            Effect::Put(Box::new(StateResource { partial: true, ..known.clone() }))
        }
        _ => Effect::Unchanged,
    }
}

/// The effect of a delete that was done: of the object itself, or of a former one.
pub(crate) fn removed(entry: &OpenEntry, document: &StateDocument) -> Effect {
    let Some(known) = document.resources.get(&entry.address) else { return Effect::Unchanged };
    let (kind, gone) = (entry.address.kind(), ObjectKey::of_entry(entry));
    let mut kept = known.clone();
    kept.deposed.retain(|former| ObjectKey::of_former(kind, former) != gone);
    if ObjectKey::of_record(kind, known) != gone {
        return Effect::Put(Box::new(kept));
    }
    // A former object that is still there must not be forgotten with the one that took its place.
    match kept.deposed.pop() {
        Some(former) => {
            Effect::Put(Box::new(StateResource { deposed: kept.deposed, ..known.with_former(&former) }))
        }
        None => Effect::Remove,
    }
}

/// Recovery waits and looks. The one thing that it may write is the removal of what its own open entry left half made.
struct Watching<'a> {
    locked: &'a LockedRun,
    entry: &'a OpenEntry,
}

#[async_trait::async_trait]
impl OperationContext for Watching<'_> {
    fn before_write(&self) -> Result<(), ProviderError> {
        let held = self.locked.lock.still_held();
        held.map_err(|error| ProviderError::new(ErrorClass::Stopped, error.to_string()))
    }

    async fn task_started(&self, _task: &str) -> Result<(), ProviderError> {
        Ok(())
    }

    fn write_timeout(&self) -> Option<std::time::Duration> {
        self.locked.lock.write_timeout()
    }

    fn warning(&self, what: &str) {
        let (address, warning) = (self.entry.address.clone(), what.to_owned());
        self.locked.run.events.emit(Event::StepWarning { step: 0, address, warning });
    }

    fn progress(&self, doing: &str) {
        let (address, doing) = (self.entry.address.clone(), doing.to_owned());
        self.locked.run.events.emit(Event::StepProgress { step: 0, address, doing });
    }
}

#[cfg(test)]
mod tests;
