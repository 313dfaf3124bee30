//! Which stacks of a run go before which: what they name, what they take from each other, the hypervisors that they stand on, and, where OpenTofu
//! makes one, its layer.

use std::collections::{BTreeMap, BTreeSet};

use strata_source::stack::Layer;
use strata_source::{EffectiveStack, Model, Repository};

use crate::workspace::is_removed;

/// The stacks of a run by their place in it, and what goes before each.
#[derive(Default)]
pub(crate) struct StackGraph {
    stacks: Vec<Before>,
    /// Something moves between these two: neither goes without the other.
    links: Vec<(usize, usize)>,
}

/// What goes before one stack.
#[derive(Default, Clone)]
struct Before {
    /// These must succeed.
    needs: BTreeSet<usize>,
    /// These must have ended, whatever came of them.
    after: BTreeSet<usize>,
}

/// How far a stack is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Waiting,
    Running,
    Done,
    Failed,
}

impl StackGraph {
    /// `stacks` in the order of the run. For a destroy everything is turned around: what stands on something goes before it.
    pub(crate) fn of(repository: &Repository, stacks: &[&EffectiveStack], destroy: bool) -> Self {
        let mut graph = Self { stacks: vec![Before::default(); stacks.len()], links: Vec::new() };
        let places: BTreeMap<&str, usize> =
            stacks.iter().enumerate().map(|(place, stack)| (stack.name.as_str(), place)).collect();
        let endpoints: Vec<Option<String>> =
            stacks.iter().map(|stack| repository.proxmox_endpoint(stack)).collect();
        let is_below = |place: &usize| stacks[*place].layer == Layer::Hypervisors;
        let (removed, kept): (Vec<usize>, Vec<usize>) =
            (0..stacks.len()).partition(|place| is_removed(stacks[*place]));
        let hypervisors: Vec<usize> = kept.iter().copied().filter(is_below).collect();
        for upper in kept.iter().copied() {
            let mut lower = named(repository, stacks[upper], &places);
            if !is_below(&upper) {
                // Where nobody can say which datacenter a stack is on, it is on every one.
                let stands_on = |below: &&usize| match (&endpoints[upper], &endpoints[**below]) {
                    (Some(own), Some(below)) => own == below,
                    _ => true,
                };
                lower.extend(hypervisors.iter().filter(stands_on));
            }
            // What code of OpenTofu builds upon does not stand in it: there, layers say it.
            let is_tofu = |place: usize| matches!(stacks[place].model, Model::Tofu(_));
            lower.extend(kept.iter().copied().filter(|other| {
                stacks[*other].layer < stacks[upper].layer && (is_tofu(upper) || is_tofu(*other))
            }));
            for lower in lower.into_iter().filter(|lower| *lower != upper) {
                let (first, then) = if destroy { (upper, lower) } else { (lower, upper) };
                graph.stacks[then].needs.insert(first);
            }
        }
        // What left the source goes first, higher layers before lower ones; what all of it stood on goes last.
        let (last, first): (Vec<usize>, Vec<usize>) = removed.into_iter().partition(is_below);
        for (place, before) in graph.stacks.iter_mut().enumerate() {
            let others = || first.iter().copied().filter(|other| *other != place);
            if last.contains(&place) {
                before.needs.extend(kept.iter().copied().chain(others()));
            } else if first.contains(&place) {
                before.after.extend(others().filter(|other| stacks[*other].layer > stacks[place].layer));
            } else {
                before.after.extend(others());
            }
        }
        graph
    }

    #[must_use]
    pub(crate) fn linked(self, links: Vec<(usize, usize)>) -> Self {
        Self { links, ..self }
    }

    /// For each stack the one whose failure leaves it out: itself, one that it needs, or one that something moves to or from.
    pub(crate) fn left_out(&self, failed: &[bool]) -> Vec<Option<usize>> {
        let mut causes: Vec<Option<usize>> =
            failed.iter().enumerate().map(|(place, failed)| failed.then_some(place)).collect();
        loop {
            let before = causes.clone();
            for place in 0..causes.len() {
                let linked = self.links.iter().filter_map(|(one, other)| match place {
                    place if place == *one => Some(*other),
                    place if place == *other => Some(*one),
                    _ => None,
                });
                let mut others = self.stacks[place].needs.iter().copied().chain(linked);
                causes[place] = causes[place].or_else(|| others.find_map(|other| causes[other]));
            }
            if causes == before {
                return causes;
            }
        }
    }

    /// Everything that must succeed before a stack, however many stacks lie between.
    pub(crate) fn needs(&self, place: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut next: Vec<usize> = self.stacks[place].needs.iter().copied().collect();
        while let Some(place) = next.pop() {
            if found.insert(place) {
                next.extend(&self.stacks[place].needs);
            }
        }
        found
    }

