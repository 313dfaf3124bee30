//! What carries an ownership mark or a name of this repository and is in no state: nobody would ever miss it.

use std::collections::{BTreeMap, BTreeSet};

use strata_engine::{LockedRun, Provider as _, Sighting, Wanted};
use strata_proxmox::{MarkedGuest, MarkedGuests, MarkedObject, NamedVolume, ProxmoxProvider};
use strata_resource::{Address, Kind, Lineage, Mark, Spec, Stage, Value};
use strata_session::{SessionError, Workspace};
use strata_source::EffectiveStack;
use strata_state::{ReplayedState, StateDocument, StateResource, replay};
use strata_truenas::{DatasetProvider, MarkedDataset};

use crate::AllProviders;

/// How many guests that nobody knows are looked at in a run; `doctor` and `drift --orphans` look at all.
const LIMIT: usize = 64;

/// An object of ours that no state knows.
pub struct Orphan {
    /// What it is, for people.
    pub described: String,
    pub target: String,
    /// Of a guest, all that is known of it.
    pub guest: Option<MarkedGuest>,
    /// What its ownership mark names; the name of a volume says only which state it belongs in.
    pub address: Option<Address>,
    /// The key of the state that it belongs in.
    pub key: String,
    /// The environment that a command has to name.
    environment: Option<String>,
}

impl Orphan {
    /// Its address, or the state that it belongs in.
    pub fn name(&self) -> String {
        self.address.as_ref().map_or_else(|| self.key.clone(), Address::to_string)
    }

    pub fn message(&self) -> String {
        match &self.address {
            Some(address) => {
                format!("{} carries the ownership mark of `{address}` and is in no state", self.described)
            }
            None => format!("{} has a name of `{}` and is in no state", self.described, self.key),
        }
    }

    pub fn hint(&self) -> String {
        let environment =
            self.environment.as_ref().map(|environment| format!("-e {environment} ")).unwrap_or_default();
        let stack = self.key.split_once('/').map_or(self.key.as_str(), |(_, stack)| stack);
        match &self.guest {
            Some(_) => format!(
                "`strata {environment}state recover {stack}` records it; the next plan then keeps or removes it, as the source says"
            ),
            None => format!(
                "`strata {environment}recover {stack}` records it if the source asks for it; otherwise remove it by hand"
            ),
        }
    }
}

/// How much is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Guests that lie next to our own.
    Near,
    /// Every guest, every object of the datacenter, every volume, every dataset.
    Everywhere,
}

/// What was found, and what nobody could look at.
#[derive(Default)]
pub struct Orphans {
    pub found: Vec<Orphan>,
    /// Listings that this login may not see, or that did not answer.
    pub unseen: Vec<String>,
}

impl AllProviders {
    /// Looks at the targets that this run has connected, once its work is done.
    pub async fn orphans(&self, workspace: &Workspace, look: Look) -> Result<Orphans, SessionError> {
        let (providers, storage_servers) = (self.proxmox(), self.truenas());
        let mut orphans = Orphans::default();
        if providers.is_empty() && storage_servers.is_empty() {
            return Ok(orphans);
        }
        let known = States::read(workspace).await?;
        for (target, provider) in &providers {
            // Two datacenters can have the same VMIDs.
            let vmids: BTreeSet<u32> = known.vmids_on(target).chain(self.wanted(target)).collect();
            let limit = if look == Look::Near { LIMIT } else { usize::MAX };
            let guests = provider.marked_guests(&vmids, limit).await?;
            orphans.add_guests(&known.of(workspace, target), guests, look)?;
            if look == Look::Everywhere {
                orphans.add_objects(&known.of(workspace, target), provider).await?;
                orphans.add_volumes(&known.of(workspace, target), provider).await?;
            }
        }
        for (target, server) in storage_servers.iter().filter(|_| look == Look::Everywhere) {
            orphans.add_datasets(&known.of(workspace, target), server).await?;
        }
        // Two targets can be one datacenter.
        let mut places = BTreeSet::new();
        orphans.found.retain(|orphan| places.insert((orphan.described.clone(), orphan.name())));
        Ok(orphans)
    }

