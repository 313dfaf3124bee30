//! One stack, phase by phase: lock → read → keys → draw → connect → plan → apply.
//!
//! [`OpenStack`] has its state and, where something is to be changed, its lock. [`OpenStack::prepare`] goes through keys, draw and connect
//! and gives a [`StackSession`], which can plan and apply. Whoever fails on the way gives the lock back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strata_blueprint::placement::{Homes, recorded_homes};
use strata_blueprint::{Blueprint, cluster_target};
use strata_engine::{
    Action, Adoption, ApplyOptions, ApplyReport, Drift, EarlierOperations, EngineError, ErrorClass,
    LockedRun, Look, Move, Operation, OperationContext, Plan, PlanFile, Problem, Proofs, ProviderError,
    Providers, Retrieval, Run, Sighting, StackView, Step, StepAction, StopSignal, Unseen, Wanted, claim_mark,
    inputs, with_outputs,
};
use strata_resource::{Address, Layer, ResourceGraph, Spec, Value, stored_spec};
use strata_secret::{DigestKey, SecretBytes};
use strata_source::{EffectiveStack, Model};
use strata_state::{MadeAs, ReplayedState, StateDocument, StateResource, Version};
use strata_talos::SecretsBundle;

use crate::connections::Connections;
use crate::error::{ErrorKind, SessionError};
use crate::providers::DrawnStack;
use crate::selection::Pattern;
use crate::workspace::moves::{self, StackMoves};
use crate::workspace::{Before, Workspace, digest_key, is_removed, layer, own_name};

/// Whether the keys of a new cluster are made and kept, or only drawn to see what a plan would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    Make,
    Draw,
}

/// What stacks are opened for.
#[derive(Clone)]
pub struct Purpose {
    /// Nothing of them is wanted any more.
    pub destroy: bool,
    pub keys: Keys,
    /// Another etcd may be bootstrapped in the place of one that was lost.
    pub new_cluster: bool,
    /// An etcd snapshot that a lost etcd is restored from.
    pub restoring: Option<Arc<SecretBytes>>,
    /// Addresses of what is replaced although nothing about it asks for that.
    pub replace: Vec<String>,
    /// The places that a saved plan has for what is new.
    pub homes: Homes,
}

impl Purpose {
    /// To look, and to change nothing, not even here.
    pub const LOOK: Self = Self {
        destroy: false,
        keys: Keys::Draw,
        new_cluster: false,
        restoring: None,
        replace: Vec::new(),
        homes: Homes::new(),
    };
}

/// How the states of stacks are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateAccess<'o> {
    /// As they are now, whoever works on them.
    Look,
    /// Under the lock, which is held for this operation until it is released.
    Lock(&'o str),
}

/// The state of a stack, read once.
pub enum HeldState {
    Locked(Box<LockedRun>),
    Seen(Box<ReplayedState>),
}

impl HeldState {
    pub fn replayed(&self) -> &ReplayedState {
        match self {
            Self::Locked(run) => run.replayed(),
            Self::Seen(state) => state,
        }
    }

    pub fn document(&self) -> &StateDocument {
        &self.replayed().document
    }

    /// The lock, where there is one.
    pub fn locked(&mut self) -> Option<&mut LockedRun> {
        match self {
            Self::Locked(run) => Some(run),
            Self::Seen(_) => None,
        }
    }

    pub async fn release(self) -> Result<(), SessionError> {
        match self {
            Self::Locked(run) => Ok(run.release().await?),
            Self::Seen(_) => Ok(()),
        }
    }
}

/// A stack whose state was read; nothing else was asked yet.
pub struct OpenStack<'w> {
    pub(crate) workspace: &'w Workspace,
    pub(crate) stack: &'w EffectiveStack,
    pub(crate) purpose: Purpose,
    pub(crate) state: HeldState,
    pub(crate) moves: StackMoves,
    /// What the run is about, where that is not all of it.
    pub(crate) patterns: Option<Vec<Pattern>>,
}

/// A stack with the keys that its machines run with, where it has such.
struct KeyedStack {
    bundle: Option<SecretsBundle>,
}

