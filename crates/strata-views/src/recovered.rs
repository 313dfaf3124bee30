//! What was found of stacks whose states were lost, and what planning says of it.

use std::fmt::Write as _;

use strata_engine::{Plan, Retrieval};
use strata_resource::Address;

use crate::style::{self, paint};

/// What a person agrees to.
pub fn render(stack: &str, found: &Retrieval, known: usize) -> String {
    let mut text = format!("{}\n", paint(style::STRONG, stack));
    let mut line = |sign: String, address: &Address, what: &str| {
        let _ = writeln!(text, "  {sign} {}  {what}", paint(style::STRONG, address));
    };
    for (address, record) in &found.adoption.records {
        let mut what = address.kind().table().call(&record.spec);
        if found.by_content.contains(address) {
            what += "; it can carry no ownership mark, and is exactly what the source asks for";
        }
        if let Some(changes) = found.adoption.differences.get(address) {
            let fields: Vec<String> = changes.iter().map(|change| format!("`{}`", change.path)).collect();
            let _ = write!(what, "; differs from the source in {}", fields.join(", "));
        }
        line(paint(style::CREATE, "+"), address, &what);
    }
    for (address, unseen) in &found.unknown {
        let hint = format!("{}\n      {} {}", unseen.what, paint(style::HINT, "hint:"), unseen.hint);
        line(paint(style::WARNING, "?"), address, &hint);
    }
    for (address, why) in found.unproven.iter().chain(&found.adoption.refused) {
        line(paint(style::ERROR, "✗"), address, &format!("{why}; left out"));
    }
    for address in &found.missing {
        line(paint(style::DESTROY, "-"), address, "is not there");
    }
    for (address, fields) in found.unreadable() {
        let what = format!("cannot be read back, recorded as the source has it: {}", fields.join(", "));
        line(paint(style::WARNING, "!"), address, &what);
    }
    if known > 0 {
        let _ = writeln!(text, "  {known} in its state already");
    }
    text
}

/// Whether a plan proves that a state is whole.
pub fn is_proven(plan: &Plan) -> bool {
    !plan.has_changes() && plan.problems.is_empty() && plan.unknown.is_empty()
}

/// What planning says of a state that was recorded.
pub fn proof(stack: &str, plan: &Plan) -> String {
    if is_proven(plan) {
        return format!("`{stack}`: {} the plan has no changes", paint(style::CREATE, "proven:"));
    }
    let summary = plan.summary();
    let mut parts = Vec::new();
    for (count, what) in [
        (summary.create, "to create"),
        (summary.update, "to change"),
        (summary.replace, "to replace"),
        (summary.delete, "to destroy"),
        (plan.problems.len(), "refused"),
        (plan.unknown.len(), "unknown"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    let differs = paint(style::CHANGE, "the plan has changes:");
    format!("`{stack}`: {differs} {}; `strata plan {stack}` shows them", parts.join(", "))
}
