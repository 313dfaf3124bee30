//! One run on one stack: look and plan without a lock; recover, apply and save under it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strata_resource::{Address, Lineage, Resource, ResourceGraph};
use strata_secret::DigestKey;
use strata_state::{
    JournalTally, LockOwner, LockedState, MadeAs, ReplayedState, StateDocument, Store, StoreError, Writer,
    replay,
};

use crate::events::{Event, EventSink};
use crate::journal::SharedTally;
use crate::moves::Move;
use crate::plan::{Plan, Problem, ProblemKind};
use crate::planner::{Draft, PlanRequest, draft_plan, make_plan};
use crate::recovery::foreseen;
use crate::refresh::{Live, refresh};
use crate::{
    Drift, Finding, Home, Look, Obstacle, Operation, Provider, ProviderError, ResolvedEntry, Review, Unseen,
};

/// The time, passed in.
pub trait Clock: Send + Sync {
    /// Seconds since 1970.
    fn now(&self) -> i64;
}

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot look at target `{target}`: {error}")]
    Observe {
        target: String,
        #[source]
        error: Box<ProviderError>,
    },
    #[error("no target `{0}`")]
    NoTarget(String),
    #[error(
        "the state `{key}` belongs to another repository: its lineage is {found}, the source says {expected}"
    )]
    Lineage { key: String, found: Lineage, expected: Lineage },
    #[error("cannot finish what an interrupted run left open at `{address}`: {error}")]
    Recovery {
        address: String,
        #[source]
        error: Box<ProviderError>,
    },
    #[error(
        "an interrupted run left work open at `{address}`: it must be finished first, with `strata apply`"
    )]
    Open { address: String },
    #[error(
        "cannot say whether `{address}` was moved: the state `{key}` may have it, and cannot be read: {error}"
    )]
    Arrival {
        address: String,
        key: String,
        #[source]
        error: Box<StoreError>,
    },
    #[error("the plan cannot run: {0}")]
    Unfit(String),
    #[error("the plan is inconsistent, this is a defect of Strata: {0}")]
    Lint(String),
}

/// The providers, by target, and the keys of the digests that stand for what they read back of secrets.
#[derive(Clone, Default)]
pub struct Providers {
    by_target: BTreeMap<String, Arc<dyn Provider>>,
    sealing: Sealing,
}

/// What digests of secrets are made with: a key and the address that it is for.
#[derive(Clone, Default)]
pub struct Sealing {
    key: Option<DigestKey>,
    /// Of what was moved: as it was made, so that a secret that did not change has the digest that it had.
    moved: BTreeMap<Address, (Option<DigestKey>, Address)>,
}

impl Sealing {
    pub fn new(key: Option<DigestKey>) -> Self {
        Self { key, moved: BTreeMap::new() }
    }

    /// Of an object that was made under another address, and perhaps in a state with another key.
    pub fn insert(&mut self, address: Address, key: Option<DigestKey>, made_as: Address) {
        self.moved.insert(address, (key, made_as));
    }

    /// Without a key a secret that is read back counts as changed.
    pub(crate) fn of<'s>(&'s self, address: &'s Address) -> Option<(&'s DigestKey, &'s Address)> {
        match self.moved.get(address) {
            Some((key, made_as)) => Some((key.as_ref().or(self.key.as_ref())?, made_as)),
            None => Some((self.key.as_ref()?, address)),
        }
    }
}

impl Providers {
    pub fn insert(&mut self, target: &str, provider: Arc<dyn Provider>) {
        self.by_target.insert(target.to_owned(), provider);
    }

    pub fn get(&self, target: &str) -> Result<&Arc<dyn Provider>, EngineError> {
        self.by_target.get(target).ok_or_else(|| EngineError::NoTarget(target.to_owned()))
    }

    #[must_use]
    pub fn sealing_with(self, sealing: Sealing) -> Self {
        Self { sealing, ..self }
    }

    pub(crate) fn sealing(&self) -> &Sealing {
        &self.sealing
    }
}

/// What is wanted of one stack.
pub struct StackView {
    /// `<environment>/<stack>`.
    pub key: String,
    pub lineage: Lineage,
    pub graph: ResourceGraph,
    /// What the source protects, also where nothing of it is wanted any more.
    pub protected: BTreeSet<Address>,
    /// Its name, if it is not in the source any more.
    pub removed: Option<String>,
    /// What gets another address before anything else is done.
    pub moves: Vec<Move>,
    /// What cannot be moved, and why.
    pub unmovable: Vec<Problem>,
    /// Where objects were made that were moved since then.
    pub origins: BTreeMap<Address, MadeAs>,
    /// The addresses that a run is about; all without it.
    pub selected: Option<BTreeSet<Address>>,
    /// What is replaced although nothing about it asks for that.
    pub replace: BTreeSet<Address>,
    /// Where it stands in its repository.
    pub home: Option<Home>,
}

