//! What a reader is shown of a review, stack by stack, before anything decides how much room there is.

use std::collections::BTreeMap;

use strata_engine::{DrivenPlan, PlannedStack};
use strata_session::Capacity;
use strata_views::plan::{blocks, render_summary};

use crate::cost::Cost;
use crate::effects::{Effects, Importance};
use crate::finding::Finding;
use crate::reviewed::Reviewed;
use crate::text::visible;

/// As wide as a comment is on most pages.
const COLUMNS: usize = 100;

/// Everything that a comment or a terminal shows.
pub struct Outline<'r> {
    pub reviewed: &'r Reviewed,
    pub digest: String,
    pub effects: Effects,
    pub cost: Cost,
    pub stacks: Vec<StackOutline>,
    /// What somebody else changed and the plan puts back: an object and its fields on each line.
    pub drift: Vec<String>,
    pub findings: &'r [Finding],
}

/// One stack.
pub struct StackOutline {
    /// The key of its state: `prod/web`.
    pub key: String,
    /// Its numbers.
    pub line: String,
    pub entries: Vec<Entry>,
}

/// One object.
pub struct Entry {
    pub address: String,
    pub importance: Importance,
    /// One line or several, without colours.
    pub text: String,
}

impl Entry {
    fn new(address: impl ToString, importance: Importance, text: &str) -> Self {
        Self { address: address.to_string(), importance, text: visible(text).trim_end().to_owned() }
    }

    /// The first line, which says what and how.
    pub fn headline(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }
}

impl<'r> Outline<'r> {
    pub fn of(reviewed: &'r Reviewed, findings: &'r [Finding]) -> Self {
        let own = reviewed.plans.iter().flat_map(|file| file.stacks.iter().map(native));
        let driven = reviewed.plans.iter().flat_map(|file| file.driven.iter().map(driven));
        let mut stacks: Vec<StackOutline> = own.chain(driven).collect();
        stacks.sort_by(|one, other| one.key.cmp(&other.key));
        Self {
            reviewed,
            digest: reviewed.digest(),
            effects: Effects::of(reviewed),
            cost: Cost::of(reviewed),
            stacks,
            drift: drift(reviewed),
            findings,
        }
    }

    /// The same with what the hypervisors have, for what the plan costs.
    #[must_use]
    pub fn within(mut self, capacity: &BTreeMap<String, Capacity>) -> Self {
        self.cost.capacity = crate::cost::sum(capacity);
        self
    }

    /// Stacks that could not be planned before this is applied.
    pub fn waiting(&self) -> Vec<String> {
        let of = |file: &strata_engine::PlanFile| {
            let environment = file.environment.clone().unwrap_or_default();
            file.waiting.iter().map(move |stack| format!("{environment}/{stack}")).collect::<Vec<_>>()
        };
        self.reviewed.plans.iter().flat_map(of).collect()
    }
}

fn drift(reviewed: &Reviewed) -> Vec<String> {
    let plans = reviewed.plans.iter().flat_map(|file| &file.stacks).map(|stack| &stack.plan);
    let steps = plans.flat_map(|plan| plan.steps.iter().map(move |step| (plan, step)));
    let lines = steps.filter_map(|(plan, step)| {
        let drifted = step.changes.iter().filter(|change| change.drift);
        let fields: Vec<String> = drifted.map(|change| change.path.to_string()).collect();
        let environment = plan.key.split('/').next().unwrap_or_default();
        (!fields.is_empty())
            .then(|| visible(&format!("{environment}: {}  {}", step.address, fields.join(", "))))
    });
    lines.collect()
}

fn native(stack: &PlannedStack) -> StackOutline {
    let plan = &stack.plan;
    let moves = plan.moves.iter().filter(|one| one.to_key.is_none());
    let mut entries: Vec<Entry> = moves
        .map(|one| {
            Entry::new(&one.to, Importance::Change, &format!("  → {}  moved from {}", one.to, one.from))
        })
        .collect();
    entries.extend(
        blocks(plan, COLUMNS)
            .iter()
            .map(|(step, text)| Entry::new(&step.address, Importance::of(step), text)),
    );
    for unknown in &plan.unknown {
        let text = format!("  ? {}: {}", unknown.address, unknown.message);
        entries.push(Entry::new(&unknown.address, Importance::Change, &text));
    }
    for (address, what) in &plan.unseen {
        let text = format!("  ! {address}  not looked at: {what}; plan again when this is applied");
        entries.push(Entry::new(address, Importance::Change, &text));
    }
    StackOutline { key: plan.key.clone(), line: visible(&render_summary(&plan.summary())), entries }
}

fn driven(stack: &DrivenPlan) -> StackOutline {
    let resources = stack.changes["resources"].as_array().into_iter().flatten();
    let entries = resources.map(|change| {
        let word = |key: &str| change[key].as_str().unwrap_or_default();
        let importance = match word("action") {
            "delete" | "replace" | "forget" => Importance::Removal,
            _ => Importance::Change,
        };
        Entry::new(word("address"), importance, &format!("  {} {}", word("action"), word("address")))
    });
    StackOutline {
        key: stack.key.clone(),
        line: visible(&render_summary(&stack.summary)),
        entries: entries.collect(),
    }
}
