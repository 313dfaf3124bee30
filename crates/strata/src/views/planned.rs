//! The plans of a list of stacks, whoever makes them, with one summary under them.

use strata_engine::Summary;
use strata_events::Event;
use strata_resource::Layer;
use strata_session::{Planned, SessionError, Unplanned, Wait};

use crate::printer::Printer;
use crate::style::{self, paint};
use crate::views;
use crate::views::counts::{not_planned, not_seen};

fn print(planned: &Planned<'_>, printer: Printer) {
    let key = planned.key();
    match planned {
        Planned::Native(session, plan) => {
            // What leaves a stack is told where it goes.
            for one in plan.moves.iter().filter(|one| one.to_key.is_none()) {
                printer.event_of(&key, &Event::planned_move(one));
            }
            for step in &plan.steps {
                printer.event_of(&key, &Event::planned(step));
            }
            for problem in plan.unknown.iter().chain(&plan.problems).chain(&session.obstacles) {
                printer.event_of(&key, &Event::Problem { problem });
            }
        }
        Planned::Driven(tofu) => {
            for change in &tofu.plan.changes.resources {
                printer.event_of(&key, &Event::planned_by_tofu(change, &tofu.driven.prefix));
            }
        }
        Planned::Deferred { waits, .. } => {
            let (Wait::Output(needs) | Wait::Stack(needs)) = waits;
            printer.event_of(&key, &Event::Deferred { needs });
        }
        Planned::Unplanned { reason, .. } => {
            let (error, because) = match reason {
                Unplanned::Failed(error) => (Some(error), None),
                Unplanned::Needs(other) => (None, Some(other.as_str())),
            };
            printer.event_of(&key, &Event::NotPlanned { error, because });
        }
    }
}

fn render(planned: &Planned<'_>, printer: Printer) -> String {
    match planned {
        Planned::Native(session, plan) => {
            let mut text = views::plan::render(plan, printer.columns(), printer.is_verbose());
            text.extend(session.obstacles.iter().map(views::plan::render_problem));
            text
        }
        Planned::Driven(tofu) => {
            views::driven::render(&tofu.plan.changes, &tofu.driven.prefix, printer.columns())
        }
        Planned::Deferred { waits, .. } => {
            let sign = paint(style::WARNING, "!");
            match waits {
                Wait::Output(needs) => format!(
                    "  {sign} not planned yet: it needs `{needs}`, which changes first\n    \
                     `strata apply` plans it when that is applied, shows it, and asks for it\n"
                ),
                Wait::Stack(first) => {
                    format!("  {sign} not in this plan: it goes after `{first}`, which is not planned yet\n")
                }
            }
        }
        Planned::Unplanned { reason, .. } => {
            let sign = paint(style::ERROR, "✗");
            match reason {
                Unplanned::Failed(error) => format!("  {sign} not planned: {}", told(error)),
                Unplanned::Needs(other) => {
                    format!("  {sign} not planned: it needs `{other}`, which cannot be planned\n")
                }
            }
        }
    }
}

fn told(error: &SessionError) -> String {
    let mut text = format!("{}\n", error.message);
    let origin = error.origin.iter().map(|origin| paint(style::FAINT, format!("--> {origin}")));
    let details = error.details.iter().map(|detail| paint(style::FAINT, detail));
    let hints = error.hints.iter().map(|hint| format!("{} {hint}", paint(style::HINT, "hint:")));
    for line in origin.chain(details).chain(hints) {
        text.push_str(&format!("    {line}\n"));
    }
    text
}

/// Shows the plans of all stacks, with one summary under them.
pub(crate) fn show(printer: Printer, planned: &[Planned<'_>]) {
    let mut total = Summary::default();
    let mut radius: Vec<(Layer, usize, usize)> = Vec::new();
    for one in planned {
        let summary = one.summary();
        print(one, printer);
        let text = render(one, printer);
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
    printer.event(&Event::Summary { summary: total });
    if planned.iter().any(Planned::is_blocked) {
        printer.line(paint(style::ERROR, "refused: nothing is done until the above is resolved"));
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
    match planned.iter().filter(|one| one.is_unplanned()).count() {
        0 => {}
        count => printer.line(paint(style::ERROR, not_planned(count))),
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