impl StackView {
    /// A stack of which nothing is wanted.
    pub fn empty(key: String, lineage: Lineage) -> Self {
        Self {
            key,
            lineage,
            graph: ResourceGraph::default(),
            protected: BTreeSet::new(),
            removed: None,
            moves: Vec::new(),
            unmovable: Vec::new(),
            origins: BTreeMap::new(),
            selected: None,
            replace: BTreeSet::new(),
            home: None,
        }
    }

    /// The state as it is once everything is moved that is to be moved.
    fn after_moves<'s>(&self, state: &'s ReplayedState) -> Cow<'s, ReplayedState> {
        if self.moves.is_empty() {
            return Cow::Borrowed(state);
        }
        let mut moved = state.clone();
        self.moves.iter().for_each(|one| one.apply_to(&mut moved.document));
        Cow::Owned(moved)
    }

    /// Gives every secret of the graph its digest, so that it can be compared with the state.
    pub fn seal(&mut self, sealing: &Sealing) {
        for resource in self.graph.iter_mut() {
            let Some((key, address)) = sealing.of(&resource.address) else { continue };
            let spec = strata_resource::Value::Map(std::mem::take(&mut resource.spec)).sealed(key, address);
            if let strata_resource::Value::Map(spec) = spec {
                resource.spec = spec;
            }
        }
    }
}

/// What the plans before one do, by target.
#[derive(Default)]
pub struct EarlierOperations(BTreeMap<String, Vec<Operation>>);

/// What a run works with.
#[derive(Clone)]
pub struct Run {
    pub store: Arc<dyn Store>,
    pub providers: Providers,
    pub clock: Arc<dyn Clock>,
    pub events: Arc<dyn EventSink>,
}

impl Run {
    /// The state with its journal, as it is now, whoever works on it.
    pub async fn read_state(&self, stack: &StackView) -> Result<ReplayedState, EngineError> {
        Ok(read_state(self.store.as_ref(), stack).await?.0)
    }

    /// Plans without a lock: shows what an interrupted run left open and resolves none of it.
    pub async fn plan(&self, stack: &StackView) -> Result<Plan, EngineError> {
        let state = self.read_state(stack).await?;
        self.plan_seen(stack, &state, &Look::default()).await
    }

    /// The same from a state that was read before, as a part of a look at other stacks, too.
    pub async fn plan_seen(
        &self,
        stack: &StackView,
        state: &ReplayedState,
        look: &Look,
    ) -> Result<Plan, EngineError> {
        let at_work = match state.open.is_empty() {
            true => None,
            false => self.store.holder(&stack.key).await?,
        };
        let at_work = at_work.filter(|holder| !holder.is_gone()).map(|holder| holder.to_string());
        self.plan_from(stack, state, &BTreeMap::new(), at_work, look).await
    }

    pub async fn drift(&self, stack: &StackView) -> Result<Vec<Drift>, EngineError> {
        let state = self.read_state(stack).await?;
        self.drift_seen(stack, &state, &Look::default()).await
    }

    /// The same from a state that was read before, as a part of a look at other stacks, too.
    pub async fn drift_seen(
        &self,
        stack: &StackView,
        state: &ReplayedState,
        look: &Look,
    ) -> Result<Vec<Drift>, EngineError> {
        let nothing = ResourceGraph::default();
        let live = self.look(&nothing, state, &stack.lineage, look).await?;
        let mut found = crate::drift::apart(crate::drift::compare(state, &live), &stack.graph);
        if let Some(selected) = &stack.selected {
            let about = crate::drift::with_needed(selected, &state.document);
            found.retain(|drift| about.contains(&drift.address));
        }
        Ok(found)
    }

    /// Asks the providers whether this run can do what the plan says. Gives everything that stands in its way. What plans before it do counts as
    /// done; the plan is then one of them.
    pub async fn preflight(
        &self,
        plan: &Plan,
        look: &Look,
        earlier: &mut EarlierOperations,
    ) -> Result<Vec<Problem>, EngineError> {
        let mut found = Vec::new();
        let mut checked = Ok(());
        for (target, operations) in plan.operations() {
            let made = earlier.0.entry(target.to_owned()).or_default();
            // A plan that is refused already has said enough.
            if plan.problems.is_empty() && checked.is_ok() {
                match self.providers.get(target) {
                    Ok(provider) => match provider.preflight(look, &operations, made).await {
                        Ok(obstacles) => found.extend(obstacles.into_iter().map(|one| refused(plan, one))),
                        Err(error) => {
                            let (target, error) = (target.to_owned(), Box::new(error));
                            checked = Err(EngineError::Observe { target, error });
                        }
                    },
                    Err(error) => checked = Err(error),
                }
            }
            made.extend(operations);
        }
        checked.map(|()| found)
    }

