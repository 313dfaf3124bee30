//! A frame: the run as a tree of layers and stacks, folded to the size of a terminal.

use std::collections::BTreeMap;
use std::time::Duration;

use anstream::adapter::strip_str;
use strata_resource::Layer;
use strata_views::style::{self, paint};

use crate::model::{Model, PlannedStack, State, Step};
use crate::times::said;
use crate::waits::{has_begun, waits_for};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub columns: usize,
    pub rows: usize,
}

const SPINNER: [&str; 8] = ["⠋", "⠙", "⠸", "⢰", "⣠", "⣄", "⡆", "⠇"];

/// What is left out first has the highest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    Failed,
    Running,
    Stack,
    Next,
    Layer,
    Finished,
}

struct Row {
    weight: Weight,
    text: String,
}

/// The lines of the run as it is now; none before its first step and where there is no room.
pub fn frame(model: &Model, now: Duration, size: Size) -> Vec<String> {
    let Some(began) = model.began else { return Vec::new() };
    if size.rows == 0 || size.columns < 8 {
        return Vec::new();
    }
    let elapsed = now.saturating_sub(began);
    let mut lines = vec![headline(model, now, elapsed)];
    // The last line stays free: the cursor stands there.
    let room = size.rows.saturating_sub(1).max(1);
    if room >= 4 {
        let mut rows = body(model, now);
        fold(&mut rows, room - 2);
        lines.extend(rows.into_iter().map(|row| row.text));
    }
    if room >= 2 {
        lines.push(footer(model, size.columns));
    }
    lines.iter().map(|line| cut(line, size.columns)).collect()
}

fn headline(model: &Model, now: Duration, elapsed: Duration) -> String {
    let steps = || model.stacks.iter().flat_map(|stack| &stack.steps).filter(|step| step.is_remote);
    let count = |is: fn(&State) -> bool| steps().filter(|step| is(&step.state)).count();
    let (all, done) = (steps().count(), count(|state| matches!(state, State::Done { .. })));
    let mut parts = vec![format!("{done} of {all} done"), format!("{} running", model.running())];
    let failed = count(|state| matches!(state, State::Failed { .. }));
    if failed > 0 {
        parts.push(paint(style::ERROR, format!("{failed} failed")));
    }
    let left = remaining(model, now).map_or(String::new(), |left| format!(", about {} left", said(left)));
    let word = if model.stopping { "stopping" } else { "applying" };
    let time = paint(style::FAINT, format!("{}{left}", said(elapsed)));
    format!("{} {}  {time}", paint(style::STRONG, word), parts.join(", "))
}

/// The longest way through what is left, layer after layer, by what earlier runs took; nothing where one of its steps was never seen.
fn remaining(model: &Model, now: Duration) -> Option<Duration> {
    let mut layers: BTreeMap<Layer, Duration> = BTreeMap::new();
    for stack in &model.stacks {
        let mut ends: Vec<Duration> = Vec::with_capacity(stack.steps.len());
        for (place, step) in stack.steps.iter().enumerate() {
            // Needs come before what needs them; anything else waits for nothing here.
            let needs = step.needs.iter().filter(|need| **need < place).filter_map(|need| ends.get(*need));
            let ready = needs.max().copied().unwrap_or_default();
            let takes = match &step.state {
                _ if !step.is_remote => Duration::ZERO,
                State::Pending => model.times.expected(&step.what)?,
                State::Running { since, .. } => {
                    model.times.expected(&step.what)?.saturating_sub(now.saturating_sub(*since))
                }
                _ => Duration::ZERO,
            };
            ends.push(ready + takes);
        }
        let longest = layers.entry(stack.layer).or_default();
        *longest = (*longest).max(ends.into_iter().max().unwrap_or_default());
    }
    let left: Duration = layers.values().sum();
    (left > Duration::ZERO).then_some(left)
}

fn footer(model: &Model, columns: usize) -> String {
    let (text, short) = if model.stopping {
        (
            "what is being written is finished; Ctrl-C again stops now, the journal has it",
            "Ctrl-C again stops now",
        )
    } else {
        (
            "safe to stop: Ctrl-C finishes what is being written, the next apply goes on",
            "safe to stop: Ctrl-C",
        )
    };
    paint(style::FAINT, if text.len() <= columns { text } else { short })
}

fn body(model: &Model, now: Duration) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut layer = None;
    for stack in model.stacks.iter().filter(|stack| stack.steps.iter().any(|step| step.is_remote)) {
        if layer != Some(stack.layer) {
            layer = Some(stack.layer);
            rows.push(Row { weight: Weight::Layer, text: paint(style::STRONG, stack.layer) });
        }
        stack_rows(model, stack, now, &mut rows);
    }
    rows
}

