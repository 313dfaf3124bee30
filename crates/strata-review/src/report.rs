//! The same review for a terminal, and for GitLab's merge request widget.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::outline::Outline;
use crate::range::short;
use crate::text::line;

/// Everything, for a terminal or for the artifact of a job. Nothing is cut.
pub fn plain(outline: &Outline<'_>) -> String {
    let reviewed = outline.reviewed;
    let mut text = body(outline);
    let base = reviewed.merge_base.as_deref().map_or("the beginning", short);
    let _ = writeln!(text, "between {base} and {}, by Strata {}", short(&reviewed.commit), reviewed.strata);
    let _ = write!(text, "digest to approve: {}", outline.digest);
    text
}

/// The same without what is for those who approve.
pub fn body(outline: &Outline<'_>) -> String {
    let mut text = format!("{}\n", outline.effects.verdict());
    for finding in outline.findings {
        let _ = writeln!(text, "{}", line(&finding.line()));
    }
    for stack in &outline.stacks {
        let _ = writeln!(text, "{}: {}", stack.key, stack.line);
        for entry in &stack.entries {
            let _ = writeln!(text, "{}", entry.text);
        }
    }
    for name in outline.waiting() {
        let _ = writeln!(text, "{name}: not in this plan, since it waits for it");
    }
    for drift in &outline.drift {
        let _ = writeln!(text, "drift that is put back: {drift}");
    }
    for row in outline.cost.rows().iter().filter(|_| !outline.cost.is_none()) {
        let [name, before, after, difference, share] = row;
        let share = if share.is_empty() { String::new() } else { format!("; all guests then: {share}") };
        let _ = writeln!(text, "{name}: {before} → {after} ({difference}){share}");
    }
    text
}

/// GitLab's report format `terraform`: a replacement is one create and one delete, as OpenTofu's own plans count it.
pub fn gitlab(outline: &Outline<'_>) -> Value {
    let summary = &outline.effects.summary;
    json!({
        "create": summary.create + summary.replace,
        "update": summary.update,
        "delete": summary.delete + summary.replace,
    })
}