    /// Records orphans of one stack in its state, by what proves them ours. What they are like is left to the next plan.
    pub async fn recover(&self, workspace: &Workspace, stack: &str) -> Result<Vec<Orphan>, SessionError> {
        let asked = workspace.surroundings().environment.as_deref();
        let mut recorded = Vec::new();
        for orphan in self.orphans(workspace, Look::Everywhere).await?.found {
            let (Some(guest), Some(address)) = (&orphan.guest, &orphan.address) else { continue };
            let mine = address.stack() == stack
                && (asked.is_none() && address.environment().is_none()
                    || asked.is_some_and(|asked| orphan.key.split('/').next() == Some(asked)));
            if mine && self.record(workspace, &orphan, guest, address).await? {
                recorded.push(orphan);
            }
        }
        Ok(recorded)
    }

    /// Under the lock, and only if nobody has recorded it meanwhile: what they wrote says more.
    async fn record(
        &self,
        workspace: &Workspace,
        orphan: &Orphan,
        guest: &MarkedGuest,
        address: &Address,
    ) -> Result<bool, SessionError> {
        let providers = self.proxmox();
        let Some(provider) = providers.get(&orphan.target) else { return Ok(false) };
        let mut locked = workspace.lock_key(&orphan.key, "state recover").await?;
        let recorded = record_locked(&mut locked, workspace, provider, (orphan, guest, address)).await;
        locked.release().await?;
        recorded
    }
}

async fn record_locked(
    locked: &mut LockedRun,
    workspace: &Workspace,
    provider: &ProxmoxProvider,
    (orphan, guest, address): (&Orphan, &MarkedGuest, &Address),
) -> Result<bool, SessionError> {
    let states = States::read(workspace).await?;
    let is_it = |_: Kind, spec: &Spec| vmid(spec) == Some(guest.vmid);
    if states.of(workspace, &orphan.target).is_known(&orphan.key, is_it) {
        return Ok(false);
    }
    let lineage = Lineage::derive(workspace.repository_id()?, &orphan.key);
    let spec = identity(guest);
    let wanted = Wanted { address, spec: &spec, recorded: None, begun: None, lineage: &lineage };
    let seen = provider.observe_all(&[wanted]).await?;
    let Some(Sighting::Ours(observed)) = seen.into_iter().next() else {
        return Err(SessionError::refused(format!(
            "{} cannot be recorded: it is at work or gone",
            orphan.described
        )));
    };
    let record = StateResource {
        target: orphan.target.clone(),
        spec,
        facts: observed.facts,
        depends_on: BTreeSet::new(),
        stage: Stage::Compute,
        protect: false,
        partial: true,
        deposed: Vec::new(),
        made_as: None,
    };
    locked.edit(|document| drop(document.resources.insert(address.clone(), record))).await?;
    Ok(true)
}

impl Orphans {
    fn add_guests(&mut self, of: &Known<'_>, guests: MarkedGuests, look: Look) -> Result<(), SessionError> {
        if guests.unseen > 0 && look == Look::Everywhere {
            self.unseen.push(format!("{} guests of `{}`", guests.unseen, of.target));
        }
        for guest in guests.found {
            let lineage = |lineage: &Lineage| lineage.as_str() == guest.mark.lineage;
            let is_it = |_: Kind, spec: &Spec| vmid(spec) == Some(guest.vmid);
            let owner = of.owner(&guest.mark.address, lineage)?;
            if let Some(owner) = owner.filter(|(key, _)| !of.is_known(key, is_it)) {
                self.found.push(Orphan::marked(guest.described.clone(), of.target, owner, Some(guest)));
            }
        }
        Ok(())
    }

