//! Makes the plan: from what is wanted, what the state knows and what is live to the steps between them.
//!
//! Synchronous and deterministic: the same question gets the same answer, to the byte.

mod findings;
pub(crate) mod ignored;
mod left_source;
mod made_from;
mod order;
mod problems;
mod removal;
mod restart;
mod rolling;
mod selection;
mod steps;
mod unknown;
pub(crate) mod unreachable;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use strata_resource::{
    Address, ChangeEffect, FieldChange, Kind, Lineage, Purpose, Resource, ResourceGraph, RestartPolicy, Spec,
    Value, diff_specs, diff_unfinished,
};
use strata_state::{DeposedObject, MadeAs, OpenEntry, StateDocument, StateResource};

pub(crate) use self::made_from::keep_sources;
use self::steps::same_record;
pub(crate) use self::unknown::out_of_sight;
use crate::object_key::ObjectKey;
use crate::plan::{IgnoredChange, Plan, PlanContent, Problem, Step, StepAction, operations};
use crate::reporting::keep_reported;
use crate::{Finding, KnownAs, Live, Move, Observed, Operation, Sighting, Unseen};

/// All that a plan is made from.
pub struct PlanRequest<'a> {
    /// What there should be, sealed; empty for a destroy.
    pub graph: &'a ResourceGraph,
    pub state: &'a StateDocument,
    pub open: &'a [OpenEntry],
    pub lineage: &'a Lineage,
    pub live: &'a Live,
    /// Open entries of which nobody can see what came of them, and why.
    pub deferred: &'a BTreeMap<u64, Unseen>,
    /// Who works on the state while it is planned.
    pub at_work: Option<String>,
    /// What the source protects, also where nothing of it is wanted any more.
    pub protected: &'a BTreeSet<Address>,
    /// The name of the stack, where it is not in the source any more.
    pub removed_stack: Option<&'a str>,
    /// What is moved; the state is as if that were done.
    pub moves: &'a [Move],
    /// What cannot be moved, and why.
    pub unmovable: &'a [Problem],
    /// Where objects were made that were moved since then.
    pub origins: &'a BTreeMap<Address, MadeAs>,
    /// The addresses that the plan is about; all without it.
    pub selected: Option<&'a BTreeSet<Address>>,
    /// What is replaced because somebody asked for it.
    pub replace: &'a BTreeSet<Address>,
    /// What stands where something is wanted, and is ours under another address.
    pub known_as: &'a BTreeMap<Address, KnownAs>,
    /// The stack's own file.
    pub file: &'a str,
}

impl PlanRequest<'_> {
    /// Whether the object of an address stands where the source wants another one.
    fn is_wanted_elsewhere(&self, address: &Address) -> bool {
        self.known_as.values().any(|known| known.movable && known.address == *address)
    }
}

/// The steps before their review.
pub struct Draft<'a> {
    request: &'a PlanRequest<'a>,
    content: PlanContent,
}

/// Drafts the steps.
pub fn draft_plan<'a>(request: &'a PlanRequest<'a>) -> Draft<'a> {
    let mut planner = Planner::new(request);
    let mut about = request.selection();
    for (address, recorded) in &request.state.resources {
        planner.deposed(address, recorded);
    }
    for resource in in_order(request.graph) {
        let filled = planner.filled(resource);
        let unchanged = planner.unchanged;
        planner.wanted(&filled);
        if about.as_ref().is_some_and(|about| !about.contains(&resource.address)) {
            planner.unchanged = unchanged;
        }
    }
    for (address, recorded) in &request.state.resources {
        // What was renamed, most likely, is told where it is wanted: nobody means to destroy it.
        if request.graph.get(address).is_none() && !request.is_wanted_elsewhere(address) {
            planner.unwanted(address, recorded);
        }
    }
    planner.leave_what_hangs_on_the_unknown();
    planner.refuse_protected_removals();
    planner.keep_deferred();
    planner.explain_removed_stack();
    let left_out = match &mut about {
        Some(about) => planner.keep_to_selection(about),
        None => BTreeSet::new(),
    };
    let is_about = |address: &Address| about.as_ref().is_none_or(|about| about.contains(address));
    let Planner { steps, mut problems, unchanged, unseen, unknown, mut ignored, .. } = planner;
    ignored.retain(|address, _| is_about(address));
    problems.extend(request.unmovable.iter().cloned());
    let content = PlanContent {
        key: request.state.key.clone(),
        lineage: request.lineage.clone(),
        serial: request.state.serial,
        steps: order::ordered(steps, request.graph, request.state),
        problems,
        open: request.open.to_vec(),
        at_work: request.at_work.clone(),
        live: request
            .live
            .current
            .iter()
            .filter(|(address, _)| is_about(address))
            .map(|(address, sighting)| (address.clone(), digest(sighting)))
            .collect(),
        former: former_digests(request, &is_about),
        unchanged,
        unseen,
        unknown,
        in_use: BTreeMap::new(),
        moves: request.moves.iter().map(Move::planned).collect(),
        left_out,
        ignored,
    };
    Draft { request, content }
}