/// A stack as the source wants it.
struct DrawnBlueprint {
    blueprint: Blueprint,
    bundle: Option<SecretsBundle>,
    key: Option<DigestKey>,
    wrapped_key: Option<String>,
    origins: BTreeMap<Address, MadeAs>,
}

impl<'w> OpenStack<'w> {
    /// Locks and reads, or only reads. An error within is about this state alone; any other concerns all of them: somebody holds a lock, or the
    /// store does not answer.
    pub(crate) async fn open(
        workspace: &'w Workspace,
        stack: &'w EffectiveStack,
        purpose: Purpose,
        access: StateAccess<'_>,
    ) -> Result<Result<Self, SessionError>, SessionError> {
        let (view, run) = (workspace.empty_view(stack)?, workspace.run(Providers::default(), stack)?);
        let state = match access {
            StateAccess::Look => run.read_state(&view).await.map(|state| HeldState::Seen(Box::new(state))),
            StateAccess::Lock(operation) => {
                let owner = workspace.surroundings().lock_owner(operation);
                run.lock(&view, owner).await.map(|run| HeldState::Locked(Box::new(run)))
            }
        };
        match state {
            Ok(state) => Ok(Ok(Self {
                workspace,
                stack,
                purpose,
                state,
                moves: StackMoves::default(),
                patterns: None,
            })),
            Err(EngineError::Store(error)) if !error.is_of_one_state() => Err(error.into()),
            Err(error) => Ok(Err(error.into())),
        }
    }

    pub fn name(&self) -> &str {
        &self.stack.name
    }

