//! Which steps may run now: what they need is done, and none of the limits is reached.

use std::collections::{BTreeMap, BTreeSet};

use crate::capacity::{Capacity, Full, Seat};
use crate::plan::Step;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Waiting,
    Running,
    Done,
    Failed,
    Skipped,
}

pub(crate) struct Schedule {
    capacity: Capacity,
    keys: Vec<Vec<String>>,
    progress: Vec<Progress>,
    unmet: Vec<usize>,
    needed_by: Vec<Vec<usize>>,
    ready: BTreeSet<usize>,
    /// Steps that could run but for one limit, by that limit. Looked at again when one of its users ends.
    parked: BTreeMap<String, BTreeSet<usize>>,
    /// The places of the steps that run.
    seats: BTreeMap<usize, Seat>,
}

impl Schedule {
    pub(crate) fn new(steps: &[Step], capacity: Capacity) -> Self {
        let mut needed_by = vec![Vec::new(); steps.len()];
        for (index, step) in steps.iter().enumerate() {
            for need in &step.needs {
                needed_by[*need].push(index);
            }
        }
        let keys = steps
            .iter()
            .map(|step| {
                let mut keys = vec![format!("target:{}", step.target)];
                keys.extend(step.limits.iter().cloned());
                keys
            })
            .collect();
        let unmet: Vec<usize> = steps.iter().map(|step| step.needs.len()).collect();
        let ready = (0..steps.len()).filter(|index| unmet[*index] == 0).collect();
        Self {
            capacity,
            keys,
            progress: vec![Progress::Waiting; steps.len()],
            unmet,
            needed_by,
            ready,
            parked: BTreeMap::new(),
            seats: BTreeMap::new(),
        }
    }

    /// Takes the steps that may begin now, in the order of the plan.
    pub(crate) fn take_ready(&mut self) -> Vec<usize> {
        let mut taken = Vec::new();
        while let Some(index) = self.ready.pop_first() {
            match self.capacity.take(&self.keys[index]) {
                Ok(seat) => {
                    self.progress[index] = Progress::Running;
                    self.seats.insert(index, seat);
                    taken.push(index);
                }
                Err(Full::Total) => {
                    self.ready.insert(index);
                    break;
                }
                Err(Full::Key(full)) => {
                    self.parked.entry(full.clone()).or_default().insert(index);
                    // It does not take the place it may have been woken for: that is for the next one.
                    for key in self.keys[index].clone().iter().filter(|key| **key != full) {
                        self.wake_one(key);
                    }
                }
            }
        }
        taken
    }

    /// Whether a step could run if others, of this stack or of another, gave back what they have taken.
    pub(crate) fn is_held_back(&self) -> bool {
        !self.ready.is_empty() || self.parked.values().any(|waiting| !waiting.is_empty())
    }

    /// Another stack may have given something back: the first of those that waited try again.
    pub(crate) fn try_again(&mut self) {
        for key in self.parked.keys().cloned().collect::<Vec<_>>() {
            self.wake_one(&key);
        }
    }

    pub(crate) fn done(&mut self, index: usize) {
        self.end(index, Progress::Done);
        for next in self.needed_by[index].clone() {
            self.unmet[next] -= 1;
            if self.unmet[next] == 0 && self.progress[next] == Progress::Waiting {
                self.ready.insert(next);
            }
        }
    }

    /// Gives what is skipped because of it.
    pub(crate) fn failed(&mut self, index: usize) -> Vec<usize> {
        self.end(index, Progress::Failed);
        let mut skipped = Vec::new();
        let mut next = self.needed_by[index].clone();
        while let Some(index) = next.pop() {
            if self.progress[index] == Progress::Waiting {
                self.progress[index] = Progress::Skipped;
                // A waiting step with unmet needs is neither ready nor parked.
                next.extend(self.needed_by[index].iter().copied());
                skipped.push(index);
            }
        }
        skipped.sort_unstable();
        skipped
    }

    fn end(&mut self, index: usize, progress: Progress) {
        debug_assert_eq!(self.progress[index], Progress::Running);
        self.progress[index] = progress;
        self.seats.remove(&index);
        for key in self.keys[index].clone() {
            self.wake_one(&key);
        }
    }

    /// If a place is free, one that waited for it may try again.
    fn wake_one(&mut self, key: &str) {
        if self.capacity.has_room(key)
            && let Some(next) = self.parked.get_mut(key).and_then(BTreeSet::pop_first)
        {
            self.ready.insert(next);
        }
    }

    /// The steps that run, by their place in the plan.
    pub(crate) fn running(&self) -> Vec<usize> {
        (0..self.progress.len()).filter(|index| self.progress[*index] == Progress::Running).collect()
    }

