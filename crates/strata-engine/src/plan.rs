//! A plan: the steps, what stands in the way, and what it all rests on.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strata_resource::{Address, FieldChange, Lineage, RestartPolicy, Spec, Stage};
use strata_state::{Action, OpenEntry, StateResource};

use crate::object_key::ObjectKey;
use crate::{Observed, Operation, Payload, PlannedMove};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepAction {
    Create,
    Update,
    Delete,
    /// Deletes the former object of a replacement, once nothing uses it any more.
    DeleteFormer,
    /// Writes into the state what is already so; nothing remote changes.
    Record,
    /// Drops from the state what is gone; nothing remote changes.
    Forget,
}

impl StepAction {
    /// What the journal and the provider call it.
    pub(crate) fn action(self) -> Action {
        match self {
            Self::Create => Action::Create,
            Self::Update | Self::Record => Action::Update,
            Self::Delete | Self::DeleteFormer | Self::Forget => Action::Delete,
        }
    }

    /// Whether the step writes to a remote.
    pub fn is_remote(self) -> bool {
        !matches!(self, Self::Record | Self::Forget)
    }
}

/// One step of a plan, complete: apply decides nothing.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    pub address: Address,
    pub action: StepAction,
    pub target: String,
    pub stage: Stage,
    /// The object is deleted and recreated; the two steps belong together.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replacement: bool,
    /// Others of its group go down only when it works.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub awaited: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FieldChange>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restart: bool,
    /// Values that are sent and wait for a restart that nobody asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stays_pending: bool,
    /// Why it is done, where the changes do not say it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Steps that must be done first, by their place in the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<usize>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<String>,
    /// What the object is to become; for a delete, what it was. Secrets are digests in anything that is written.
    pub spec: Spec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<StateResource>,
    /// What the plan saw. Never written: live values may hold what somebody else keeps secret. `Plan::live` and
    /// `Plan::former` have its digest.
    #[serde(skip)]
    pub observed: Option<Observed>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// What the state will say of it when the step is done; none for steps that remove.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub becomes: Option<StateResource>,
    #[serde(default)]
    pub on_change: RestartPolicy,
    /// What is sent, where the review found it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Payload>,
}

impl Step {
    /// Whether an object is gone when the step is done.
    pub(crate) fn removes(&self) -> bool {
        matches!(self.action, StepAction::Delete | StepAction::DeleteFormer)
    }

    /// The object that the step is about.
    fn object_key(&self) -> ObjectKey {
        ObjectKey::of(self.address.kind(), &self.target, &self.spec)
    }

