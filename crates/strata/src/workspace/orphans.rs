//! Guests that carry an ownership mark of this repository and are in no state: nobody would ever miss them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use strata_engine::{Sighting, StackView, Wanted};
use strata_proxmox::MarkedGuest;
use strata_resource::{Address, Lineage, Spec, Stage, Value};
use strata_state::{ReplayedState, StateDocument, StateResource, replay};

use super::Workspace;
use super::targets::Targets;
use crate::command_error::CommandError;

/// How many guests that nobody knows are looked at in a run; `doctor` looks at all.
const LIMIT: usize = 64;

/// A guest of ours that no state knows.
pub(crate) struct Orphan {
    pub(crate) guest: MarkedGuest,
    pub(crate) target: String,
    /// The key of the state that it belongs in.
    key: String,
    pub(crate) address: Address,
}

impl Orphan {
    pub(crate) fn message(&self) -> String {
        format!(
            "{} carries the ownership mark of `{}` and is in no state",
            self.guest.described, self.address
        )
    }

    pub(crate) fn hint(&self) -> String {
        let environment =
            self.address.environment().map(|environment| format!("-e {environment} ")).unwrap_or_default();
        format!(
            "`strata {environment}state recover {}` records it; the next plan then keeps or removes it, as the source says",
            self.address.stack()
        )
    }
}

/// How much is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// What lies next to our own guests.
    Near,
    Everywhere,
}