/// The plan: the draft, with what its review found. From here on nothing changes it.
pub fn make_plan(draft: Draft<'_>, findings: Vec<Finding>) -> Plan {
    let Draft { mut content, .. } = draft;
    for finding in findings {
        findings::take_in(&mut content, finding);
    }
    Plan::new(content)
}

impl Draft<'_> {
    /// What the providers would be asked to do, by target.
    pub(crate) fn operations(&self) -> BTreeMap<&str, Vec<Operation>> {
        operations(&self.content.steps, &self.content.lineage)
    }

    pub(crate) fn live(&self) -> &BTreeMap<Address, Sighting> {
        &self.request.live.current
    }

    /// Whether it cannot run already.
    pub(crate) fn is_blocked(&self) -> bool {
        !self.content.problems.is_empty()
    }
}

/// Dependencies first, so that it is known which of them are recreated. A graph with a cycle is refused when the plan is put in order.
fn in_order(graph: &ResourceGraph) -> Vec<&Resource> {
    match graph.order() {
        Ok(order) => order.iter().filter_map(|address| graph.get(address)).collect(),
        Err(_) => graph.iter().collect(),
    }
}

fn digest(sighting: &Sighting) -> Option<String> {
    match sighting {
        Sighting::Ours(observed) => Some(observed.digest.clone()),
        _ => None,
    }
}

fn former_digests(
    request: &PlanRequest<'_>,
    is_about: &dyn Fn(&Address) -> bool,
) -> BTreeMap<Address, Vec<Option<String>>> {
    let live = request.live;
    let mut digests: BTreeMap<Address, Vec<Option<String>>> = BTreeMap::new();
    for (address, sighting) in &live.former {
        digests.entry(address.clone()).or_default().push(digest(sighting));
    }
    for (address, sightings) in &live.deposed {
        digests.entry(address.clone()).or_default().extend(sightings.iter().map(digest));
    }
    digests.retain(|address, _| is_about(address));
    digests
}

struct Planner<'a> {
    request: &'a PlanRequest<'a>,
    steps: Vec<Step>,
    problems: Vec<Problem>,
    unchanged: usize,
    /// Objects that the source asks for and that are there: under whatever address the state knows them, they stay.
    claimed: BTreeSet<ObjectKey>,
    /// Former objects that are still there, by address. The state knows them until they are deleted.
    former: BTreeMap<Address, Vec<DeposedObject>>,
    /// What is recreated: its outputs are not known yet.
    remade: BTreeSet<Address>,
    /// Images whose volume gets another content under the same name.
    recast: BTreeSet<Address>,
    /// What has nothing left to boot from: what runs on it was reset with its whole disk, and does not answer since then.
    wiped: BTreeSet<&'a Address>,
    /// What does not answer because something that it needs is changed first.
    unseen: BTreeMap<Address, String>,
    /// What cannot be seen, and what is left alone because of it.
    unknown: Vec<Problem>,
    /// What differs and is left so, because the source says that it is for others.
    ignored: BTreeMap<Address, Vec<IgnoredChange>>,
}

impl<'a> Planner<'a> {
    fn new(request: &'a PlanRequest<'a>) -> Self {
        let is_there = |resource: &&Resource| {
            matches!(request.live.current.get(&resource.address), Some(Sighting::Ours(_)))
        };
        let key = |resource: &Resource| ObjectKey::of(resource.kind(), &resource.target, &resource.spec);
        Self {
            request,
            steps: Vec::new(),
            problems: Vec::new(),
            unchanged: 0,
            claimed: request.graph.iter().filter(is_there).map(key).collect(),
            former: BTreeMap::new(),
            remade: BTreeSet::new(),
            recast: BTreeSet::new(),
            wiped: unreachable::wiped(request),
            unseen: BTreeMap::new(),
            unknown: Vec::new(),
            ignored: BTreeMap::new(),
        }
    }

