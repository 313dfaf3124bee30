//! Puts the steps in an order in which each comes after what it needs, and writes those needs down.
//!
//! Making goes with the dependencies, removing against them. A former object is removed when everything that may use it has been
//! brought to its new spec. Steps of one address come one after the other.

use std::collections::{BTreeMap, BTreeSet};

use strata_resource::{Address, ResourceGraph};
use strata_state::StateDocument;

use crate::plan::{Step, StepAction};

/// What a step waits for.
#[derive(Default)]
struct Needs {
    /// Without these it cannot be done.
    first: BTreeSet<usize>,
    /// It should come after these. What the state knows of users is the past: it may go round in circles with what is wanted now,
    /// and then this gives way.
    rather_after: BTreeSet<usize>,
}

pub(super) fn ordered(mut steps: Vec<Step>, graph: &ResourceGraph, state: &StateDocument) -> Vec<Step> {
    let mut needs = needs(&steps, graph, state);
    for turn in super::rolling::restarts(&steps) {
        for before in &turn.after {
            steps[*before].awaited = true;
        }
        needs[turn.step].rather_after.extend(turn.after);
        // Of a replacement the create is shown.
        if steps[turn.step].action != StepAction::Delete {
            steps[turn.step].reasons.push(turn.reason);
        }
    }
    let order = sorted(&steps, &mut needs);
    let mut place = vec![0; steps.len()];
    for (at, index) in order.iter().enumerate() {
        place[*index] = at;
    }
    let mut steps: Vec<Option<Step>> = steps.into_iter().map(Some).collect();
    order
        .iter()
        .filter_map(|index| {
            let mut step = steps[*index].take()?;
            let needs: BTreeSet<usize> = needs[*index].all().map(|need| place[need]).collect();
            step.needs = needs.into_iter().collect();
            Some(step)
        })
        .collect()
}

impl Needs {
    fn all(&self) -> impl Iterator<Item = usize> {
        self.first.union(&self.rather_after).copied()
    }
}

fn needs(steps: &[Step], graph: &ResourceGraph, state: &StateDocument) -> Vec<Needs> {
    let mut making: BTreeMap<&Address, usize> = BTreeMap::new();
    let mut removing: BTreeMap<&Address, usize> = BTreeMap::new();
    let mut of_address: BTreeMap<&Address, Vec<usize>> = BTreeMap::new();
    for (index, step) in steps.iter().enumerate() {
        of_address.entry(&step.address).or_default().push(index);
        match step.action {
            StepAction::Create | StepAction::Update => {
                making.insert(&step.address, index);
            }
            StepAction::Delete => {
                removing.insert(&step.address, index);
            }
            StepAction::DeleteFormer | StepAction::Record | StepAction::Forget => {}
        }
    }
    let users = users(graph, state);
    let mut needs: Vec<Needs> = steps.iter().map(|_| Needs::default()).collect();
    for (index, step) in steps.iter().enumerate() {
        let needs = &mut needs[index];
        let users = users.get(&step.address).into_iter().flatten();
        match step.action {
            StepAction::Create | StepAction::Update => {
                made_below(graph, &step.address, &making, &mut needs.first);
            }
            // The delete of a replacement waits only for deletes: what is brought up to date needs the new object.
            StepAction::Delete if step.replacement => {
                needs.rather_after.extend(users.filter_map(|user| removing.get(user)));
            }
            StepAction::Delete | StepAction::DeleteFormer => {
                for user in users {
                    needs.rather_after.extend(removing.get(user));
                    needs.rather_after.extend(making.get(user));
                }
            }
            StepAction::Record | StepAction::Forget => {}
        }
        needs.rather_after.remove(&index);
    }
    for (index, before) in super::rolling::waits(steps, state) {
        needs[index].rather_after.extend(before);
    }
    for mut indices in of_address.into_values() {
        indices.sort_by_key(|index| rank(&steps[*index]));
        for pair in indices.windows(2) {
            needs[pair[1]].first.insert(pair[0]);
        }
    }
    needs
}