fn stack_rows(model: &Model, stack: &PlannedStack, now: Duration, rows: &mut Vec<Row>) {
    let steps = || stack.steps.iter().filter(|step| step.is_remote);
    let all = steps().count();
    let done = steps().filter(|step| matches!(step.state, State::Done { .. })).count();
    let is_over = steps().all(|step| step.state.is_over());
    let (sign, weight) = match (is_over, done == all) {
        (true, true) => (paint(style::CREATE, "✓"), Weight::Finished),
        (true, false) => (paint(style::ERROR, "✗"), Weight::Stack),
        (false, _) if has_begun(stack) => (paint(style::CHANGE, "▸"), Weight::Stack),
        (false, _) => (paint(style::FAINT, "·"), Weight::Finished),
    };
    let note = if has_begun(stack) { "" } else { "  waits for the stacks before it" };
    rows.push(Row {
        weight,
        text: format!("  {sign} {} {}", stack.name, paint(style::FAINT, format!("{done}/{all}{note}"))),
    });
    for step in steps() {
        match &step.state {
            State::Running { since, doing, .. } => {
                let elapsed = now.saturating_sub(*since);
                rows.push(Row { weight: Weight::Running, text: running(model, step, doing, elapsed, now) });
            }
            State::Failed { message, .. } => {
                let first = message.lines().next().unwrap_or_default();
                let text = format!("    {} {}  {first}", paint(style::ERROR, "✗"), step.address);
                rows.push(Row { weight: Weight::Failed, text });
            }
            State::Stopped { waited, .. } => {
                let text = format!("    {} {}  {waited}", paint(style::WARNING, "-"), step.address);
                rows.push(Row { weight: Weight::Next, text });
            }
            State::Pending if has_begun(stack) => {
                let waits = paint(style::FAINT, waits_for(model, stack, step));
                let text = format!("    {} {}  {waits}", paint(style::FAINT, "·"), step.address);
                rows.push(Row { weight: Weight::Next, text });
            }
            State::Pending | State::Done { .. } | State::Skipped { .. } => {}
        }
    }
}

fn running(model: &Model, step: &Step, doing: &str, elapsed: Duration, now: Duration) -> String {
    let spinner = SPINNER[(now.as_millis() / 120) as usize % SPINNER.len()];
    let doing = if doing.is_empty() { step.verbs.0 } else { doing };
    let of = model.times.expected(&step.what).filter(|expected| expected.as_secs() > 0);
    let of = of.map_or(String::new(), |expected| format!(" of about {}", said(expected)));
    let restarts = if step.restarts { ", restarts" } else { "" };
    let time = paint(style::FAINT, format!("{}{of}{restarts}", said(elapsed)));
    format!("    {} {}  {time}  {doing}", paint(style::CHANGE, spinner), step.address)
}

/// Takes away what matters least until the rest fits, and says how much that was.
fn fold(rows: &mut Vec<Row>, room: usize) {
    if rows.len() <= room {
        return;
    }
    let (mut waiting, mut others) = (0, 0);
    while rows.len() + 1 > room.max(1) {
        let Some(heaviest) = rows.iter().map(|row| row.weight).max() else { break };
        let place = rows.iter().rposition(|row| row.weight == heaviest).unwrap_or_default();
        match rows.remove(place).weight {
            Weight::Next => waiting += 1,
            Weight::Layer => {}
            _ => others += 1,
        }
    }
    let waiting = (waiting > 0).then(|| format!("{waiting} more waiting"));
    let others = (others > 0).then(|| format!("{others} more lines that do not fit"));
    let said: Vec<String> = [waiting, others].into_iter().flatten().collect();
    let text = paint(style::FAINT, format!("  … {}", said.join(", ")));
    if room > 0 && !said.is_empty() {
        rows.push(Row { weight: Weight::Next, text });
    }
}

/// As many characters as there are columns; colours take none.
pub(crate) fn cut(painted: &str, columns: usize) -> String {
    if width(painted) <= columns {
        return painted.to_owned();
    }
    let (mut out, mut seen, mut in_escape) = (String::new(), 0, false);
    for letter in painted.chars() {
        match letter {
            '\u{1b}' => in_escape = true,
            _ if in_escape => in_escape = letter != 'm',
            _ if seen + 1 == columns => {
                out.push('…');
                seen += 1;
                continue;
            }
            _ if seen >= columns => continue,
            _ => seen += 1,
        }
        out.push(letter);
    }
    out
}

pub(crate) fn width(painted: &str) -> usize {
    strip_str(painted).map(|part| part.chars().count()).sum()
}