    /// What the providers find about a draft, target by target.
    async fn review(&self, draft: &Draft<'_>) -> Result<Vec<Finding>, EngineError> {
        let mut found = Vec::new();
        for (target, operations) in draft.operations() {
            let review = Review { operations: &operations, live: draft.live() };
            match self.providers.get(target)?.review(review).await {
                Ok(findings) => found.extend(findings),
                // What does not answer is a problem of the plan already.
                Err(_) if draft.is_blocked() => {}
                Err(error) => {
                    let (target, error) = (target.to_owned(), Box::new(error));
                    return Err(EngineError::Observe { target, error });
                }
            }
        }
        Ok(found)
    }

    pub(crate) async fn plan_from(
        &self,
        stack: &StackView,
        state: &ReplayedState,
        deferred: &BTreeMap<u64, Unseen>,
        at_work: Option<String>,
        look: &Look,
    ) -> Result<Plan, EngineError> {
        if let Some(defect) = stack.graph.iter().find_map(not_of_its_kind) {
            return Err(EngineError::Lint(defect));
        }
        let moved = stack.after_moves(state);
        let state = &*moved;
        let live = self.look(&stack.graph, state, &stack.lineage, look).await?;
        let state = &*foreseen(state, &live);
        let known_as = self.known_elsewhere(stack, &state.document.resources, &live, look).await;
        let request = PlanRequest {
            graph: &stack.graph,
            state: &state.document,
            open: &state.open,
            lineage: &stack.lineage,
            live: &live,
            deferred,
            at_work,
            protected: &stack.protected,
            removed_stack: stack.removed.as_deref(),
            moves: &stack.moves,
            unmovable: &stack.unmovable,
            origins: &stack.origins,
            selected: stack.selected.as_ref(),
            replace: &stack.replace,
            known_as: &known_as,
            file: stack.home.as_ref().map_or("", |home| &home.file),
        };
        let draft = draft_plan(&request);
        let findings = self.review(&draft).await?;
        let plan = make_plan(draft, findings);
        match plan.lint().first() {
            Some(defect) => Err(EngineError::Lint(defect.clone())),
            None => Ok(plan),
        }
    }

    pub(crate) async fn look(
        &self,
        graph: &ResourceGraph,
        state: &ReplayedState,
        lineage: &Lineage,
        look: &Look,
    ) -> Result<Live, EngineError> {
        let ReplayedState { document, open, .. } = state;
        self.events.emit(Event::RefreshStarted { objects: graph.len().max(document.resources.len()) });
        let live = refresh(graph, document, open, lineage, &self.providers, look).await?;
        self.events.emit(Event::RefreshDone { objects: live.current.len() });
        Ok(live)
    }

    /// Takes the lock and reads the state.
    pub async fn lock(&self, stack: &StackView, owner: LockOwner) -> Result<LockedRun, EngineError> {
        let writer = Writer::from(&owner);
        let lock: Arc<dyn LockedState> = Arc::from(self.store.lock(&stack.key, owner).await?);
        match read_state(self.store.as_ref(), stack).await {
            Ok((state, tally)) => {
                // What the former holder had begun is open in the journal; without that nothing of it is under way.
                let wait = lock.late_request_window();
                if !wait.is_zero() && !state.open.is_empty() {
                    let seconds = wait.as_secs().max(1);
                    self.events.emit(Event::WaitingOut { key: stack.key.clone(), seconds });
                    tokio::time::sleep(wait).await;
                }
                let (tally, deferred) = (SharedTally::new(tally), BTreeMap::new());
                Ok(LockedRun { run: self.clone(), lock, writer, state, tally, deferred, edits: 0 })
            }
            Err(error) => {
                // The first error is the one to tell; an OS lock ends with the process at the latest.
                let _ = lock.release().await;
                Err(error)
            }
        }
    }
}

/// An obstacle as a problem of the plan, with the place in the source.
fn refused(plan: &Plan, obstacle: Obstacle) -> Problem {
    let Obstacle { address, error } = obstacle;
    let origin = plan.steps.iter().find(|step| step.address == address).and_then(|step| step.origin.clone());
    // Of a problem the address is shown beside what it says.
    let own = format!("`{address}`: ");
    let message = error.message.strip_prefix(&own).unwrap_or(&error.message).to_owned();
    let hint = error.hint.unwrap_or_else(|| "change it in the source, or on the target".to_owned());
    Problem { kind: ProblemKind::Preflight, address, message, hint, origin }
}

/// A field that the table of its kind does not have: nobody could say what a change of it means.
fn not_of_its_kind(resource: &Resource) -> Option<String> {
    let unknown = resource.kind().rules().unknown_in(&resource.spec);
    (!unknown.is_empty()).then(|| format!("`{}`: {}", resource.address, unknown.join("; ")))
}