/// The steps that make what an object needs. What is left as it is may itself need something that is made: that is waited for too, since
/// nothing works while what is below it is changed.
fn made_below(
    graph: &ResourceGraph,
    address: &Address,
    making: &BTreeMap<&Address, usize>,
    found: &mut BTreeSet<usize>,
) {
    let mut seen = BTreeSet::from([address]);
    let mut waiting = vec![address];
    while let Some(above) = waiting.pop() {
        for to in graph.get(above).into_iter().flat_map(|resource| &resource.depends_on) {
            match making.get(to) {
                Some(index) => {
                    found.insert(*index);
                }
                None if seen.insert(to) => waiting.push(to),
                None => {}
            }
        }
    }
}

/// The order among the steps of one address.
fn rank(step: &Step) -> u8 {
    match step.action {
        StepAction::Delete if step.replacement => 0,
        StepAction::Create | StepAction::Update | StepAction::Record => 1,
        StepAction::DeleteFormer => 2,
        // Last, so that the state does not forget former objects with it.
        StepAction::Delete | StepAction::Forget => 3,
    }
}

/// Who uses the object of an address: by the state, and by the source where the state does not know the user.
fn users<'a>(
    graph: &'a ResourceGraph,
    state: &'a StateDocument,
) -> BTreeMap<&'a Address, BTreeSet<&'a Address>> {
    let mut users: BTreeMap<&Address, BTreeSet<&Address>> = BTreeMap::new();
    let wanted = graph
        .iter()
        .filter(|resource| !state.resources.contains_key(&resource.address))
        .map(|resource| (&resource.address, &resource.depends_on));
    let known = state.resources.iter().map(|(address, resource)| (address, &resource.depends_on));
    for (user, depends_on) in wanted.chain(known) {
        for to in depends_on {
            users.entry(to).or_default().insert(user);
        }
    }
    users
}

/// By stage and address, as far as the needs allow. Needs that give way are dropped.
fn sorted(steps: &[Step], needs: &mut [Needs]) -> Vec<usize> {
    let mut waiting: Vec<usize> = needs.iter().map(|needs| needs.all().count()).collect();
    let mut needed_by: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
    for (index, needs) in needs.iter().enumerate() {
        for need in needs.all() {
            needed_by[need].push(index);
        }
    }
    let key = |index: usize| {
        let address = &steps[index].address;
        (steps[index].stage, address.kind().rank(), address, index)
    };
    let mut ready: BTreeSet<_> = (0..steps.len()).filter(|index| waiting[*index] == 0).map(key).collect();
    let mut done = vec![false; steps.len()];
    let mut order = Vec::with_capacity(steps.len());
    while order.len() < steps.len() {
        let Some((.., index)) = ready.pop_first() else {
            let Some(freed) = give_way(steps, needs, &done) else { break };
            waiting[freed] = 0;
            ready.insert(key(freed));
            continue;
        };
        if std::mem::replace(&mut done[index], true) {
            continue;
        }
        order.push(index);
        for next in &needed_by[index] {
            waiting[*next] = waiting[*next].saturating_sub(1);
            if waiting[*next] == 0 && !done[*next] {
                ready.insert(key(*next));
            }
        }
    }
    // What is left needs itself; the plan's lint refuses it.
    order.extend((0..steps.len()).filter(|index| !done[*index]));
    order
}

/// Frees one of the steps that wait for each other: one that would only rather come later, best one that waits for no removal.
fn give_way(steps: &[Step], needs: &mut [Needs], done: &[bool]) -> Option<usize> {
    let removals = |index: usize| {
        let needs = needs[index].rather_after.iter().filter(|need| !done[**need]);
        needs.filter(|need| steps[**need].action == StepAction::Delete).count()
    };
    let able = |index: &usize| !done[*index] && needs[*index].first.iter().all(|need| done[*need]);
    let freed = (0..steps.len())
        .filter(able)
        .min_by_key(|index| (removals(*index), steps[*index].stage, &steps[*index].address, *index))?;
    needs[freed].rather_after.retain(|need| done[*need]);
    Some(freed)
}