    pub fn stack(&self) -> &'w EffectiveStack {
        self.stack
    }

    pub fn state(&self) -> &HeldState {
        &self.state
    }

    pub async fn release(self) -> Result<(), SessionError> {
        self.state.release().await
    }

    /// Keys, draw, connect. On an error the lock is given back.
    pub async fn prepare(mut self) -> Result<StackSession, SessionError> {
        let prepared = match is_removed(self.stack) {
            true => self.connect_removed().await,
            false => self.prepared().await,
        };
        match prepared {
            Ok(ready) => {
                let mut state = self.state;
                if let Some(locked) = state.locked() {
                    locked.connect(ready.run.providers.clone());
                }
                let (name, layer) = (self.stack.name.clone(), layer(self.stack));
                let (removed, obstacles) = (is_removed(self.stack), Vec::new());
                Ok(StackSession { name, layer, removed, obstacles, state, ready })
            }
            Err(error) => {
                // The first error is the one to tell.
                let _ = self.state.release().await;
                Err(error)
            }
        }
    }

    async fn prepared(&mut self) -> Result<Ready, SessionError> {
        let connections = self.workspace.connect(&[self.stack]).await;
        // Nothing is made for what cannot be reached.
        let named = self.workspace.repository().target(self.stack).map(|(name, _)| name.to_owned());
        let named = named.or_else(|| own_name(self.stack));
        connections.require(named.as_deref().into_iter().chain(self.known_targets()))?;
        let keyed = self.keys().await?;
        let drawn = self.draw(keyed, &connections).await?;
        let wanted = drawn.blueprint.graph.iter().map(|resource| resource.target.as_str());
        connections.require(wanted)?;
        self.connect(drawn, &connections).await
    }

    /// The targets that its state has something on, or that an interrupted run worked on.
    fn known_targets(&self) -> impl Iterator<Item = &str> {
        let ReplayedState { document, open, .. } = self.state.replayed();
        let known = document.resources.values().map(|record| record.target.as_str());
        known.chain(open.iter().map(|entry| entry.target.as_str()))
    }

    async fn keys(&mut self) -> Result<KeyedStack, SessionError> {
        let providers = &self.workspace.surroundings().providers;
        let bundle = providers.keys(self.workspace, self.stack, &self.purpose, &mut self.state).await?;
        Ok(KeyedStack { bundle })
    }

    /// Where what was made stands, or was begun, and where a plan that was shown puts the rest.
    pub(crate) fn homes(&self) -> Homes {
        let mut document = self.state.document().clone();
        self.moves.moves.iter().for_each(|one| one.apply_to(&mut document));
        let begun = self.state.replayed().open.iter();
        let begun = begun.filter_map(|entry| Some((&entry.address, &entry.becomes.as_ref()?.spec)));
        let mut homes = self.purpose.homes.clone();
        homes.extend(recorded_homes(begun));
        homes.extend(recorded_homes(document.resources.iter().map(|(address, one)| (address, &one.spec))));
        homes
    }

    async fn draw(
        &self,
        keyed: KeyedStack,
        connections: &Connections,
    ) -> Result<DrawnBlueprint, SessionError> {
        let KeyedStack { bundle } = keyed;
        let mut origins = moves::origins(self.state.replayed(), &self.moves.moves);
        let mut before = Before { origins: moves::drawn_origins(&origins), homes: self.homes() };
        let draw = |before: &Before| {
            self.workspace.draw(self.stack, connections.shared_storages(), bundle.as_ref(), before)
        };
        let mut blueprint = draw(&before)?;
        if !self.purpose.destroy {
            let again = moves::made_again(self.state.replayed(), &self.moves.moves, &blueprint.graph);
            if !again.is_empty() {
                origins.extend(again);
                before.origins = moves::drawn_origins(&origins);
                blueprint = draw(&before)?;
            }
            let chosen = self.workspace.surroundings().providers.place(&blueprint).await?;
            if !chosen.is_empty() {
                before.homes.extend(chosen);
                blueprint = draw(&before)?;
            }
        }
        let has_secrets = |graph: &ResourceGraph| {
            graph.iter().any(|resource| resource.spec.values().any(Value::has_secret))
        };
        let (mut key, mut wrapped_key) = (None, None);
        if has_secrets(&blueprint.graph) {
            let lineage = self.workspace.lineage(self.stack)?;
            let (found, wrapped) = self.workspace.digest_key(self.state.document(), &lineage)?;
            (key, wrapped_key) = (Some(found), wrapped);
        }
        Ok(DrawnBlueprint { blueprint, bundle, key, wrapped_key, origins })
    }

    async fn connect(&self, drawn: DrawnBlueprint, connections: &Connections) -> Result<Ready, SessionError> {
        let DrawnBlueprint { mut blueprint, bundle, key, wrapped_key, origins } = drawn;
        let destroy = self.purpose.destroy;
        let mut view = self.view()?;
        let protected = blueprint.graph.iter().filter(|resource| destroy && resource.protect);
        view.protected = protected.map(|resource| resource.address.clone()).collect();
        let cluster_id = bundle.as_ref().filter(|_| !destroy).map(|bundle| bundle.cluster_id.clone());
        let mut providers = connections.providers().clone();
        let stack = DrawnStack {
            stack: self.stack,
            purpose: &self.purpose,
            graph: &blueprint.graph,
            cluster: blueprint.cluster.take().zip(bundle),
            state: self.state.document(),
            key: key.as_ref(),
        };
        self.workspace.surroundings().providers.attach(self.workspace, stack, &mut providers).await?;
        let (mut outputs, mut unwritten) = (BTreeMap::new(), BTreeSet::new());
        let known = self.select_in(&mut view, &blueprint.graph);
        let sealing = self.workspace.sealing(key, &origins)?;
        view.origins = origins;
        if !destroy {
            let reports = |address: &&Address| {
                !address.kind().table().reported_facts.is_empty()
                    && !blueprint.addresses.contains_key(*address)
            };
            unwritten =
                blueprint.graph.iter().map(|resource| &resource.address).filter(reports).cloned().collect();
            (view.graph, outputs) = (blueprint.graph, blueprint.outputs);
            view.seal(&sealing);
        }
        Ok(Ready {
            view,
            run: self.workspace.run(providers.sealing_with(sealing), self.stack)?,
            source_digest: self.workspace.source_digest(self.stack),
            outputs,
            unwritten,
            wrapped_key,
            cluster_id,
            known,
        })
    }

    /// A stack of which nothing is wanted yet, with what moves.
    fn view(&self) -> Result<StackView, SessionError> {
        let mut view = self.workspace.empty_view(self.stack)?;
        view.moves.clone_from(&self.moves.moves);
        view.unmovable.clone_from(&self.moves.unmovable);
        view.selected = self.moves.partner.then(BTreeSet::new);
        Ok(view)
    }

    /// Nothing is wanted of a stack that left the source.
    async fn connect_removed(&self) -> Result<Ready, SessionError> {
        let connections = self.workspace.connect(&[self.stack]).await;
        connections.require(self.known_targets())?;
        let mut providers = connections.providers().clone();
        self.workspace.surroundings().providers.attach_removed(self.stack, &mut providers);
        let mut view = self.view()?;
        view.removed = Some(self.stack.name.clone());
        let known = self.select_in(&mut view, &ResourceGraph::default());
        Ok(Ready {
            view,
            run: self.workspace.run(providers, self.stack)?,
            source_digest: self.workspace.source_digest(self.stack),
            outputs: BTreeMap::new(),
            unwritten: BTreeSet::new(),
            wrapped_key: None,
            cluster_id: None,
            known,
        })
    }

    /// Finds what the run is about. Gives everything that can be called by its address, where that matters.
    fn select_in(&self, view: &mut StackView, graph: &ResourceGraph) -> BTreeSet<Address> {
        let replaces = |address: &&Address| {
            self.purpose.replace.iter().any(|asked| Pattern::exactly(asked).matches(address))
        };
        let wanted = || graph.iter().map(|resource| &resource.address);
        view.replace = wanted().filter(replaces).cloned().collect();
        if self.patterns.is_none() && self.purpose.replace.is_empty() || self.moves.partner {
            return BTreeSet::new();
        }
        let mut document = self.state.document().clone();
        self.moves.moves.iter().for_each(|one| one.apply_to(&mut document));
        let open = self.state.replayed().open.iter().map(|entry| &entry.address);
        let known: BTreeSet<Address> =
            document.resources.keys().chain(open).chain(wanted()).cloned().collect();
        if let Some(patterns) = &self.patterns {
            let is_meant = |address: &&Address| patterns.iter().any(|pattern| pattern.matches(address));
            let meant = known.iter().filter(is_meant).chain(&view.replace);
            view.selected = Some(meant.cloned().collect());
        }
        known
    }

    /// A state with resources is from a time when Strata made this stack itself: OpenTofu would make everything again.
    pub(crate) fn refuse_resources(&self) -> Result<(), SessionError> {
        let (stack, count) = (&self.stack.name, self.state.document().resources.len());
        if count == 0 || !matches!(self.stack.model, Model::Tofu(_)) {
            return Ok(());
        }
        Err(SessionError::refused(format!(
            "the state of `{stack}` has {count} resources that Strata made itself"
        ))
        .hint(format!(
            "destroy them with the former `stack.yaml`, or leave them to OpenTofu: `strata sync --import-blocks`, then `strata state rm {stack}/…`"
        )))
    }
}