    async fn add_objects(&mut self, of: &Known<'_>, provider: &ProxmoxProvider) -> Result<(), SessionError> {
        let objects = provider.marked_objects().await;
        self.unseen.extend(objects.unseen.iter().map(|what| format!("{what} of `{}`", of.target)));
        for MarkedObject { kind, name, mark, described } in objects.found {
            let lineage = |lineage: &Lineage| lineage.short() == mark.lineage;
            let is_it = |own: Kind, spec: &Spec| {
                own == kind && strata_proxmox::kinds::datacenter_name(kind, spec).as_deref() == Some(&name)
            };
            let owner = of.owner(&mark.address, lineage)?.filter(|(key, _)| !of.is_known(key, is_it));
            self.found.extend(owner.map(|owner| Orphan::marked(described, of.target, owner, None)));
        }
        Ok(())
    }

    async fn add_volumes(&mut self, of: &Known<'_>, provider: &ProxmoxProvider) -> Result<(), SessionError> {
        let lineages = of.lineages()?;
        let volumes = provider.named_volumes(&lineages.keys().cloned().collect()).await?;
        self.unseen.extend(volumes.unseen.iter().map(|what| format!("{what} of `{}`", of.target)));
        for NamedVolume { volume, lineage, described } in volumes.found {
            let Some(key) = lineages.get(&lineage) else { continue };
            if of.is_known(key, |_, spec| has_text(spec, "volume", &volume)) {
                continue;
            }
            let usual =
                |stack: &EffectiveStack| stack.is_default_environment && strata_session::key(stack) == *key;
            let elsewhere = !of.workspace.repository().effective().any(usual);
            self.found.push(Orphan {
                described,
                target: of.target.to_owned(),
                guest: None,
                address: None,
                key: key.clone(),
                environment: key.split('/').next().filter(|_| elsewhere).map(str::to_owned),
            });
        }
        Ok(())
    }

    async fn add_datasets(&mut self, of: &Known<'_>, server: &DatasetProvider) -> Result<(), SessionError> {
        for MarkedDataset { name, lineage, address } in server.marked().await? {
            let ours = |known: &Lineage| known.as_str() == lineage;
            let is_it = |_: Kind, spec: &Spec| has_text(spec, "dataset", &name);
            let owner = of.owner(&address, ours)?.filter(|(key, _)| !of.is_known(key, is_it));
            let described = format!("dataset `{name}`");
            self.found.extend(owner.map(|owner| Orphan::marked(described, of.target, owner, None)));
        }
        Ok(())
    }
}

impl Orphan {
    fn marked(
        described: String,
        target: &str,
        (key, address): (String, Address),
        guest: Option<MarkedGuest>,
    ) -> Self {
        let environment = address.environment().map(str::to_owned);
        Self { described, target: target.to_owned(), guest, address: Some(address), key, environment }
    }
}

/// Every state of this repository, whatever the command is about.
pub(crate) struct States(pub(crate) BTreeMap<String, ReplayedState>);

/// The same, for one target.
struct Known<'k> {
    workspace: &'k Workspace,
    target: &'k str,
    states: &'k States,
}

impl States {
    /// The key and the address that the ownership mark of a guest names, if it is one of this repository.
    pub(crate) fn owner_of(
        &self,
        workspace: &Workspace,
        mark: &Mark,
    ) -> Result<Option<(String, Address)>, SessionError> {
        self.of(workspace, "").owner(&mark.address, |lineage| lineage.as_str() == mark.lineage)
    }

