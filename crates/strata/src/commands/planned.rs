//! A stack with its plan, whoever makes it: Strata itself, or OpenTofu.

use serde_json::json;
use strata_engine::{Plan, Summary};
use strata_resource::Layer;
use strata_source::EffectiveStack;

use crate::printer::Printer;
use crate::style::{self, paint};
use crate::tofu::{Driven, DrivenPlan};
use crate::views;
use crate::workspace::{KnownOutputs, StackSession, key, layer};

pub(crate) enum Planned<'w> {
    Native(Box<StackSession>, Plan),
    Driven(Box<Driven<'w>>, DrivenPlan),
    /// What it is made from is known when what is planned here is applied.
    Deferred {
        stack: &'w EffectiveStack,
        waits: Wait,
    },
}

/// What a stack cannot be planned, or not be saved, before.
pub(crate) enum Wait {
    /// An output that becomes another, and nobody knows which.
    Output(String),
    /// A stack that has to wait itself, and that goes first.
    Stack(String),
}

impl<'w> Planned<'w> {
    /// What a stack has to wait for, if it takes an output that one of these plans changes to what only its apply tells.
    pub(crate) fn deferred(stack: &'w EffectiveStack, planned: &[Self]) -> Option<Self> {
        let inputs = stack.tofu().into_iter().flat_map(|tofu| tofu.inputs.values());
        let mut moving = inputs.filter(|input| {
            planned.iter().filter(|one| one.name() == input.stack).any(|one| match one {
                Self::Native(..) => false,
                Self::Driven(_, plan) => {
                    let changes = plan.changes.outputs.iter().any(|output| output.name == input.output);
                    changes && !plan.outputs().contains_key(&input.output)
                }
                Self::Deferred { .. } => true,
            })
        });
        moving.next().map(|input| Self::Deferred { stack, waits: Wait::Output(input.to_string()) })
    }

    /// What a stack goes after that has no plan yet: a file with its own plan alone would turn their order around.
    pub(crate) fn behind(stack: &'w EffectiveStack, planned: &[Self]) -> Option<Self> {
        let first = planned
            .iter()
            .filter(|one| one.is_deferred())
            .find(|one| one.layer() < layer(stack) || stack.needed().any(|needed| needed == one.name()))?;
        Some(Self::Deferred { stack, waits: Wait::Stack(first.name().to_owned()) })
    }

    /// What these plans know of outputs of OpenTofu's stacks.
    pub(crate) fn outputs(planned: &[Self]) -> KnownOutputs {
        let of = |one: &Self| match one {
            Self::Driven(driven, plan) => Some((driven.name.clone(), plan.outputs())),
            Self::Native(..) | Self::Deferred { .. } => None,
        };
        planned.iter().filter_map(of).collect()
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Native(session, _) => &session.name,
            Self::Driven(driven, _) => &driven.name,
            Self::Deferred { stack, .. } => &stack.name,
        }
    }

    fn layer(&self) -> Layer {
        match self {
            Self::Native(session, _) => session.layer,
            Self::Driven(driven, _) => layer(driven.stack),
            Self::Deferred { stack, .. } => layer(stack),
        }
    }

    fn key(&self) -> String {
        match self {
            Self::Native(_, plan) => plan.key.clone(),
            Self::Driven(driven, _) => driven.view.key.clone(),
            Self::Deferred { stack, .. } => key(stack),
        }
    }

    pub(crate) fn summary(&self) -> Summary {
        match self {
            Self::Native(_, plan) => plan.summary(),
            Self::Driven(_, plan) => plan.summary(),
            Self::Deferred { .. } => Summary::default(),
        }
    }

    /// How many steps it has.
    pub(crate) fn steps(&self) -> usize {
        match self {
            Self::Native(_, plan) => plan.steps.len(),
            Self::Driven(_, plan) => plan.changes.resources.len(),
            Self::Deferred { .. } => 0,
        }
    }

    /// Whether it would destroy something of a stack that is not in the source any more.
    pub(crate) fn removes_stack(&self) -> bool {
        matches!(self, Self::Native(session, plan) if session.removed && plan.has_changes())
    }

    pub(crate) fn is_deferred(&self) -> bool {
        matches!(self, Self::Deferred { .. })
    }

    pub(crate) fn is_blocked(&self) -> bool {
        matches!(self, Self::Native(_, plan) if !plan.problems.is_empty())
    }

    /// What cannot be seen, and is left as it is.
    pub(crate) fn unknown(&self) -> usize {
        match self {
            Self::Native(_, plan) => plan.unknown.len(),
            Self::Driven(..) | Self::Deferred { .. } => 0,
        }
    }

    /// Whether an interrupted run left something open, which the next apply looks at first.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::Native(_, plan) if !plan.open.is_empty())
    }

    pub(crate) fn has_changes(&self) -> bool {
        match self {
            Self::Native(_, plan) => plan.has_changes(),
            Self::Driven(_, plan) => plan.changes.any(),
            Self::Deferred { .. } => true,
        }
    }

    fn tell(&self, printer: Printer) {
        match self {
            Self::Native(_, plan) => {
                for step in &plan.steps {
                    printer.event(&views::plan::PlannedStep::new(step));
                }
                for problem in plan.unknown.iter().chain(&plan.problems) {
                    printer.event(&json!({"event": "problem", "problem": problem}));
                }
            }
            Self::Driven(driven, plan) => {
                for change in &plan.changes.resources {
                    printer.event(&views::driven::planned(change, &driven.prefix));
                }
            }
            Self::Deferred { stack, waits } => {
                let (Wait::Output(needs) | Wait::Stack(needs)) = waits;
                printer.event(&json!({"event": "deferred", "stack": stack.name, "needs": needs}));
            }
        }
    }

    fn render(&self, printer: Printer) -> String {
        match self {
            Self::Native(_, plan) => views::plan::render(plan, printer.columns(), printer.is_verbose()),
            Self::Driven(driven, plan) => {
                views::driven::render(&plan.changes, &driven.prefix, printer.columns())
            }
            Self::Deferred { waits, .. } => {
                let sign = paint(style::WARNING, "!");
                match waits {
                    Wait::Output(needs) => format!(
                        "  {sign} not planned yet: it needs `{needs}`, which changes first\n    \
                         `strata apply` plans it when that is applied, shows it, and asks for it\n"
                    ),
                    Wait::Stack(first) => {
                        format!(
                            "  {sign} not in this plan: it goes after `{first}`, which is not planned yet\n"
                        )
                    }
                }
            }
        }
    }
}