/// What planning needs.
struct Ready {
    view: StackView,
    run: Run,
    source_digest: String,
    /// Where an object has to report something, it is an input.
    outputs: BTreeMap<String, Value>,
    /// What has an address that the source does not say.
    unwritten: BTreeSet<Address>,
    /// The key of the digests for the state to keep, where it keeps none yet.
    wrapped_key: Option<String>,
    /// The id of the cluster whose keys it has.
    cluster_id: Option<String>,
    /// What can be called by its address, where the run is about a part of the stack.
    known: BTreeSet<Address>,
}

/// A stack that can be planned and applied.
pub struct StackSession {
    pub name: String,
    pub layer: Layer,
    /// It is not in the source any more.
    pub removed: bool,
    /// What would fail of its plan, as the preflight found.
    pub obstacles: Vec<Problem>,
    state: HeldState,
    ready: Ready,
}

impl StackSession {
    /// What is wanted of it.
    pub fn view(&self) -> &StackView {
        &self.ready.view
    }

    /// What can be called by its address, where the run is about a part of it.
    pub(crate) fn known(&self) -> &BTreeSet<Address> {
        &self.ready.known
    }

    pub fn state(&self) -> &ReplayedState {
        self.state.replayed()
    }

    /// What has an address that the source does not say.
    pub fn unwritten(&self) -> &BTreeSet<Address> {
        &self.ready.unwritten
    }

