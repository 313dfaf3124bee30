//! Guests that carry an ownership mark of this repository and are in no state: nobody would ever miss them.

use std::collections::{BTreeMap, BTreeSet};

use strata_engine::{Provider as _, Sighting, Wanted};
use strata_proxmox::MarkedGuest;
use strata_resource::{Address, Lineage, Spec, Stage, Value};
use strata_session::{SessionError, Workspace};
use strata_state::{ReplayedState, StateDocument, StateResource, replay};

use crate::AllProviders;

/// How many guests that nobody knows are looked at in a run; `doctor` looks at all.
const LIMIT: usize = 64;

/// A guest of ours that no state knows.
pub struct Orphan {
    pub guest: MarkedGuest,
    pub target: String,
    /// The key of the state that it belongs in.
    key: String,
    pub address: Address,
}

impl Orphan {
    pub fn message(&self) -> String {
        format!(
            "{} carries the ownership mark of `{}` and is in no state",
            self.guest.described, self.address
        )
    }

    pub fn hint(&self) -> String {
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
pub enum Look {
    /// What lies next to our own guests.
    Near,
    Everywhere,
}

impl AllProviders {
    /// Looks at guests of the targets that this run has connected, once its work is done.
    pub async fn orphans(&self, workspace: &Workspace, look: Look) -> Result<Vec<Orphan>, SessionError> {
        let providers = self.proxmox();
        if providers.is_empty() {
            return Ok(Vec::new());
        }
        let states = own_states(workspace).await?;
        let known: BTreeSet<u32> = states.values().flat_map(vmids).collect();
        let known: BTreeSet<u32> = known.into_iter().chain(self.wanted()).collect();
        let limit = if look == Look::Near { LIMIT } else { usize::MAX };
        let mut found = Vec::new();
        let mut places = BTreeSet::new();
        for (target, provider) in providers {
            for guest in provider.marked_guests(&known, limit).await?.found {
                let Some((key, address)) = owner(workspace, &guest, &states)? else { continue };
                // Two targets can be one datacenter.
                if places.insert((guest.vmid, guest.node.clone(), address.clone())) {
                    found.push(Orphan { guest, target: target.clone(), key, address });
                }
            }
        }
        Ok(found)
    }

    /// Records orphans of one stack in its state, by what proves them ours. What they are like is left to the next plan.
    pub async fn recover(&self, workspace: &Workspace, stack: &str) -> Result<Vec<Orphan>, SessionError> {
        let orphans: Vec<Orphan> = self.orphans(workspace, Look::Everywhere).await?;
        let mine = |orphan: &Orphan| {
            let asked = workspace.surroundings().environment.as_deref();
            orphan.address.stack() == stack
                && (asked.is_none() && orphan.address.environment().is_none()
                    || asked.is_some_and(|asked| orphan.key.split('/').next() == Some(asked)))
        };
        let orphans: Vec<Orphan> = orphans.into_iter().filter(mine).collect();
        let providers = self.proxmox();
        for orphan in &orphans {
            let lineage = Lineage::derive(workspace.repository_id()?, &orphan.key);
            let spec = identity(&orphan.guest);
            let wanted = Wanted {
                address: &orphan.address,
                spec: &spec,
                recorded: None,
                begun: None,
                lineage: &lineage,
            };
            let Some(provider) = providers.get(&orphan.target) else { continue };
            let seen = provider.observe_all(&[wanted]).await?;
            let Some(Sighting::Ours(observed)) = seen.into_iter().next() else {
                return Err(SessionError::refused(format!(
                    "{} cannot be recorded: it is at work or gone",
                    orphan.guest.described
                )));
            };
            let mut locked = workspace.lock_key(&orphan.key, "state recover").await?;
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

/// The key and the address that a mark names, if it is one of this repository.
fn owner(
    workspace: &Workspace,
    guest: &MarkedGuest,
    states: &BTreeMap<String, ReplayedState>,
) -> Result<Option<(String, Address)>, SessionError> {
    let Ok(address) = guest.mark.address.parse::<Address>() else { return Ok(None) };
    let repository = workspace.repository_id()?;
    let mut environments: BTreeSet<String> = match address.environment() {
        Some(environment) => BTreeSet::from([environment.to_owned()]),
        None => workspace.repository().environments().into_iter().map(str::to_owned).collect(),
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
async fn own_states(workspace: &Workspace) -> Result<BTreeMap<String, ReplayedState>, SessionError> {
    let repository = workspace.repository_id()?;
    let store = workspace.store()?;
    let mut keys: BTreeSet<String> = store.keys().await?.into_iter().collect();
    keys.extend(workspace.state_keys());
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

pub(crate) fn vmid(spec: &Spec) -> Option<u32> {
    u32::try_from(spec.get("vmid")?.as_int()?).ok()
}