    fn of<'k>(&'k self, workspace: &'k Workspace, target: &'k str) -> Known<'k> {
        Known { workspace, target, states: self }
    }

    pub(crate) async fn read(workspace: &Workspace) -> Result<Self, SessionError> {
        let repository = workspace.repository_id()?;
        let store = workspace.store()?;
        let mut keys: BTreeSet<String> = store.keys().await?.into_iter().collect();
        keys.extend(workspace.state_keys());
        let mut states = BTreeMap::new();
        for key in keys {
            let lineage = Lineage::derive(repository, &key);
            // One that cannot be read is reported where it is needed.
            let Ok(journal) = store.read_journal(&key).await else { continue };
            let Ok(document) = store.read(&key).await else { continue };
            let document = document.unwrap_or_else(|| StateDocument::new(lineage.clone(), &key));
            if document.lineage == lineage {
                states.insert(key, replay(document, journal));
            }
        }
        Ok(Self(states))
    }

    /// Everything that a state or its journal speaks of.
    fn objects(&self) -> impl Iterator<Item = KnownObject<'_>> {
        self.0.iter().flat_map(|(key, state)| {
            let recorded = state.document.resources.iter().flat_map(move |(address, resource)| {
                let former = resource.deposed.iter().map(|former| &former.spec);
                let specs = std::iter::once(&resource.spec).chain(former);
                let (target, kind) = (resource.target.as_str(), address.kind());
                specs.map(move |spec| KnownObject { key, target, kind, spec })
            });
            let open = state.open.iter().map(move |entry| KnownObject {
                key,
                target: &entry.target,
                kind: entry.address.kind(),
                spec: &entry.identity,
            });
            recorded.chain(open)
        })
    }

    fn vmids_on(&self, target: &str) -> impl Iterator<Item = u32> {
        self.objects().filter(move |object| object.target == target).filter_map(|object| vmid(object.spec))
    }
}

/// One object, as a state has it.
struct KnownObject<'s> {
    key: &'s str,
    target: &'s str,
    kind: Kind,
    spec: &'s Spec,
}

fn has_text(spec: &Spec, field: &str, text: &str) -> bool {
    spec.get(field).and_then(Value::as_text) == Some(text)
}

impl Known<'_> {
    /// Whether a state has an object: one on this target, or the state that the object belongs in. Two targets can be one datacenter.
    fn is_known(&self, owner: &str, is_it: impl Fn(Kind, &Spec) -> bool) -> bool {
        let here = |object: &KnownObject<'_>| object.target == self.target || object.key == owner;
        self.states.objects().filter(here).any(|object| is_it(object.kind, object.spec))
    }

    /// The states that volumes can be named after, by the short form of their lineage.
    fn lineages(&self) -> Result<BTreeMap<String, String>, SessionError> {
        let repository = self.workspace.repository_id()?;
        let short = |key: &String| (Lineage::derive(repository, key).short().to_owned(), key.clone());
        Ok(self.states.0.keys().map(short).collect())
    }

    /// The key and the address that a mark names, if it is one of this repository.
    fn owner(
        &self,
        address: &str,
        is_lineage: impl Fn(&Lineage) -> bool,
    ) -> Result<Option<(String, Address)>, SessionError> {
        let Ok(address) = address.parse::<Address>() else { return Ok(None) };
        let repository = self.workspace.repository_id()?;
        let mut environments: BTreeSet<String> = match address.environment() {
            Some(environment) => BTreeSet::from([environment.to_owned()]),
            None => self.workspace.repository().environments().into_iter().map(str::to_owned).collect(),
        };
        if address.environment().is_none() {
            environments.insert(strata_source::DEFAULT_ENVIRONMENT.to_owned());
            environments
                .extend(self.states.0.keys().filter_map(|key| Some(key.split_once('/')?.0.to_owned())));
        }
        let mut keys =
            environments.into_iter().map(|environment| format!("{environment}/{}", address.stack()));
        let ours = |key: &String| is_lineage(&Lineage::derive(repository, key));
        Ok(keys.find(ours).map(|key| (key, address)))
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

pub(crate) fn vmid(spec: &Spec) -> Option<u32> {
    u32::try_from(spec.get("vmid")?.as_int()?).ok()
}
