//! What plans do to what runs: beyond creates and changes, what goes down with them.

use std::collections::BTreeSet;

use strata_engine::{Plan, Step, StepAction, Summary};
use strata_resource::Rollout;

use crate::reviewed::Reviewed;

/// The numbers of a verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Effects {
    pub summary: Summary,
    /// Machines that reboot. They are not among the restarts.
    pub reboots: usize,
    /// Control planes, or what they run on, that restart, are replaced or go.
    pub quorum: usize,
    /// Fields that somebody else changed and that are put back.
    pub drift: usize,
    /// What cannot be seen, and is left as it is.
    pub unknown: usize,
}

/// What happens to an object, by how much it asks of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Importance {
    /// Something is destroyed or replaced.
    Removal,
    /// Something that runs goes down for a while.
    Disruption,
    Change,
}

impl Effects {
    pub fn of(reviewed: &Reviewed) -> Self {
        let mut effects = Self { summary: reviewed.summary(), ..Self::default() };
        for plan in reviewed.plans.iter().flat_map(|file| &file.stacks).map(|stack| &stack.plan) {
            let control_planes = control_planes(plan);
            effects.unknown += plan.unknown.len();
            for step in &plan.steps {
                effects.reboots += usize::from(is_reboot(step));
                effects.drift += step.changes.iter().filter(|change| change.drift).count();
            }
            let down = plan.steps.iter().filter(|step| goes_down(step)).map(|step| step.address.name());
            let down: BTreeSet<&str> = down.filter(|name| control_planes.contains(name)).collect();
            effects.quorum += down.len();
        }
        effects.summary.restart -= effects.reboots.min(effects.summary.restart);
        effects
    }

    /// `2 to create, 1 to destroy, 1 restart, 1 reboot, 1 control plane goes down`.
    pub fn verdict(&self) -> String {
        let summary = &self.summary;
        let several =
            |count: usize, one: &str, more: &str| format!("{count} {}", if count == 1 { one } else { more });
        let counts = [
            (summary.delete, format!("{} to destroy", summary.delete)),
            (summary.replace, format!("{} to replace", summary.replace)),
            (summary.create, format!("{} to create", summary.create)),
            (summary.update, format!("{} to change", summary.update)),
            (summary.moved, format!("{} to move", summary.moved)),
            (summary.restart, several(summary.restart, "restart", "restarts")),
            (self.reboots, several(self.reboots, "reboot", "reboots")),
            (
                self.quorum,
                several(self.quorum, "control plane goes down", "control planes go down, one at a time"),
            ),
        ];
        let parts: Vec<String> =
            counts.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text).collect();
        if parts.is_empty() { "nothing to do".to_owned() } else { parts.join(", ") }
    }
}

impl Importance {
    pub fn of(step: &Step) -> Self {
        match step.action {
            StepAction::Delete | StepAction::DeleteFormer => Self::Removal,
            _ if step.replacement => Self::Removal,
            _ if step.restart => Self::Disruption,
            _ => Self::Change,
        }
    }
}

/// Whether a whole machine goes down: one whose every step disturbs it. A guest that restarts is a restart.
fn is_reboot(step: &Step) -> bool {
    step.restart && matches!(step.address.kind().table().rollout, Rollout::Member { always: true, .. })
}

fn goes_down(step: &Step) -> bool {
    step.action != StepAction::Record && (step.restart || Importance::of(step) == Importance::Removal)
}

/// The members of a rollout group that the others follow, by their names; of those whose role the plan does not say, all: rather one too many.
fn control_planes(plan: &Plan) -> BTreeSet<&str> {
    let has_gate = plan.live.keys().any(|address| address.kind().table().is_gate());
    if !has_gate {
        return BTreeSet::new();
    }
    let mut followers = BTreeSet::new();
    for step in &plan.steps {
        if let Rollout::Member { always: true, follows, .. } = step.address.kind().table().rollout
            && follows(&step.spec)
        {
            followers.insert(step.address.name());
        }
    }
    let members =
        plan.live.keys().filter(|address| matches!(address.kind().table().rollout, Rollout::Member { .. }));
    members.map(|address| address.name()).filter(|name| !followers.contains(name)).collect()
}
