//! Plans, reports and drift as a few lines of text, for goldens.

use strata_engine::{Drift, DriftKind, Plan, Step, StepAction};
use strata_resource::{FieldChange, Value};

use super::Ending;

fn value(value: Option<&Value>) -> String {
    match value {
        None => "none".to_owned(),
        Some(Value::Secret(_)) => "(secret)".to_owned(),
        Some(value) => format!("{value:?}"),
    }
}

fn change(change: &FieldChange) -> String {
    let (before, after) = (value(change.before.as_ref()), value(change.after.as_ref()));
    let drift = if change.drift { " (drift)" } else { "" };
    format!("    {}: {before} → {after}{drift}\n", change.path)
}

fn step(index: usize, step: &Step) -> String {
    let sign = match step.action {
        StepAction::Create => "+",
        StepAction::Update => "~",
        StepAction::Delete => "-",
        StepAction::DeleteFormer => "- former",
        StepAction::Record => "= record",
        StepAction::Forget => "= forget",
    };
    let mut text = format!("{index} {sign} {}", step.address);
    for (is, note) in [
        (step.replacement, " (replacement)"),
        (step.restart, " (restart)"),
        (step.stays_pending, " (stays pending)"),
    ] {
        text.push_str(if is { note } else { "" });
    }
    if !step.needs.is_empty() {
        text.push_str(&format!(" after {:?}", step.needs));
    }
    text.push('\n');
    text.extend(step.reasons.iter().map(|reason| format!("    because {reason}\n")));
    text.extend(step.changes.iter().map(change));
    text
}

pub(crate) fn describe_plan(plan: &Plan) -> String {
    let mut text: String = plan.steps.iter().enumerate().map(|(index, of)| step(index, of)).collect();
    text.extend(plan.unknown.iter().map(|problem| format!("? {}: {}\n", problem.address, problem.message)));
    text.extend(plan.problems.iter().map(|problem| format!("! {}: {}\n", problem.address, problem.message)));
    text.extend(plan.open.iter().map(|entry| format!("? {} {}\n", entry.action.as_str(), entry.address)));
    let sum = plan.summary();
    text.push_str(&format!(
        "{} create, {} update, {} replace, {} delete, {} unchanged",
        sum.create, sum.update, sum.replace, sum.delete, sum.unchanged
    ));
    text
}

pub(crate) fn describe_report(ending: &Ending) -> String {
    match ending {
        Ending::Done(report) => {
            let mut text = format!("{} done", report.done);
            for failure in &report.failed {
                text.push_str(&format!("\nfailed {}: {}", failure.address, failure.error));
            }
            text.extend(report.skipped.iter().map(|address| format!("\nskipped {address}")));
            text.extend(report.unfinished.iter().map(|address| format!("\nunfinished {address}")));
            if report.left > 0 {
                text.push_str(&format!("\n{} left", report.left));
            }
            text
        }
        Ending::Refused(plan) => {
            let problems = plan.problems.iter();
            let lines: Vec<String> =
                problems.map(|problem| format!("refused {}: {}", problem.address, problem.message)).collect();
            lines.join("\n")
        }
        Ending::Killed => "killed".to_owned(),
        Ending::Failed(error) => format!("error: {error}"),
    }
}

pub(crate) fn describe_drift(drift: &[Drift]) -> String {
    let mut text = String::new();
    for Drift { address, kind } in drift {
        match kind {
            DriftKind::Changed { changes } => {
                text.push_str(&format!("changed {address}\n"));
                text.extend(changes.iter().map(change));
            }
            DriftKind::Gone => text.push_str(&format!("gone {address}\n")),
            DriftKind::Taken { by } => text.push_str(&format!("taken {address}: {by}\n")),
            DriftKind::Busy { what } => text.push_str(&format!("busy {address}: {what}\n")),
            DriftKind::Unreachable { what } => text.push_str(&format!("unreachable {address}: {what}\n")),
            DriftKind::Unknown { what, .. } => text.push_str(&format!("unknown {address}: {what}\n")),
            DriftKind::Unfinished => text.push_str(&format!("unfinished {address}\n")),
            DriftKind::Ignored { changes } => {
                text.push_str(&format!("ignored {address}\n"));
                text.extend(changes.iter().map(|ignored| change(&ignored.change)));
            }
        }
    }
    text
}
