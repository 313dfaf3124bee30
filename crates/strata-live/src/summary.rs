//! What came of a run, on one screen.

use std::time::Duration;

use strata_views::style::{self, paint};

use crate::frame::cut;
use crate::model::{Model, State};
use crate::times::said;

/// Stacks and steps that are named, at most.
const NAMED: usize = 6;

/// A line for each stack with its time, and the steps that took longest; nothing where nothing was done.
pub fn summary(model: &Model, now: Duration, columns: usize) -> Vec<String> {
    let Some(began) = model.began else { return Vec::new() };
    let mut lines = Vec::new();
    let mut slowest: Vec<(Duration, String)> = Vec::new();
    for stack in &model.stacks {
        let (mut all, mut done, mut worked) = (0, 0, Duration::ZERO);
        for step in stack.steps.iter().filter(|step| step.is_remote) {
            all += 1;
            if let State::Done { took } = &step.state {
                done += 1;
                worked += *took;
                slowest.push((*took, format!("{} {}", step.address, step.verbs.1)));
            }
        }
        if all > 0 {
            let sign = if done == all { paint(style::CREATE, "✓") } else { paint(style::ERROR, "✗") };
            let time = paint(style::FAINT, format!("{} of work", said(worked)));
            lines.push(format!("  {sign} {} {done}/{all}  {time}", stack.name));
        }
    }
    if lines.is_empty() {
        return lines;
    }
    if lines.len() > NAMED {
        let more = lines.len() - NAMED;
        // What failed is never left out.
        lines.sort_by_key(|line| !line.contains('✗'));
        lines.truncate(NAMED);
        lines.push(paint(style::FAINT, format!("  … {more} more stacks")));
    }
    slowest.sort_by(|one, other| other.cmp(one));
    let mut longest = String::new();
    for (took, what) in slowest.iter().filter(|(took, _)| took.as_secs() > 0).take(3) {
        let more = format!("{}{what} {}", if longest.is_empty() { "  longest: " } else { ", " }, said(*took));
        // Half a name says nothing.
        if longest.is_empty() || longest.chars().count() + more.chars().count() <= columns {
            longest.push_str(&more);
        }
    }
    let is_done = lines.iter().all(|line| line.contains('✓'));
    let word = paint(style::STRONG, if is_done { "done" } else { "ended" });
    let head = format!("{word} in {}", said(now.saturating_sub(began)));
    lines.insert(0, head);
    if !longest.is_empty() {
        lines.push(paint(style::FAINT, longest));
    }
    lines.iter().map(|line| cut(line, columns)).collect()
}