impl Workspace<'_> {
    /// Looks at guests of the targets that this run has connected, once its work is done.
    pub(crate) async fn orphans(&self, look: Look) -> Result<Vec<Orphan>, CommandError> {
        let providers = self.proxmox.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        if providers.is_empty() {
            return Ok(Vec::new());
        }
        let states = self.own_states().await?;
        let known: BTreeSet<u32> = states.values().flat_map(vmids).collect();
        let wanted = self.wanted.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        let known: BTreeSet<u32> = known.into_iter().chain(wanted).collect();
        let limit = if look == Look::Near { LIMIT } else { usize::MAX };
        let mut found = Vec::new();
        let mut places = BTreeSet::new();
        for (target, provider) in providers {
            for guest in provider.marked_guests(&known, limit).await?.found {
                let Some((key, address)) = self.owner(&guest, &states)? else { continue };
                // Two targets can be one datacenter.
                if places.insert((guest.vmid, guest.node.clone(), address.clone())) {
                    found.push(Orphan { guest, target: target.clone(), key, address });
                }
            }
        }
        Ok(found)
    }

    /// Says it under a run. That nobody could look must not fail what was done.
    pub(crate) async fn tell_orphans(&self) -> usize {
        let Ok(orphans) = self.orphans(Look::Near).await else { return 0 };
        let printer = self.context.printer;
        for orphan in &orphans {
            printer.event(&json!({
                "event": "orphan", "address": orphan.address, "vmid": orphan.guest.vmid, "target": orphan.target,
                "message": orphan.message(), "hint": orphan.hint(),
            }));
            printer.note(format!("warning: {}\n  hint: {}", orphan.message(), orphan.hint()));
        }
        orphans.len()
    }

    /// The key and the address that a mark names, if it is one of this repository.
    fn owner(
        &self,
        guest: &MarkedGuest,
        states: &BTreeMap<String, ReplayedState>,
    ) -> Result<Option<(String, Address)>, CommandError> {
        let Ok(address) = guest.mark.address.parse::<Address>() else { return Ok(None) };
        let repository = self.repository_id()?;
        let mut environments: BTreeSet<String> = match address.environment() {
            Some(environment) => BTreeSet::from([environment.to_owned()]),
            None => self.repository.environments().into_iter().map(str::to_owned).collect(),
        };
        if address.environment().is_none() {
            environments.insert(strata_source::DEFAULT_ENVIRONMENT.to_owned());
            environments.extend(states.keys().filter_map(|key| Some(key.split_once('/')?.0.to_owned())));
        }
        let keys = environments.into_iter().map(|environment| format!("{environment}/{}", address.stack()));
        let ours = |key: &String| Lineage::derive(repository, key).as_str() == guest.mark.lineage;
        Ok(keys.into_iter().find(ours).map(|key| (key, address)))
    }

    /// Every state of this repository, whatever the command is about.
    async fn own_states(&self) -> Result<BTreeMap<String, ReplayedState>, CommandError> {
        let repository = self.repository_id()?;
        let store = self.store()?;
        let mut keys: BTreeSet<String> = store.keys().await?.into_iter().collect();
        keys.extend(self.state_keys());
        let mut states = BTreeMap::new();
        for key in keys {
            let lineage = Lineage::derive(repository, &key);
            // One that cannot be read is told where it is needed.
            let Ok(journal) = store.read_journal(&key).await else { continue };
            let Ok(document) = store.read(&key).await else { continue };
            let document = document.unwrap_or_else(|| StateDocument::new(lineage.clone(), &key));
            if document.lineage == lineage {
                states.insert(key, replay(document, journal));
            }
        }
        Ok(states)
    }

    /// Records orphans of one stack in its state, by what proves them ours. What they are like is left to the next plan.
    pub(crate) async fn recover(&self, stack: &str) -> Result<Vec<Orphan>, CommandError> {
        let orphans: Vec<Orphan> = self.orphans(Look::Everywhere).await?;
        let mine = |orphan: &Orphan| {
            let asked = self.context.global.environment.as_deref();
            orphan.address.stack() == stack
                && (asked.is_none() && orphan.address.environment().is_none()
                    || asked.is_some_and(|asked| orphan.key.split('/').next() == Some(asked)))
        };
        let orphans: Vec<Orphan> = orphans.into_iter().filter(mine).collect();
        let providers = self.proxmox.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        for orphan in &orphans {
            let lineage = Lineage::derive(self.repository_id()?, &orphan.key);
            let spec = identity(&orphan.guest);
            let wanted = Wanted {
                address: &orphan.address,
                spec: &spec,
                recorded: None,
                begun: None,
                lineage: &lineage,
            };
            let Some(provider) = providers.get(&orphan.target) else { continue };
            let seen = strata_engine::Provider::observe_all(provider.as_ref(), &[wanted]).await?;
            let Some(Sighting::Ours(observed)) = seen.into_iter().next() else {
                return Err(CommandError::refused(format!(
                    "{} cannot be recorded: it is at work or gone",
                    orphan.guest.described
                )));
            };
            let view = StackView::empty(orphan.key.clone(), lineage);
            let owner = self.context.lock_owner("state recover");
            let mut locked = self.run(Targets::default(), None)?.lock(&view, owner).await?;
            let record = StateResource {
                target: orphan.target.clone(),
                spec: spec.clone(),
                facts: observed.facts,
                depends_on: BTreeSet::new(),
                stage: Stage::Compute,
                protect: false,
                partial: true,
                deposed: Vec::new(),
            };
            let edited = locked.edit(|document| {
                document.resources.insert(orphan.address.clone(), record);
            });
            let edited = edited.await;
            locked.release().await?;
            edited?;
        }
        Ok(orphans)
    }
}

fn identity(guest: &MarkedGuest) -> Spec {
    [
        ("vmid".to_owned(), Value::Int(guest.vmid.into())),
        ("node".to_owned(), Value::text(guest.node.as_str())),
        ("mark".to_owned(), Value::Text(guest.mark.to_string())),
    ]
    .into()
}

/// Every VMID that a state speaks of.
fn vmids(state: &ReplayedState) -> Vec<u32> {
    let resources = state.document.resources.values();
    let specs = resources.flat_map(|resource| {
        std::iter::once(&resource.spec).chain(resource.deposed.iter().map(|former| &former.spec))
    });
    let open = state.open.iter().map(|entry| &entry.identity);
    specs.chain(open).filter_map(vmid).collect()
}

pub(super) fn vmid(spec: &Spec) -> Option<u32> {
    u32::try_from(spec.get("vmid")?.as_int()?).ok()
}
