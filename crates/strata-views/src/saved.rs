//! What a saved plan does, and what it is bound to.

use std::fmt::Write as _;

use strata_engine::{DrivenPlan, PlanFile, PlannedStack, Summary};
use strata_events::Event;

use crate::plan;
use crate::style::{self, paint};

/// The events of a saved plan, each with the key of the stack that it is about.
pub fn events(file: &PlanFile) -> Vec<(String, Event<'_>)> {
    let mut events = Vec::new();
    for stack in &file.stacks {
        let key = &stack.plan.key;
        events.extend(stack.plan.steps.iter().map(|step| (key.clone(), Event::planned(step))));
        events.push((key.clone(), bound(stack)));
    }
    events.extend(file.driven.iter().map(|stack| (stack.key.clone(), bound_by_tofu(stack))));
    events
}

fn bound(stack: &PlannedStack) -> Event<'_> {
    Event::Bound {
        key: &stack.plan.key,
        serial: Some(stack.plan.serial),
        lineage: Some(stack.plan.lineage.as_str()),
        source_digest: &stack.source_digest,
        plan_digest: &stack.plan_digest,
        live: stack.plan.live.values().flatten().count(),
        summary: stack.plan.summary(),
        changes: None,
    }
}

fn bound_by_tofu(stack: &DrivenPlan) -> Event<'_> {
    Event::Bound {
        key: &stack.key,
        serial: stack.position.as_ref().map(|(_, serial)| *serial),
        lineage: stack.position.as_ref().map(|(lineage, _)| lineage.as_str()),
        source_digest: &stack.source_digest,
        plan_digest: &stack.digest,
        live: 0,
        summary: stack.summary,
        changes: Some(&stack.changes),
    }
}

/// The numbers of all stacks.
pub fn summary(file: &PlanFile) -> Summary {
    let own = file.stacks.iter().map(|stack| stack.plan.summary());
    own.chain(file.driven.iter().map(|stack| stack.summary)).fold(Summary::default(), |mut all, one| {
        all += one;
        all
    })
}

/// The same for people.
pub fn render(file: &PlanFile, columns: usize, verbose: bool) -> String {
    let mut text = String::new();
    for stack in &file.stacks {
        heading(&mut text, &stack.stack, &stack.plan.key);
        text.push_str(&plan::render(&stack.plan, columns, verbose));
        let live = stack.plan.live.values().flatten().count();
        binding(&mut text, Some(stack.plan.serial), &stack.source_digest, &stack.plan_digest);
        let _ = writeln!(text, "  {live} live object{} as seen then", if live == 1 { "" } else { "s" });
    }
    for stack in &file.driven {
        heading(&mut text, &stack.stack, &stack.key);
        for change in stack.changes["resources"].as_array().into_iter().flatten() {
            let word = |key: &str| change[key].as_str().unwrap_or_default();
            let _ = writeln!(text, "  {} {}", word("action"), paint(style::STRONG, word("address")));
        }
        let serial = stack.position.as_ref().map(|(_, serial)| *serial);
        binding(&mut text, serial, &stack.source_digest, &stack.digest);
    }
    for (what, names) in [("selected", &file.selection), ("replaced", &file.replace)] {
        if !names.is_empty() {
            let _ = writeln!(text, "{what}: {}", names.join(", "));
        }
    }
    let made = match &file.commit {
        Some(commit) => format!("made by Strata {} from commit {commit}", file.strata),
        None => format!("made by Strata {}", file.strata),
    };
    let aim = if file.destroy { ", to destroy everything" } else { "" };
    let environment = file.environment.as_ref().map(|name| format!(", environment `{name}`"));
    let _ = writeln!(text, "{made}{aim}{}", environment.unwrap_or_default());
    if !file.waiting.is_empty() {
        let _ = writeln!(text, "not in it: `{}`; plan again when this is applied", file.waiting.join("`, `"));
    }
    text.push_str(&plan::render_summary(&summary(file)));
    text
}

fn heading(text: &mut String, stack: &str, key: &str) {
    let _ = writeln!(text, "{} {}", paint(style::STRONG, stack), paint(style::FAINT, format!("({key})")));
}

fn binding(text: &mut String, serial: Option<u64>, source: &str, plan: &str) {
    let short = |digest: &str| digest.get(..12).unwrap_or(digest).to_owned();
    let serial = serial.map_or_else(|| "no state yet".to_owned(), |serial| format!("state serial {serial}"));
    let _ = writeln!(text, "  bound to: {serial}, source {}, plan {}", short(source), short(plan));
}