    /// What the provider is asked to do.
    pub(crate) fn operation(&self, action: Action, spec: Spec, lineage: &Lineage) -> Operation {
        Operation {
            action,
            address: self.address.clone(),
            target: self.target.clone(),
            lineage: lineage.clone(),
            spec,
            recorded: self.recorded.clone(),
            observed: self.observed.clone(),
            changes: self.changes.clone(),
            restart: self.restart,
            replacement: self.replacement,
            awaited: self.awaited,
            payload: self.payload.clone(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProblemKind {
    /// Something that is not ours has the identity.
    #[serde(alias = "stranger")]
    Unmanaged,
    /// Somebody else has staged changes of the object.
    Busy,
    /// `protect: true`.
    Protected,
    /// A change that is never done, such as shrinking a disk.
    Refused,
    /// It does not answer.
    #[serde(alias = "silent")]
    Unreachable,
    /// It was begun once and cannot be begun again: it must be restored.
    Lost,
    /// A precondition of an operation does not hold, by what its provider sees.
    #[serde(rename = "harmful")]
    Precondition,
    /// The preflight found that it would fail: a privilege is missing, a storage is not there or too small.
    Preflight,
    /// Whether it is there cannot be seen. It is left as it is, and the rest is planned.
    Unknown,
}

/// Why the plan cannot run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    pub kind: ProblemKind,
    pub address: Address,
    pub message: String,
    pub hint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// A plan. Its author is the planner: it can be read, and not changed.
///
/// ```
/// fn count(plan: &strata_engine::Plan) -> usize {
///     plan.steps.len()
/// }
/// ```
///
/// ```compile_fail
/// fn change(plan: &mut strata_engine::Plan) {
///     plan.steps.clear();
/// }
/// ```
///
/// ```compile_fail
/// fn make(content: strata_engine::PlanContent) -> strata_engine::Plan {
///     strata_engine::Plan::new(content)
/// }
/// ```
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Plan(PlanContent);

impl Deref for Plan {
    type Target = PlanContent;

    fn deref(&self) -> &PlanContent {
        &self.0
    }
}

/// What a plan says.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PlanContent {
    pub key: String,
    pub lineage: Lineage,
    /// The serial of the state that it was made from.
    pub serial: u64,
    pub steps: Vec<Step>,
    pub problems: Vec<Problem>,
    /// What an interrupted run left open.
    pub open: Vec<OpenEntry>,
    /// Who works on the state while it is planned: then what is open is not left, but under way.
    #[serde(skip)]
    pub at_work: Option<String>,
    /// The digest of every live object that the plan looked at; absent ones have none.
    pub live: BTreeMap<Address, Option<String>>,
    /// The same of the former objects of an address.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub former: BTreeMap<Address, Vec<Option<String>>>,
    pub unchanged: usize,
    /// What could not be looked at, because something that it needs is changed first; and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unseen: BTreeMap<Address, String>,
    /// What cannot be seen at all, and what is left as it is because of that. The rest of the plan can run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<Problem>,
    /// What replacements left behind and others still use: it is deleted by the first plan that finds it unused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub in_use: BTreeMap<Address, Vec<String>>,
    /// What gets another address before anything else is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<PlannedMove>,
    /// What a plan of everything would change, and this one is not about. Whatever becomes of it does not make a saved plan stale.
    #[serde(skip)]
    pub left_out: BTreeSet<Address>,
    /// What differs and is left so, because the source says that it is for others.
    #[serde(skip)]
    pub ignored: BTreeMap<Address, Vec<IgnoredChange>>,
}

/// A difference that the source leaves to others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct IgnoredChange {
    #[serde(flatten)]
    pub change: FieldChange,
    /// Why, as the source says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The numbers under a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    pub create: usize,
    pub update: usize,
    pub replace: usize,
    pub delete: usize,
    pub restart: usize,
    pub unchanged: usize,
    #[serde(default, skip_serializing_if = "is_none")]
    pub moved: usize,
    /// What was not selected, and would change too.
    #[serde(default, skip_serializing_if = "is_none")]
    pub left_out: usize,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

impl Summary {
    pub fn changes(&self) -> usize {
        self.create + self.update + self.replace + self.delete + self.moved
    }
}

impl std::ops::AddAssign for Summary {
    fn add_assign(&mut self, other: Self) {
        self.create += other.create;
        self.update += other.update;
        self.replace += other.replace;
        self.delete += other.delete;
        self.restart += other.restart;
        self.unchanged += other.unchanged;
        self.moved += other.moved;
        self.left_out += other.left_out;
    }
}

impl Plan {
    pub(crate) fn new(content: PlanContent) -> Self {
        Self(content)
    }

    /// The steps that put the ownership mark on one of these objects and change nothing else. Such a step needs no other.
    pub(crate) fn marks_of(&self, addresses: &BTreeSet<Address>) -> Self {
        let is_mark = |step: &&Step| {
            let mark = step.address.kind().table().mark_field();
            step.action == StepAction::Update
                && addresses.contains(&step.address)
                && !step.restart
                && !step.changes.is_empty()
                && step.changes.iter().all(|change| mark.is_some() && change.path.first() == mark)
        };
        let steps = self.steps.iter().filter(is_mark).map(|step| Step { needs: Vec::new(), ..step.clone() });
        let mut content = self.0.clone();
        content.steps = steps.collect();
        content.moves.clear();
        content.problems.retain(|problem| addresses.contains(&problem.address));
        Self(content)
    }

    /// The steps that record these objects as they are; none if the plan would change one of them, or cannot say.
    pub(crate) fn records_of(&self, addresses: &BTreeSet<Address>) -> Option<Self> {
        let is_meant = |address: &Address| addresses.contains(address);
        let own = self.steps.iter().filter(|step| is_meant(&step.address));
        let mut blocked =
            self.problems.iter().chain(&self.unknown).filter(|problem| is_meant(&problem.address));
        if own.clone().any(|step| step.action != StepAction::Record) || blocked.next().is_some() {
            return None;
        }
        let mut content = self.0.clone();
        content.steps = own.map(|step| Step { needs: Vec::new(), ..step.clone() }).collect();
        content.moves.clear();
        content.problems.clear();
        content.unknown.clear();
        Some(Self(content))
    }

    /// Whether anything remote would change, or anything gets another address here.
    pub fn has_changes(&self) -> bool {
        self.steps.iter().any(|step| step.action.is_remote()) || self.moved() > 0
    }

    /// How many objects get an address of this stack. Those that leave it are counted where they go.
    fn moved(&self) -> usize {
        self.moves.iter().filter(|one| one.to_key.is_none()).count()
    }

    /// What the providers are asked to do, by target.
    pub fn operations(&self) -> BTreeMap<&str, Vec<Operation>> {
        operations(&self.steps, &self.lineage)
    }

    pub fn summary(&self) -> Summary {
        let (moved, left_out) = (self.moved(), self.left_out.len());
        let mut summary = Summary { unchanged: self.unchanged, moved, left_out, ..Summary::default() };
        let ends = |step: &&Step| {
            matches!(step.action, StepAction::Delete | StepAction::Forget) && !step.replacement
        };
        let ended: BTreeSet<&Address> = self.steps.iter().filter(ends).map(|step| &step.address).collect();
        for step in &self.steps {
            match step.action {
                StepAction::Create if step.replacement => summary.replace += 1,
                StepAction::Create => summary.create += 1,
                StepAction::Update => summary.update += 1,
                StepAction::Delete if !step.replacement => summary.delete += 1,
                // The other half of a replacement is counted with its create; a former object from an earlier run alone.
                StepAction::DeleteFormer if !step.replacement => summary.delete += 1,
                StepAction::Record if !ended.contains(&step.address) => summary.unchanged += 1,
                StepAction::Delete | StepAction::DeleteFormer | StepAction::Record | StepAction::Forget => {}
            }
            summary.restart += usize::from(step.restart);
        }
        summary
    }

    /// What must hold for every plan; a plan that breaks one of these is a defect of the planner and never runs.
    pub fn lint(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut kept: BTreeMap<ObjectKey, &Address> = BTreeMap::new();
        for step in self.steps.iter().filter(|step| step.becomes.is_some()) {
            kept.insert(step.object_key(), &step.address);
        }
        let mut removed: BTreeMap<ObjectKey, &Address> = BTreeMap::new();
        for (index, step) in self.steps.iter().enumerate() {
            let name = &step.address;
            if step.needs.iter().any(|need| *need >= index) {
                found.push(format!("`{name}` needs a step that does not come before it"));
            }
            if step.removes() {
                if step.observed.is_none() {
                    found.push(format!("`{name}` would be deleted without having been seen"));
                }
                if step.recorded.as_ref().is_some_and(|recorded| recorded.protect) {
                    found.push(format!("`{name}` is protected and would be deleted"));
                }
                // Only a delete that makes room, or that ends the address, may be of an object that the address itself keeps.
                let own = step.action == StepAction::Delete;
                if let Some(keeper) = kept.get(&step.object_key()).filter(|keeper| !own || **keeper != name) {
                    found.push(format!("`{name}` would be deleted, and `{keeper}` is the same object"));
                }
                if let Some(other) = removed.insert(step.object_key(), name) {
                    found.push(format!("`{name}` would be deleted twice, also as `{other}`"));
                }
            }
            if step.action == StepAction::Create && step.observed.is_some() && !step.replacement {
                found.push(format!("`{name}` would be made although it is there"));
            }
            if step.action == StepAction::Update && step.changes.is_empty() && !step.restart {
                found.push(format!("`{name}` would be updated with nothing"));
            }
        }
        found
    }
}

/// What the providers are asked to do by the steps, by target.
pub(crate) fn operations<'s>(steps: &'s [Step], lineage: &Lineage) -> BTreeMap<&'s str, Vec<Operation>> {
    let mut by_target: BTreeMap<&str, Vec<Operation>> = BTreeMap::new();
    for step in steps.iter().filter(|step| step.action.is_remote()) {
        let operation = step.operation(step.action.action(), step.spec.clone(), lineage);
        by_target.entry(&step.target).or_default().push(operation);
    }
    by_target
}

#[cfg(test)]
mod tests;
