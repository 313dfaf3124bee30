//! Puts the steps in an order in which each comes after what it needs, and writes those needs down.
//!
//! Making goes with the dependencies, removing against them. A former object is removed when everything that may use it has been
//! brought to its new spec.

use std::collections::{BTreeMap, BTreeSet};

use strata_resource::{Address, ResourceGraph};
use strata_state::StateDocument;

use crate::plan::{Step, StepAction};

pub(super) fn ordered(steps: Vec<Step>, graph: &ResourceGraph, state: &StateDocument) -> Vec<Step> {
    let needs = needs(&steps, graph, state);
    let order = sorted(&steps, &needs);
    let mut place = vec![0; steps.len()];
    for (at, index) in order.iter().enumerate() {
        place[*index] = at;
    }
    let mut steps: Vec<Option<Step>> = steps.into_iter().map(Some).collect();
    order
        .iter()
        .filter_map(|index| {
            let mut step = steps[*index].take()?;
            step.needs = needs[*index].iter().map(|need| place[*need]).collect();
            step.needs.sort_unstable();
            Some(step)
        })
        .collect()
}

fn needs(steps: &[Step], graph: &ResourceGraph, state: &StateDocument) -> Vec<BTreeSet<usize>> {
    let mut making: BTreeMap<&Address, usize> = BTreeMap::new();
    let mut removing: BTreeMap<&Address, usize> = BTreeMap::new();
    for (index, step) in steps.iter().enumerate() {
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
    let mut needs = vec![BTreeSet::new(); steps.len()];
    for (index, step) in steps.iter().enumerate() {
        let users = users.get(&step.address).into_iter().flatten();
        match step.action {
            StepAction::Create | StepAction::Update => {
                let dependencies =
                    graph.get(&step.address).into_iter().flat_map(|resource| &resource.depends_on);
                needs[index].extend(dependencies.filter_map(|to| making.get(to)));
                needs[index].extend(removing.get(&step.address).filter(|_| step.replacement));
            }
            // The delete of a replacement waits only for deletes: what is brought up to date needs the new object.
            StepAction::Delete if step.replacement => {
                needs[index].extend(users.filter_map(|user| removing.get(user)));
            }
            StepAction::Delete | StepAction::DeleteFormer => {
                for user in users {
                    needs[index].extend(removing.get(user));
                    needs[index].extend(making.get(user));
                }
                needs[index]
                    .extend(making.get(&step.address).filter(|_| step.action == StepAction::DeleteFormer));
            }
            StepAction::Record | StepAction::Forget => {}
        }
        needs[index].remove(&index);
    }
    needs
}

/// Who depends on an address, by the source or by the state.
fn users<'a>(
    graph: &'a ResourceGraph,
    state: &'a StateDocument,
) -> BTreeMap<&'a Address, BTreeSet<&'a Address>> {
    let mut users: BTreeMap<&Address, BTreeSet<&Address>> = BTreeMap::new();
    let wanted = graph.iter().map(|resource| (&resource.address, &resource.depends_on));
    let known = state.resources.iter().map(|(address, resource)| (address, &resource.depends_on));
    for (user, depends_on) in wanted.chain(known) {
        for to in depends_on {
            users.entry(to).or_default().insert(user);
        }
    }
    users
}

/// By stage and address, as far as the needs allow.
fn sorted(steps: &[Step], needs: &[BTreeSet<usize>]) -> Vec<usize> {
    let mut waiting: Vec<usize> = needs.iter().map(BTreeSet::len).collect();
    let mut needed_by: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
    for (index, needs) in needs.iter().enumerate() {
        for need in needs {
            needed_by[*need].push(index);
        }
    }
    let key = |index: usize| (steps[index].stage, &steps[index].address, index);
    let mut ready: BTreeSet<_> = (0..steps.len()).filter(|index| waiting[*index] == 0).map(key).collect();
    let mut order = Vec::with_capacity(steps.len());
    while let Some((_, _, index)) = ready.pop_first() {
        order.push(index);
        for next in &needed_by[index] {
            waiting[*next] -= 1;
            if waiting[*next] == 0 {
                ready.insert(key(*next));
            }
        }
    }
    debug_assert_eq!(order.len(), steps.len(), "the needs of a plan have no cycle");
    order
}