/// What a plan leaves as it is because nobody can see it.
pub(crate) fn not_seen(count: usize) -> String {
    match count {
        1 => "1 object cannot be seen: it is left as it is".to_owned(),
        _ => format!("{count} objects cannot be seen: they are left as they are"),
    }
}

/// Shows the plans of all stacks, with one summary under them.
pub(crate) fn show(printer: Printer, planned: &[Planned<'_>]) {
    let mut total = Summary::default();
    let mut radius: Vec<(Layer, usize, usize)> = Vec::new();
    for one in planned {
        let summary = one.summary();
        one.tell(printer);
        let text = one.render(printer);
        if !text.is_empty() {
            printer.line(format!(
                "{} {}",
                paint(style::STRONG, one.name()),
                paint(style::FAINT, format!("({}, {})", one.layer(), one.key()))
            ));
            printer.line(text);
        }
        if summary.changes() > 0 {
            match radius.iter_mut().find(|(layer, ..)| *layer == one.layer()) {
                Some((_, stacks, objects)) => {
                    *stacks += 1;
                    *objects += summary.changes();
                }
                None => radius.push((one.layer(), 1, summary.changes())),
            }
        }
        total += summary;
    }
    printer.event(&json!({"event": "summary", "summary": total}));
    if planned.iter().any(Planned::is_blocked) {
        printer.line(paint(style::ERROR, "refused: nothing is done until the above is settled"));
    } else if total.changes() == 0 && planned.iter().any(|one| one.unknown() > 0) {
        printer.line(format!(
            "{} {} unchanged",
            paint(style::CHANGE, "nothing to do with what can be seen:"),
            total.unchanged
        ));
    } else if total.changes() == 0 && planned.iter().any(Planned::is_open) {
        let first = paint(style::CHANGE, "only what an interrupted run left open is finished:");
        printer.line(format!("{first} {} unchanged", total.unchanged));
    } else if total.changes() == 0 && planned.iter().any(Planned::has_changes) {
        printer.line(format!(
            "{} {} unchanged",
            paint(style::CHANGE, "only states change:"),
            total.unchanged
        ));
    } else {
        printer.line(views::plan::render_summary(&total));
    }
    let unknown: usize = planned.iter().map(Planned::unknown).sum();
    if unknown > 0 {
        printer.line(paint(style::WARNING, not_seen(unknown)));
    }
    if !radius.is_empty() {
        let parts: Vec<String> = radius
            .iter()
            .map(|(layer, stacks, objects)| {
                format!("{layer}: {objects} in {stacks} {}", if *stacks == 1 { "stack" } else { "stacks" })
            })
            .collect();
        printer.line(paint(style::FAINT, format!("blast radius: {}", parts.join("; "))));
    }
}