    /// How many were not begun.
    pub(crate) fn left(&self) -> usize {
        self.progress.iter().filter(|progress| **progress == Progress::Waiting).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::Limits;
    use crate::plan::StepAction;
    use strata_resource::{Address, Kind, RestartPolicy, Spec, Stage};

    fn step(index: usize, needs: &[usize], limits: &[&str]) -> Step {
        Step {
            address: Address::new(None, "s", Kind::named("vm"), &index.to_string()),
            action: StepAction::Create,
            target: "pve".into(),
            stage: Stage::Compute,
            replacement: false,
            awaited: false,
            changes: Vec::new(),
            restart: false,
            stays_pending: false,
            reasons: Vec::new(),
            needs: needs.to_vec(),
            limits: limits.iter().map(|&limit| limit.to_owned()).collect(),
            spec: Spec::new(),
            recorded: None,
            observed: None,
            origin: None,
            becomes: None,
            on_change: RestartPolicy::default(),
            payload: None,
        }
    }

    #[test]
    fn a_limit_holds_back_only_its_own_users() {
        let limits = Limits { total: 10, per_target: 10, per_storage: 1, per_template: 10 };
        let steps =
            [step(0, &[], &["storage:a"]), step(1, &[], &["storage:a"]), step(2, &[], &["storage:b"])];
        let mut schedule = Schedule::new(&steps, Capacity::new(limits));
        assert_eq!(schedule.take_ready(), [0, 2]);
        assert_eq!(schedule.take_ready(), [] as [usize; 0]);
        schedule.done(0);
        assert_eq!(schedule.take_ready(), [1]);
    }

    #[test]
    fn a_free_place_goes_to_the_next_if_the_first_waits_for_something_else_too() {
        let limits = Limits { total: 10, per_target: 10, per_storage: 1, per_template: 1 };
        let steps = [
            step(0, &[], &["storage:a"]),
            step(1, &[], &["template:1"]),
            step(2, &[], &["storage:a", "template:1"]),
            step(3, &[], &["storage:a"]),
        ];
        let mut schedule = Schedule::new(&steps, Capacity::new(limits));
        assert_eq!(schedule.take_ready(), [0, 1]);
        schedule.done(0);
        assert_eq!(schedule.take_ready(), [3], "2 waits for the template");
        schedule.done(3);
        schedule.done(1);
        assert_eq!(schedule.take_ready(), [2]);
    }

    #[test]
    fn a_failure_stops_only_what_needs_it() {
        let steps = [step(0, &[], &[]), step(1, &[0], &[]), step(2, &[1], &[]), step(3, &[], &[])];
        let mut schedule = Schedule::new(&steps, Capacity::new(Limits::default()));
        assert_eq!(schedule.take_ready(), [0, 3]);
        assert_eq!(schedule.failed(0), [1, 2]);
        schedule.done(3);
        assert_eq!((schedule.running().len(), schedule.left()), (0, 0));
    }

    #[test]
    fn every_step_runs_once_whatever_the_limits() {
        let steps: Vec<Step> = (0..50)
            .map(|index| step(index, &[], &[["storage:a", "storage:b", "template:1"][index % 3]]))
            .collect();
        for total in [1, 3, 100] {
            let limits = Limits { total, per_target: 2, per_storage: 1, per_template: 1 };
            let mut schedule = Schedule::new(&steps, Capacity::new(limits));
            let mut seen = Vec::new();
            loop {
                let taken = schedule.take_ready();
                if taken.is_empty() {
                    break;
                }
                assert!(schedule.running().len() <= 2.min(total));
                for index in taken {
                    seen.push(index);
                    schedule.done(index);
                }
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..50).collect::<Vec<_>>());
        }
    }

    #[test]
    fn two_stacks_share_the_limits_of_their_run() {
        let limits = Limits { total: 3, per_target: 3, per_storage: 1, per_template: 1 };
        let capacity = Capacity::new(limits);
        let steps = [step(0, &[], &["storage:a"]), step(1, &[], &[])];
        let mut first = Schedule::new(&steps, capacity.clone());
        let mut second = Schedule::new(&steps, capacity);
        assert_eq!(first.take_ready(), [0, 1]);
        assert_eq!(second.take_ready(), [1], "the storage is in use by the other stack");
        assert!(second.is_held_back() && !first.is_held_back());
        second.try_again();
        assert_eq!(second.take_ready(), [] as [usize; 0]);
        first.done(0);
        second.try_again();
        assert_eq!(second.take_ready(), [0]);
        // A run that ends gives everything back.
        drop(second);
        let mut third = Schedule::new(&steps, first.capacity.clone());
        assert_eq!(third.take_ready(), [0, 1]);
    }
}