    /// The resource with those outputs of others that are known before anything is applied.
    fn filled<'r>(&self, resource: &'r Resource) -> Cow<'r, Resource> {
        if is_complete(&resource.spec) {
            return Cow::Borrowed(resource);
        }
        let mut filled = resource.clone();
        self.fill(&mut filled.spec);
        Cow::Owned(filled)
    }

    /// What was seen, likewise: a provider that cannot ask for a field says what the source says.
    fn seen<'o>(&self, observed: &'o Observed) -> Cow<'o, Observed> {
        if is_complete(&observed.spec) {
            return Cow::Borrowed(observed);
        }
        let mut filled = observed.clone();
        self.fill(&mut filled.spec);
        Cow::Owned(filled)
    }

    fn fill(&self, spec: &mut Spec) {
        let output = |address: &Address, name: &str| match self.request.live.current.get(address) {
            Some(Sighting::Ours(observed)) if !self.remade.contains(address) => {
                observed.facts.get(name).cloned()
            }
            _ => None,
        };
        for value in spec.values_mut() {
            *value = std::mem::replace(value, Value::Unknown).with_inputs(&output);
        }
    }

    fn wanted(&mut self, resource: &Resource) {
        let recorded = self.request.state.resources.get(&resource.address);
        let former = self.request.live.former.get(&resource.address);
        match self.request.live.current.get(&resource.address).unwrap_or(&Sighting::Absent) {
            Sighting::Unmanaged(what) => self.unmanaged(resource, what),
            Sighting::Unreachable(what) => self.unreachable(resource, recorded, what),
            sighting @ (Sighting::Busy(_) | Sighting::Unknown(_)) => {
                self.out_of_sight(&resource.address, sighting, resource.origin.clone());
            }
            Sighting::Absent => match former.zip(recorded) {
                Some((former, recorded)) => self.moved(resource, recorded, former),
                None => self.create(resource, recorded),
            },
            Sighting::Ours(observed) => {
                let observed = &*self.seen(observed);
                match former.zip(recorded) {
                    // The state knows another object under this address; the one with the wanted identity is ours by its ownership mark.
                    Some((former, recorded)) => {
                        self.drop_former(resource, recorded, former);
                        self.compare(resource, None, observed);
                    }
                    None => self.compare(resource, recorded, observed),
                }
            }
        }
    }

    fn needs_remade(&self, resource: &Resource) -> bool {
        resource.depends_on.iter().any(|to| self.remade.contains(to))
    }

    fn create(&mut self, resource: &Resource, recorded: Option<&StateResource>) {
        let mut step = self.step(resource, StepAction::Create, recorded);
        if recorded.is_some() {
            let reason = resource.kind().table().gone;
            step.reasons.push(reason.to_owned());
        }
        self.remade.insert(resource.address.clone());
        self.steps.push(step);
    }

    /// The source asks for another identity than the state knows.
    fn moved(&mut self, resource: &Resource, recorded: &StateResource, former: &Sighting) {
        match former {
            Sighting::Busy(_) | Sighting::Unknown(_) => {
                self.out_of_sight(&resource.address, former, resource.origin.clone());
            }
            Sighting::Ours(observed) if !self.is_claimed(resource.kind(), recorded) => {
                if recorded.protect || resource.protect {
                    return self.protected(&resource.address, "replace", resource.origin.clone());
                }
                let rules = resource.kind().rules();
                let diff = diff_specs(rules, &resource.spec, Some(&recorded.spec), &observed.spec);
                self.replace(resource, recorded, observed, diff.changes);
            }
            Sighting::Ours(_) | Sighting::Absent | Sighting::Unmanaged(_) | Sighting::Unreachable(_) => {
                self.create(resource, None);
            }
        }
    }

    fn compare(&mut self, source: &Resource, recorded: Option<&StateResource>, observed: &Observed) {
        let left = ignored::ignored_changes(source, recorded, observed);
        if !left.is_empty() {
            self.ignored.insert(source.address.clone(), left);
        }
        let (resource, observed) =
            (&*ignored::as_it_is(source, recorded, observed), &*ignored::without_waiting(source, observed));
        if let Some(unmarked) = unmarked(resource, recorded, observed) {
            return self.unchanged(&unmarked, recorded, observed);
        }
        let (rules, table) = (resource.kind().rules(), resource.kind().table());
        let mut diff = match recorded {
            Some(recorded) if recorded.partial => {
                diff_unfinished(rules, &resource.spec, &recorded.spec, &observed.spec)
            }
            _ => diff_specs(rules, &resource.spec, recorded.map(|recorded| &recorded.spec), &observed.spec),
        };
        let effect = |wanted: ChangeEffect| {
            diff.changes.iter().any(|change| rules.rule(&change.path).effect == wanted)
        };
        // Only what we applied can have changed: a guest that was found or left unfinished is brought to its spec as it is.
        let recreate = resource.on_change == RestartPolicy::Recreate
            && recorded.is_some_and(|recorded| !recorded.partial)
            && diff.changes.iter().any(|change| is_read_at_boot(resource.kind(), change));
        let wiped = table.runs_others && self.wiped.contains(&resource.address);
        if effect(ChangeEffect::Replace) && recorded.is_none() && adopts(resource.kind(), &resource.spec) {
            return self.unlike(resource, &diff.changes);
        }
        let outdated = recorded.and_then(|recorded| self.outdated(resource, recorded));
        // What an interrupted run left unfinished is new already.
        let asked = self.request.replace.contains(&resource.address)
            && recorded.is_none_or(|recorded| !recorded.partial);
        if asked && self.refuse_replacement(resource) {
            return;
        }
        if effect(ChangeEffect::Replace) || recreate || wiped || outdated.is_some() || asked {
            if resource.protect || recorded.is_some_and(|recorded| recorded.protect) {
                return self.protected(&resource.address, "replace", resource.origin.clone());
            }
            let recorded = recorded.cloned().unwrap_or_else(|| self.becomes(resource, None));
            let mut changes = diff.changes;
            let reason = outdated.map(|outdated| {
                changes.extend(outdated.changes);
                outdated.reason
            });
            if reason.is_some() && resource.kind().table().content.is_some() {
                self.recast.insert(resource.address.clone());
            }
            // A new one is made as the source says.
            self.replace(source, &recorded, observed, changes);
            let wiped =
                wiped.then(|| "its disk was wiped, and nothing is left on it to boot from".to_owned());
            let asked = asked.then(|| "`--replace` asks for it".to_owned());
            if let Some(create) = self.steps.last_mut() {
                create.reasons.extend(reason.into_iter().chain(wiped).chain(asked));
            }
            return;
        }
        if self.refuse(resource, diff.refusals) && diff.changes.is_empty() {
            return;
        }
        let runs_in = |spec: &Spec| Some(runs(table.value_for(Purpose::Power, spec)?));
        let is_running = runs_in(&observed.spec) == Some(true);
        let stays_running = is_running && runs_in(&resource.spec) != Some(false);
        if stays_running {
            // Sent again, it would wait for a restart: a server cannot see that it is the same.
            restart::drop_begun_alike(resource, recorded, observed, &mut diff.changes);
        }
        let needs = restart::needs(resource, recorded, observed, &diff.changes);
        let inactive = needs.is_needed();
        let restart = stays_running && inactive && resource.on_change != RestartPolicy::Ignore;
        if diff.changes.is_empty() && !restart {
            return self.unchanged(resource, recorded, observed);
        }
        let mut step = self.step(resource, StepAction::Update, recorded);
        step.stays_pending = stays_running && inactive && !restart;
        step.restart = restart;
        if diff.changes.is_empty() && restart {
            let pending = needs.waiting.join(", ");
            step.reasons.push(format!("it waits for a restart to take up: {pending}"));
        }
        let is_marked = table.value_for(Purpose::Mark, &observed.spec).is_some();
        if recorded.is_none() && adopts(resource.kind(), &resource.spec) && !is_marked {
            step.reasons.push("it is there already and is taken over: `adopt` says so".to_owned());
        } else if recorded.is_none() && (is_marked || !table.is_adoptable()) {
            step.reasons.push(
                "it exists with the ownership mark of this repository, but is not in the state".to_owned(),
            );
        } else if recorded.is_some_and(|recorded| recorded.partial) {
            step.reasons.push("an interrupted run left it unfinished".to_owned());
        }
        step.changes = diff.changes;
        step.observed = Some(observed.clone());
        self.steps.push(step);
    }

    fn unchanged(&mut self, resource: &Resource, recorded: Option<&StateResource>, observed: &Observed) {
        let mut becomes = self.becomes(resource, recorded);
        keep_sources(&resource.address, &mut becomes.spec, recorded.map(|recorded| &recorded.spec));
        let former = std::mem::replace(&mut becomes.facts, observed.facts.clone());
        keep_reported(resource.kind(), &mut becomes.facts, &former);
        if recorded.is_some_and(|recorded| same_record(resource.kind(), recorded, &becomes)) {
            self.unchanged += 1;
            return;
        }
        let mut step = self.step(resource, StepAction::Record, recorded);
        step.observed = Some(observed.clone());
        step.becomes = Some(becomes);
        self.steps.push(step);
    }

    fn replace(
        &mut self,
        resource: &Resource,
        recorded: &StateResource,
        observed: &Observed,
        changes: Vec<FieldChange>,
    ) {
        let kind = resource.kind();
        let elsewhere =
            ObjectKey::of_record(kind, recorded) != ObjectKey::of(kind, &resource.target, &resource.spec);
        // Two objects cannot be in one place.
        let later = kind.table().create_first && elsewhere;
        let action = if later { StepAction::DeleteFormer } else { StepAction::Delete };
        let mut delete = self.removal(&resource.address, recorded, observed.clone(), action);
        delete.replacement = true;
        if later {
            self.keep_former(&resource.address, recorded, observed);
        }
        let mut create = self.step(resource, StepAction::Create, None);
        create.replacement = true;
        create.reasons = replacement_reasons(resource, recorded, &changes);
        if kind.table().content.is_some() {
            create.reasons.extend(self.made_from_former(resource, recorded));
        }
        create.changes = changes;
        self.remade.insert(resource.address.clone());
        self.steps.push(delete);
        self.steps.push(create);
    }
}