    /// Whether an output is known only when this plan was applied: an object that reports it is new, or changes what makes it untrue, or has reported
    /// nothing yet.
    pub(crate) fn awaits(&self, output: &str, plan: &Plan) -> bool {
        let document = self.state.document();
        let reported = |from: &Address, fact: &str| {
            document.resources.get(from).is_some_and(|record| record.facts.contains_key(fact))
        };
        let changes = |from: &Address| {
            let through = from.kind().table().reported_through;
            let untrue = |step: &Step| {
                let mut fields = step.changes.iter().filter_map(|change| change.path.first());
                step.action == StepAction::Create || fields.any(|field| through.contains(&field))
            };
            plan.steps.iter().any(|step| step.address == *from && untrue(step))
        };
        let needed = self.ready.outputs.get(output).map(inputs).unwrap_or_default();
        needed.iter().any(|(from, fact)| !reported(from, fact) || changes(from))
    }

    /// The digest of everything that its plan is made from.
    pub fn source_digest(&self) -> &str {
        &self.ready.source_digest
    }

    /// Closes what an interrupted run left open; without the lock nothing.
    pub async fn recover(&mut self) -> Result<(), SessionError> {
        if let Some(locked) = self.state.locked() {
            let resolved = locked.recover().await?;
            // What an interrupted run was about to make is new already, if it asked for that or not.
            let is_new = |address: &Address| {
                resolved.iter().any(|entry| entry.address == *address && entry.action == Action::Create)
            };
            self.ready.view.replace.retain(|address| !is_new(address));
        }
        Ok(())
    }

    pub async fn plan(&mut self) -> Result<Plan, SessionError> {
        self.plan_in(&Look::default()).await
    }

    /// The same as a part of a look at other stacks, too.
    pub async fn plan_in(&mut self, look: &Look) -> Result<Plan, SessionError> {
        let Ready { view, run, .. } = &self.ready;
        Ok(match &mut self.state {
            HeldState::Locked(locked) => locked.plan_in(look, view).await?,
            HeldState::Seen(state) => run.plan_seen(view, state, look).await?,
        })
    }

    /// Plans; a saved plan must still be the plan of now.
    pub(crate) async fn plan_or_check(
        &mut self,
        look: &Look,
        saved: Option<&PlanFile>,
    ) -> Result<Plan, SessionError> {
        let plan = self.plan_in(look).await?;
        let Some(saved) = saved else { return Ok(plan) };
        let mut stacks = saved.stacks.iter();
        let planned = stacks
            .find(|planned| planned.stack == self.name)
            .ok_or_else(|| SessionError::refused(format!("the plan file has no stack `{}`", self.name)))?;
        planned.check(&self.ready.source_digest, &plan)?;
        Ok(plan)
    }

    /// What differs from what was applied, as a part of a look at other stacks, too.
    pub async fn drift(&self, look: &Look) -> Result<Vec<Drift>, SessionError> {
        Ok(self.ready.run.drift_seen(&self.ready.view, self.state.replayed(), look).await?)
    }

    /// Everything that stands in the way of a plan. What plans before it do counts as done.
    pub async fn preflight(
        &self,
        plan: &Plan,
        look: &Look,
        earlier: &mut EarlierOperations,
    ) -> Result<Vec<Problem>, SessionError> {
        Ok(self.ready.run.preflight(plan, look, earlier).await?)
    }

    /// Looks at what could be taken over, and writes nothing.
    pub async fn survey(&mut self, proofs: &Proofs) -> Result<Adoption, SessionError> {
        let Ready { view, run, .. } = &self.ready;
        Ok(match &mut self.state {
            HeldState::Locked(locked) => locked.survey(view, proofs).await?,
            HeldState::Seen(state) => run.survey(view, &state.document, proofs).await?,
        })
    }