    /// The stacks that may begin, in the order of the run.
    pub(crate) fn ready(&self, progress: &[Progress]) -> Vec<usize> {
        let is_ready = |place: &usize| {
            let Before { needs, after } = &self.stacks[*place];
            let ended = |other: &usize| matches!(progress[*other], Progress::Done | Progress::Failed);
            progress[*place] == Progress::Waiting
                && needs.iter().all(|other| progress[*other] == Progress::Done)
                && after.iter().all(ended)
        };
        (0..self.stacks.len()).filter(is_ready).collect()
    }

    /// What keeps a stack from ever beginning: the first that it needs and that failed.
    pub(crate) fn failed_need(&self, place: usize, progress: &[Progress]) -> Option<usize> {
        self.needs(place).into_iter().find(|other| progress[*other] == Progress::Failed)
    }
}

/// The stacks of the run that one names, also by way of stacks that are not part of the run.
fn named(repository: &Repository, stack: &EffectiveStack, places: &BTreeMap<&str, usize>) -> BTreeSet<usize> {
    let (mut found, mut seen) = (BTreeSet::new(), BTreeSet::new());
    let mut next: Vec<&str> = stack.needed().collect();
    while let Some(name) = next.pop() {
        if !seen.insert(name) {
            continue;
        }
        if let Some(place) = places.get(name) {
            found.insert(*place);
            continue;
        }
        let other = repository.stack(name, Some(&stack.environment)).or_else(|| repository.stack(name, None));
        next.extend(other.into_iter().flat_map(EffectiveStack::needed));
    }
    found
}

#[cfg(test)]
mod tests {
    use strata_source::world::Memory;

    use super::*;

    /// Layer 0 on `pve`, a base, two that stand on it, and one that stands on nothing of these.
    fn repository() -> Repository {
        let settings = "repository: graph1\ntargets:\n  pve: {proxmox: {endpoint: 'https://192.0.2.1:8006', token: 'a@pve!b=c'}}\n  far: {proxmox: {endpoint: 'https://192.0.2.9:8006', token: 'a@pve!b=c'}}\n";
        let stack = |target: &str, needs: &str, vmid: u32| {
            format!(
                "metadata: {{dependsOn: [{needs}]}}\nproxmox: {{target: {target}, node: n}}\nvms: {{v{vmid}: {{vmId: {vmid}}}}}\n"
            )
        };
        let files = Memory::new()
            .file("strata.yaml", settings)
            .file("hypervisors/pve.yaml", "proxmox: {target: pve}\npools: {lab: {}}\n")
            .file("stacks/base/stack.yaml", stack("pve", "", 100))
            .file("stacks/web/stack.yaml", stack("pve", "base", 101))
            .file("stacks/app/stack.yaml", stack("pve", "web", 102))
            .file("stacks/other/stack.yaml", stack("far", "", 103));
        let (repository, diagnostics) = Repository::load(&files);
        assert!(!diagnostics.has_errors(), "{diagnostics:?}");
        repository
    }

    fn names(stacks: &[&EffectiveStack], places: impl IntoIterator<Item = usize>) -> Vec<String> {
        places.into_iter().map(|place| stacks[place].name.clone()).collect()
    }

    #[test]
    fn what_does_not_stand_on_each_other_is_ready_at_the_same_time() {
        let repository = repository();
        let stacks = repository.select(&[], None).unwrap();
        let graph = StackGraph::of(&repository, &stacks, false);
        let mut progress = vec![Progress::Waiting; stacks.len()];
        assert_eq!(names(&stacks, graph.ready(&progress)), ["pve", "other"]);
        let below = graph.ready(&progress)[0];
        progress[below] = Progress::Done;
        assert_eq!(names(&stacks, graph.ready(&progress)), ["base", "other"]);
        let base = graph.ready(&progress)[0];
        progress[base] = Progress::Failed;
        assert_eq!(names(&stacks, graph.ready(&progress)), ["other"], "the rest goes on");
        let app = stacks.iter().position(|stack| stack.name == "app").unwrap();
        assert_eq!(graph.failed_need(app, &progress), Some(base));
    }

    #[test]
    fn a_destroy_goes_the_other_way() {
        let repository = repository();
        let stacks = repository.select(&[], None).unwrap();
        let graph = StackGraph::of(&repository, &stacks, true);
        let progress = vec![Progress::Waiting; stacks.len()];
        assert_eq!(names(&stacks, graph.ready(&progress)), ["other", "app"]);
    }

    #[test]
    fn a_stack_between_that_is_not_part_of_the_run_still_orders_it() {
        let repository = repository();
        let arguments = ["base".to_owned(), "app".to_owned()];
        let stacks = repository.select(&arguments, None).unwrap();
        let graph = StackGraph::of(&repository, &stacks, false);
        let progress = vec![Progress::Waiting; stacks.len()];
        assert_eq!(names(&stacks, graph.ready(&progress)), ["base"]);
    }
}