/// What was taken over carries no ownership mark until something else about it changes: the resource without one, if it is as it should be.
fn unmarked(resource: &Resource, recorded: Option<&StateResource>, observed: &Observed) -> Option<Resource> {
    let mark = resource.kind().table().mark_field()?;
    let recorded = recorded.filter(|recorded| !recorded.partial && !recorded.spec.contains_key(mark))?;
    if !resource.spec.contains_key(mark) || observed.spec.contains_key(mark) || !observed.pending.is_empty() {
        return None;
    }
    let mut unmarked = resource.clone();
    unmarked.spec.remove(mark);
    let rules = resource.kind().rules();
    let diff = diff_specs(rules, &unmarked.spec, Some(&recorded.spec), &observed.spec);
    diff.is_empty().then_some(unmarked)
}

fn replacement_reasons(
    resource: &Resource,
    recorded: &StateResource,
    changes: &[FieldChange],
) -> Vec<String> {
    let rules = resource.kind().rules();
    let mut reasons: Vec<String> = changes
        .iter()
        .map(|change| rules.rule(&change.path))
        .filter(|rule| rule.effect == ChangeEffect::Replace && !rule.reason.is_empty())
        .map(|rule| rule.reason.to_owned())
        .collect();
    if recorded.target != resource.target {
        reasons.push(format!("it moves from target `{}` to `{}`", recorded.target, resource.target));
    }
    if reasons.is_empty() && changes.iter().any(|change| is_read_at_boot(resource.kind(), change)) {
        reasons.push("its cloud-init data changed, and `onChange` is `recreate`".to_owned());
    }
    reasons
}