    /// Looks for what the state does not know and proves to be ours, and writes nothing.
    pub async fn retrieve(&mut self) -> Result<Retrieval, SessionError> {
        let Ready { view, run, .. } = &self.ready;
        Ok(match &mut self.state {
            HeldState::Locked(locked) => locked.retrieve(view).await?,
            HeldState::Seen(state) => run.retrieve(view, state).await?,
        })
    }

    /// Records what was taken over, with the outputs and the key of the digests. Without the lock nothing, and false.
    pub async fn record(&mut self, adoption: &Adoption) -> Result<bool, SessionError> {
        let Ready { outputs, unwritten, wrapped_key, cluster_id, .. } = &self.ready;
        let target = cluster_target(&self.name);
        let answers = |address: &Address, record: &StateResource| {
            record.target == target && !address.kind().table().seen_by_record
        };
        // Keys that a machine answers to are those of the cluster; others may have been drawn for the look only.
        let proven = adoption.records.iter().any(|(address, record)| answers(address, record));
        let Some(locked) = self.state.locked() else { return Ok(false) };
        if !adoption.records.is_empty() {
            locked
                .edit(|document| {
                    document.resources.extend(adoption.records.clone());
                    document.outputs = with_outputs(document, outputs);
                    if proven && document.cluster.is_none() {
                        document.cluster.clone_from(cluster_id);
                    }
                    if document.digest_key.is_none() {
                        document.digest_key.clone_from(wrapped_key);
                    }
                })
                .await?;
            // Whoever answers now is known at once; nobody is waited for.
            locked.record_reports(unwritten, &BTreeMap::new(), &StopSignal::default()).await?;
            let known = with_outputs(locked.state(), outputs);
            if locked.state().outputs != known {
                locked.edit(|document| document.outputs = known).await?;
            }
        }
        Ok(true)
    }

    /// Gives objects their other addresses within the state.
    pub(crate) async fn rename(&mut self) -> Result<(), SessionError> {
        match &mut self.state {
            HeldState::Locked(run) => Ok(run.rename(&self.ready.view.moves).await?),
            HeldState::Seen(_) => Ok(()),
        }
    }

    /// Gives objects to another stack.
    pub(crate) async fn hand_over(&mut self, to: &mut Self, arrivals: &[Move]) -> Result<(), SessionError> {
        match (&mut self.state, &mut to.state) {
            (HeldState::Locked(from), HeldState::Locked(to)) => Ok(from.hand_over(to, arrivals).await?),
            _ => Ok(()),
        }
    }

    /// Puts the ownership mark on objects that the state knows, and changes nothing else of them. The state says first that they carry it:
    /// whatever ends this run, the next one that adopts or applies puts it there.
    pub async fn mark(
        &mut self,
        addresses: &BTreeSet<Address>,
        options: &ApplyOptions,
    ) -> Result<ApplyReport, SessionError> {
        let Ready { view, .. } = &self.ready;
        let Some(locked) = self.state.locked() else { return Ok(ApplyReport::default()) };
        let claimed = |document: &mut StateDocument| {
            for address in addresses {
                if let (Some(record), Some(resource)) =
                    (document.resources.get_mut(address), view.graph.get(address))
                {
                    claim_mark(record, resource);
                }
            }
        };
        let mut after = locked.state().clone();
        claimed(&mut after);
        if after.resources != locked.state().resources {
            locked.edit(claimed).await?;
        }
        let plan = locked.plan_marks(view, addresses).await?;
        Ok(locked.apply(&plan, options).await?)
    }

    /// Records objects that are what the source says, whatever the state has of them. Nothing remote changes; none if one of them
    /// is something else.
    pub async fn record_unchanged(
        &mut self,
        addresses: &BTreeSet<Address>,
        options: &ApplyOptions,
    ) -> Result<Option<ApplyReport>, SessionError> {
        let Ready { view, .. } = &self.ready;
        let Some(locked) = self.state.locked() else { return Ok(None) };
        let Some(plan) = locked.plan_records(view, addresses).await? else { return Ok(None) };
        Ok(Some(locked.apply(&plan, options).await?))
    }

