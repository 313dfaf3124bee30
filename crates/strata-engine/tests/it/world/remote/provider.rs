//! The remote as the engine sees it: looks, waits, and acts through numbered calls.

use std::sync::Arc;

use async_trait::async_trait;
use strata_engine::{
    ErrorClass, Observed, OpenEntry, Operation, OperationContext, Outcome, Provider, ProviderError, Sighting,
    Wanted,
};
use strata_resource::{Mark, Spec, Value};

use super::{Guest, Inner, Remote};
use crate::world::process::Process;
use crate::world::script::Fault;
use crate::world::store::MemoryStore;

/// One process' connection to a remote.
pub(crate) struct FakeProvider {
    pub(crate) remote: Arc<Remote>,
    pub(crate) process: Arc<Process>,
    pub(crate) target: String,
    /// The store in which every write must have its entry first.
    pub(crate) witness: Option<Arc<MemoryStore>>,
}

pub(super) fn vmid_of(spec: &Spec) -> i64 {
    spec.get("vmid").and_then(Value::as_int).unwrap_or_default()
}

pub(super) fn volid_of(spec: &Spec) -> String {
    spec.get("volume").and_then(Value::as_text).unwrap_or_default().to_owned()
}

pub(super) fn failed(class: ErrorClass, message: impl Into<String>) -> ProviderError {
    ProviderError::new(class, message)
}

impl FakeProvider {
    /// One request: it takes a while, and the script says what becomes of it.
    async fn call<T>(
        &self,
        what: &str,
        is_write: bool,
        effect: impl FnOnce(&mut Inner) -> Result<T, ProviderError>,
    ) -> Result<T, ProviderError> {
        self.process.breathe().await;
        let lost = || failed(ErrorClass::Unreachable, format!("no answer to `{what}`"));
        let fault = self.remote.inner().script.next(what, is_write);
        let result = match fault {
            Fault::Before => return Err(lost()),
            Fault::KillBefore if self.remote.inner().hangs => std::future::pending().await,
            Fault::KillBefore => self.process.kill().await,
            Fault::None | Fault::After | Fault::KillAfter | Fault::KillTorn => {
                effect(&mut self.remote.inner())
            }
        };
        match fault {
            Fault::KillAfter | Fault::KillTorn => self.process.kill().await,
            Fault::After => return Err(lost()),
            Fault::None | Fault::Before | Fault::KillBefore => {}
        }
        self.process.breathe().await;
        result
    }

    pub(super) async fn look<T>(
        &self,
        what: &str,
        effect: impl FnOnce(&mut Inner) -> T,
    ) -> Result<T, ProviderError> {
        self.call(what, false, |inner| Ok(effect(inner))).await
    }

    /// A request that changes something. Nothing may be changed that is not in the journal, durably.
    pub(super) async fn write<T>(
        &self,
        what: &str,
        operation: &Operation,
        context: &dyn OperationContext,
        effect: impl FnOnce(&mut Inner) -> Result<T, ProviderError>,
    ) -> Result<T, ProviderError> {
        context.before_write()?;
        if self.witness.as_ref().is_some_and(|witness| witness.is_stolen()) {
            self.remote.inner().violations.push(format!("`{what}` after the lock was lost"));
        }
        self.call(what, true, |inner| {
            if let Some(witness) = &self.witness {
                let is_it = |entry: &OpenEntry| {
                    entry.action == operation.action
                        && entry.address == operation.address
                        && entry.target == self.target
                        && entry.identity.iter().all(|(name, value)| operation.spec.get(name) == Some(value))
                };
                if !witness.has_open(is_it) {
                    inner.violations.push(format!("`{what}` is not in the journal"));
                }
            }
            effect(inner)
        })
        .await
    }

    fn sight(inner: &Inner, wanted: &Wanted<'_>) -> Sighting {
        if !wanted.address.kind().table().is_proven_by_facts() {
            let volid = volid_of(wanted.spec);
            return match inner.volumes.get(&volid) {
                None => Sighting::Absent,
                Some(fields) if volid.contains(wanted.lineage.short()) => {
                    Sighting::Ours(inner.observed_volume(fields))
                }
                Some(_) => Sighting::Unmanaged(format!("volume `{volid}` is not ours").into()),
            };
        }
        let vmid = vmid_of(wanted.spec);
        let Some(guest) = inner.guests.get(&vmid) else { return Sighting::Absent };
        if let Some(task) = &guest.task {
            return Sighting::Busy(format!("guest {vmid} is locked ({task})"));
        }
        if is_ours(guest, wanted, vmid) {
            return Sighting::Ours(inner.observed_guest(guest));
        }
        let name = guest.fields.get("name").and_then(Value::as_text).unwrap_or("?");
        Sighting::Unmanaged(format!("guest {vmid} `{name}` is not ours").into())
    }
}

/// As docs/ownership.md has it: the recorded uuid, or else the mark with the guest's own VMID.
fn is_ours(guest: &Guest, wanted: &Wanted<'_>, vmid: i64) -> bool {
    let recorded = wanted.recorded.and_then(|recorded| recorded.facts.get("uuid")).and_then(Value::as_text);
    if recorded == Some(guest.uuid.as_str()) {
        return true;
    }
    let mark = guest.fields.get("mark").and_then(Value::as_text).and_then(Mark::parse);
    mark.is_some_and(|mark| {
        mark.lineage == wanted.lineage.as_str()
            && mark.address == wanted.address.to_string()
            && i64::from(mark.vmid) == vmid
    })
}

#[async_trait]
impl Provider for FakeProvider {
    async fn observe_all(&self, wanted: &[Wanted<'_>]) -> Result<Vec<Sighting>, ProviderError> {
        self.look("look", |inner| {
            let asked = wanted.len() - usize::from(inner.forgets_an_answer);
            wanted[..asked].iter().map(|wanted| Self::sight(inner, wanted)).collect()
        })
        .await
    }

    async fn execute(
        &self,
        operation: &Operation,
        context: &dyn OperationContext,
    ) -> Result<Outcome, ProviderError> {
        let mut busy = self.count(operation);
        let observed: Result<Option<Observed>, _> = self.carry_out(operation, context).await;
        busy.ended = true;
        let observed = observed?;
        Ok(Outcome { facts: observed.map(|observed| observed.facts).unwrap_or_default() })
    }

    async fn wait_for_tasks(
        &self,
        entry: &OpenEntry,
        _context: &dyn OperationContext,
    ) -> Result<(), ProviderError> {
        self.look("wait for its tasks", |inner| {
            let keeps = inner.keeps_tasks;
            if let Some(guest) = inner.guests.get_mut(&vmid_of(&entry.identity)).filter(|_| !keeps) {
                guest.task = None;
            }
        })
        .await
    }
}