/// The source says that what is there already is to be taken over.
fn adopts(kind: Kind, spec: &Spec) -> bool {
    kind.table().value_for(Purpose::Adopt, spec).and_then(Value::as_bool) == Some(true)
}

fn is_complete(spec: &Spec) -> bool {
    spec.values().all(|value| value.unfilled().is_none())
}

fn runs(power: &Value) -> bool {
    power.as_text() == Some("running")
}

/// Data that a guest reads only while it boots.
fn is_read_at_boot(kind: Kind, change: &FieldChange) -> bool {
    kind.rules().is_below(&change.path, |rule| rule.read_at_boot)
}

#[cfg(test)]
impl<'a> PlanRequest<'a> {
    /// A question without anything special.
    pub(crate) fn of(
        graph: &'a ResourceGraph,
        state: &'a StateDocument,
        lineage: &'a Lineage,
        live: &'a Live,
    ) -> Self {
        static NOTHING: BTreeSet<Address> = BTreeSet::new();
        static NONE: BTreeMap<u64, Unseen> = BTreeMap::new();
        let (open, deferred, protected): (&[OpenEntry], _, _) = (&[], &NONE, &NOTHING);
        static MADE: BTreeMap<Address, MadeAs> = BTreeMap::new();
        static KNOWN: BTreeMap<Address, KnownAs> = BTreeMap::new();
        let (at_work, removed_stack) = (None, None);
        let (moves, unmovable, origins): (&[Move], &[Problem], _) = (&[], &[], &MADE);
        Self {
            graph,
            state,
            open,
            lineage,
            live,
            deferred,
            at_work,
            protected,
            removed_stack,
            moves,
            unmovable,
            origins,
            selected: None,
            replace: &NOTHING,
            known_as: &KNOWN,
            file: "",
        }
    }

    pub(crate) fn plan(&self) -> Plan {
        make_plan(draft_plan(self), Vec::new())
    }
}

#[cfg(test)]
mod tests;