    /// What the source and the state know of an object: the operation that changes nothing of it, and its record, which is a partial one where
    /// the state does not have it.
    pub fn operation_on(&self, address: &Address) -> Option<(Operation, StateResource)> {
        let recorded = self.state().document.resources.get(address).cloned();
        let drawn = self.ready.view.graph.get(address);
        let begun = drawn.map(|drawn| StateResource {
            target: drawn.target.clone(),
            spec: stored_spec(&drawn.spec),
            facts: Spec::new(),
            depends_on: drawn.depends_on.clone(),
            stage: drawn.stage,
            protect: drawn.protect,
            partial: true,
            deposed: Vec::new(),
            made_as: None,
        });
        let record = recorded.clone().or(begun)?;
        let operation = Operation {
            action: Action::Update,
            address: address.clone(),
            target: record.target.clone(),
            lineage: self.ready.view.lineage.clone(),
            spec: drawn.map_or(&record.spec, |drawn| &drawn.spec).clone(),
            recorded,
            observed: None,
            changes: Vec::new(),
            restart: false,
            replacement: false,
            awaited: false,
            payload: None,
        };
        Some((operation, record))
    }

    /// Why nothing can be done to an object: what an interrupted run left open about it cannot be closed.
    pub fn left_open(&self, address: &Address) -> Option<&Unseen> {
        match &self.state {
            HeldState::Locked(run) => run.deferred(address),
            HeldState::Seen(_) => None,
        }
    }

    /// Whether the source or the state protects an object.
    pub fn is_protected(&self, address: &Address) -> bool {
        let recorded = self.state().document.resources.get(address).is_some_and(|record| record.protect);
        recorded || self.ready.view.graph.get(address).is_some_and(|drawn| drawn.protect)
    }

    /// What was applied to an object at some time, as far as the store keeps versions of the state from then.
    pub async fn applied_at(&self, address: &Address, seconds: i64) -> Option<StateResource> {
        let (store, key) = (&self.ready.run.store, &self.ready.view.key);
        let at = jiff::Timestamp::from_second(seconds).ok()?;
        let then =
            |version: &Version| version.written.parse::<jiff::Timestamp>().is_ok_and(|written| written <= at);
        let versions = store.history(key).await.ok()?;
        let newest = versions.into_iter().filter(then).max_by_key(|version| version.serial)?;
        let document = store.read_version(key, newest.serial).await.ok()?;
        document.resources.get(address).cloned()
    }