async fn read_state(
    store: &dyn Store,
    stack: &StackView,
) -> Result<(ReplayedState, JournalTally), EngineError> {
    // The journal first: a writer folds it into the document and then clears it, so what is not in the one is in the other.
    let journal = store.read_journal(&stack.key).await?;
    let tally = JournalTally::of(&journal)
        .map_err(|damage| StoreError::Journal { key: stack.key.clone(), damage })?;
    let document = match store.read(&stack.key).await? {
        Some(document) if document.lineage != stack.lineage => {
            return Err(EngineError::Lineage {
                key: stack.key.clone(),
                found: document.lineage,
                expected: stack.lineage.clone(),
            });
        }
        Some(document) => document,
        None => StateDocument::new(stack.lineage.clone(), &stack.key),
    };
    Ok((replay(document, journal), tally))
}

/// A run that holds the lock of its state.
pub struct LockedRun {
    pub(crate) run: Run,
    pub(crate) lock: Arc<dyn LockedState>,
    /// Whose versions these are.
    writer: Writer,
    pub(crate) state: ReplayedState,
    pub(crate) tally: SharedTally,
    /// Open entries of which nobody can see what came of them, and why.
    pub(crate) deferred: BTreeMap<u64, Unseen>,
    /// Edits of the document since the last plan: under the lock nobody else makes any.
    pub(crate) edits: u64,
}

impl LockedRun {
    pub fn state(&self) -> &StateDocument {
        &self.state.document
    }

    /// The state with what its journal has open.
    pub fn replayed(&self) -> &ReplayedState {
        &self.state
    }

    /// From here on the run asks these: what a stack needs of providers is known only after its state was read.
    pub fn connect(&mut self, providers: Providers) {
        self.run.providers = providers;
    }

    /// Why an open entry of this address cannot be closed, after a recovery that tried to.
    pub fn deferred(&self, address: &Address) -> Option<&Unseen> {
        let entry = self.state.open.iter().find(|entry| entry.address == *address)?;
        self.deferred.get(&entry.id)
    }

    pub fn open_entries(&self) -> usize {
        self.state.open.len()
    }

    /// Closes what an interrupted run left open, and writes the state that follows from it.
    pub async fn recover(&mut self) -> Result<Vec<ResolvedEntry>, EngineError> {
        let resolved = crate::recovery::resolve_all(self).await?;
        self.save().await?;
        Ok(resolved)
    }

    pub async fn plan(&mut self, stack: &StackView) -> Result<Plan, EngineError> {
        self.plan_in(&Look::default(), stack).await
    }

    /// The same as a part of a look at other stacks, too. What an interrupted run left open must have been resolved before it began.
    pub async fn plan_in(&mut self, look: &Look, stack: &StackView) -> Result<Plan, EngineError> {
        let plan = self.run.plan_from(stack, &self.state, &self.deferred, None, look).await?;
        self.edits = 0;
        Ok(plan)
    }

    /// Changes the document itself, outside any plan: `state mv`, `state rm`, a rollback. Its serial goes on counting.
    pub async fn edit(&mut self, change: impl FnOnce(&mut StateDocument)) -> Result<(), EngineError> {
        // The journal would be replayed over the change.
        if let Some(entry) = self.state.open.first() {
            return Err(EngineError::Open { address: entry.address.to_string() });
        }
        let serial = self.state.document.serial;
        change(&mut self.state.document);
        self.state.document.serial = serial;
        self.state.unfolded = true;
        self.save().await?;
        self.edits += 1;
        Ok(())
    }

    /// Has the document keep this key of its digests from its next write on.
    pub fn note_digest_key(&mut self, key: Option<String>) {
        self.state.document.digest_key = key;
    }

    /// Folds the journal into the document. While entries are open the journal stays: it is the truth then.
    pub(crate) async fn save(&mut self) -> Result<(), EngineError> {
        if !self.state.open.is_empty() {
            return Ok(());
        }
        if self.state.unfolded {
            self.state.document.folded = self.state.last_id;
            self.state.document.serial += 1;
            self.state.document.written_by = Some(self.writer.clone());
            self.lock.write(&self.state.document).await?;
            self.state.unfolded = false;
            self.state.uncleared = true;
        }
        if self.state.uncleared {
            self.lock.clear_journal().await?;
            self.tally.clear();
            self.state.uncleared = false;
        }
        Ok(())
    }

    /// How long one remote write may take; none where the lock does not lapse.
    pub fn write_timeout(&self) -> Option<std::time::Duration> {
        self.lock.write_timeout()
    }

    /// Fails if somebody took the lock away, or its lease has lapsed.
    pub fn still_held(&self) -> Result<(), EngineError> {
        Ok(self.lock.still_held()?)
    }

    pub async fn release(self) -> Result<(), EngineError> {
        Ok(self.lock.release().await?)
    }
}