    /// Does one act on an object, under the lock and written ahead. What it gives beside its result is recorded.
    pub async fn act<T>(
        &mut self,
        operation: &Operation,
        becomes: StateResource,
        stop: &StopSignal,
        act: impl AsyncFnOnce(&dyn OperationContext) -> Result<(T, Option<StateResource>), ProviderError>,
    ) -> Result<T, SessionError> {
        let name = &self.name;
        let HeldState::Locked(run) = &mut self.state else {
            return Err(SessionError::failed(format!("`{name}` was opened to look, not to be changed")));
        };
        match run.act(operation, becomes, stop, act).await? {
            Ok(result) => Ok(result),
            Err(error) if error.class == ErrorClass::Stopped => {
                Err(SessionError::new(ErrorKind::Interrupted, error.message)
                    .hint("the journal has what was begun: the next apply or act looks what came of it"))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Carries out one operation outside any plan, by way of the provider of its target and of all that guards it. What the state says that was
    /// applied stays: a plan afterwards shows what is otherwise.
    pub async fn carry_out(
        &mut self,
        operation: &Operation,
        record: StateResource,
        stop: &StopSignal,
    ) -> Result<(), SessionError> {
        let provider = self.ready.run.providers.get(&operation.target)?.clone();
        let becomes = record.clone();
        let act = async |context: &dyn OperationContext| {
            let outcome = provider.execute(operation, context).await?;
            let facts = record.facts.into_iter().chain(outcome.facts).collect();
            Ok(((), Some(StateResource { facts, ..record })))
        };
        self.act(operation, becomes, stop, act).await
    }

    /// Looks at one object, by way of the provider of its target.
    pub async fn sight(&self, operation: &Operation) -> Result<Option<Sighting>, SessionError> {
        let Operation { address, spec, recorded, lineage, target, .. } = operation;
        let wanted = Wanted { address, spec, recorded: recorded.as_ref(), begun: None, lineage };
        Ok(self.ready.run.providers.get(target)?.observe_all(&[wanted]).await?.pop())
    }

    /// Whether the lock of its state is still held: asked before what this run writes outside of any object.
    pub fn still_held(&self) -> Result<(), SessionError> {
        match &self.state {
            HeldState::Locked(run) => Ok(run.still_held()?),
            HeldState::Seen(_) => Err(SessionError::failed(format!("`{}` was opened to look", self.name))),
        }
    }

    /// Applies a plan of this session under its lock.
    pub async fn apply(&mut self, plan: &Plan, options: &ApplyOptions) -> Result<ApplyReport, SessionError> {
        let HeldState::Locked(run) = &mut self.state else {
            return Err(SessionError::failed(format!(
                "`{}` was opened to look, not to be changed",
                self.name
            )));
        };
        let Ready { outputs, unwritten, cluster_id, wrapped_key, view, .. } = &self.ready;
        keep_digest_key(wrapped_key.as_ref(), run).await?;
        keep_cluster_id(cluster_id.as_ref(), run).await?;
        let report = run.apply(plan, options).await?;
        // With an entry open the journal would be replayed over the change.
        if report.is_success() && run.open_entries() == 0 {
            keep_digest_key(wrapped_key.as_ref(), run).await?;
            // What a part of a stack is about says nothing of its outputs, and the keys of a cluster stay with what is left of it.
            let in_part = view.selected.is_some() && !run.state().resources.is_empty();
            // Of a cluster that is destroyed the keys may go, too.
            let selected =
                |address: &&Address| view.selected.as_ref().is_none_or(|all| all.contains(*address));
            let asked = unwritten.iter().filter(selected).cloned().collect();
            let needed = if in_part { &BTreeMap::new() } else { outputs };
            run.record_reports(&asked, needed, &options.stop).await?;
            let known = with_outputs(run.state(), outputs);
            if !in_part && (run.state().outputs != known || run.state().cluster != *cluster_id) {
                run.edit(|document| {
                    document.outputs = known;
                    document.cluster.clone_from(cluster_id);
                })
                .await?;
            }
        }
        Ok(report)
    }

    pub(crate) fn into_state(self) -> HeldState {
        self.state
    }

    pub async fn release(self) -> Result<(), SessionError> {
        self.state.release().await
    }
}

/// Which cluster it is, is in the state before a machine has its keys: a run that fails later leaves machines with keys that no other
/// cluster may have.
async fn keep_cluster_id(id: Option<&String>, run: &mut LockedRun) -> Result<(), SessionError> {
    if id.is_none() || run.state().cluster.is_some() || run.open_entries() > 0 {
        return Ok(());
    }
    Ok(run.edit(|document| document.cluster = id.cloned()).await?)
}

/// The key of the digests is in the state before the first digest is: a run that fails may leave nothing else behind. While entries of an
/// interrupted run are open the state is not written; then it is kept once they are resolved.
async fn keep_digest_key(wrapped: Option<&String>, run: &mut LockedRun) -> Result<(), SessionError> {
    let Some(wrapped) = wrapped.filter(|_| run.state().digest_key.is_none() && run.open_entries() == 0)
    else {
        return Ok(());
    };
    if digest_key::is_wrapped(wrapped) {
        return Ok(run.edit(|document| document.digest_key = Some(wrapped.clone())).await?);
    }
    // What is not wrapped is the same whenever this machine makes it, so it goes with the first write.
    run.note_digest_key(Some(wrapped.clone()));
    Ok(())
}
