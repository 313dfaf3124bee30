//! A plan that reads like a good diff.

mod alike;
mod dangers;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use strata_engine::{Action, Plan, PlannedMove, Problem, Step, StepAction, Summary};
use strata_resource::{
    Address, ChangeEffect, FieldChange, FieldPath, Kind, Purpose, Shown, Spec, Unit, Value,
};

use super::{configuration, value};
use crate::columns::{folded, seen};
use crate::style::{self, paint};

pub use dangers::render_dangers;

/// The steps of a plan, one block each (on a terminal one for objects that differ in their number alone), then what stands in the way. Lines are folded to fit `columns`. Changes of many
/// fields are told in a few lines, and those that several objects share once, unless `whole`.
pub fn render(plan: &Plan, columns: usize, whole: bool) -> String {
    let mut text = String::new();
    let mut page = Page::new(plan, columns, whole);
    for entry in &plan.open {
        let what = match (&plan.at_work, entry.action) {
            (Some(who), _) => {
                format!("a run is about to {} it: {who}; plan again when that has ended", entry.doing())
            }
            (None, Action::Delete) => {
                "an interrupted run began to delete it; the next `strata apply` or `strata destroy` looks what came of it"
                    .to_owned()
            }
            (None, _) => {
                format!("an interrupted run began to {} it; `strata apply` finishes this first", entry.doing())
            }
        };
        let _ = writeln!(
            text,
            "  {} {}  {what}",
            paint(style::WARNING, "!"),
            paint(style::STRONG, &entry.address),
        );
    }
    for one in &plan.moves {
        text.push_str(&render_move(one));
    }
    let blocks = plan.steps.iter().filter_map(|step| Block::of(step, &page)).collect();
    let blocks: Vec<Block<'_>> = if page.is_quiet() { alike::folded(blocks) } else { blocks };
    for block in &blocks {
        text.push_str(&block.text(&mut page));
    }
    for (address, what) in
        plan.in_use.iter().flat_map(|(address, all)| all.iter().map(move |one| (address, one)))
    {
        let sign = paint(style::FAINT, "  ·");
        let _ = writeln!(text, "{sign} {}  {}", paint(style::STRONG, address), paint(style::FAINT, what));
    }
    for (address, what) in &plan.unseen {
        let _ = writeln!(
            text,
            "  {} {}  not looked at: {what}; plan again when this is applied",
            paint(style::WARNING, "!"),
            paint(style::STRONG, address),
        );
    }
    for unknown in &plan.unknown {
        text.push_str(&render_obstacle(unknown, paint(style::WARNING, "  ?")));
    }
    for problem in &plan.problems {
        text.push_str(&render_problem(problem));
    }
    if whole {
        text.push_str(&render_ignored(plan));
    }
    text.push_str(&render_left_out(plan, whole));
    text
}

/// The steps one by one, none told by reference to another, for whoever puts them into an order of their own.
pub fn blocks(plan: &Plan, columns: usize) -> Vec<(&Step, String)> {
    let mut page = Page::new(plan, columns, false);
    let one = |step| {
        page.told.clear();
        Some((step, Block::of(step, &page)?.text(&mut page)))
    };
    plan.steps.iter().filter_map(one).collect()
}

/// What differs and is left to others.
fn render_ignored(plan: &Plan) -> String {
    let mut text = String::new();
    for (address, ignored) in &plan.ignored {
        let _ = writeln!(text, "  {} {}", paint(style::FAINT, "·"), paint(style::STRONG, address));
        for one in ignored {
            let (live, wanted) = super::drift::sides(address, &one.change);
            let why = super::drift::reason(one);
            let line = format!("{}  the source says {wanted}, it is {live}, ignored{why}", one.change.path);
            let _ = writeln!(text, "      {}", paint(style::FAINT, line));
        }
    }
    text
}

/// What would change too, and was not selected.
fn render_left_out(plan: &Plan, whole: bool) -> String {
    const SHOWN: usize = 5;
    if plan.left_out.is_empty() {
        return String::new();
    }
    let shown = if whole { usize::MAX } else { SHOWN };
    let mut names: Vec<String> = plan.left_out.iter().take(shown).map(ToString::to_string).collect();
    let rest = plan.left_out.len() - names.len();
    if rest > 0 {
        names.push(format!("{rest} more (-v names them)"));
    }
    let what = format!("  · left out, not selected: {}", names.join(", "));
    format!("{}\n", paint(style::FAINT, what))
}

/// `→ data/vm/database  moved from web/vm/db`, and the same from where it leaves.
fn render_move(one: &PlannedMove) -> String {
    let (address, what) = match one.to_key {
        None => (&one.to, format!("moved from {}", one.from)),
        Some(_) => (&one.from, format!("moved to {}", one.to)),
    };
    let (sign, what) = (paint(style::CHANGE, "  →"), paint(style::FAINT, what));
    format!("{sign} {}  {what}\n", paint(style::STRONG, address))
}

/// One row under a step: what, its value or change, and a note about it.
type Row = (String, String, String);

/// What the blocks of one plan have in common.
struct Page<'a> {
    columns: usize,
    whole: bool,
    /// What is recreated before the old one goes.
    made_first: HashSet<&'a Address>,
    /// A whole rollout group goes, such as a cluster, and everything in it with it.
    ends_group: bool,
    /// The changes that were shown already, and of which object.
    told: HashMap<(Kind, Vec<Row>), &'a Address>,
}

impl<'a> Page<'a> {
    /// Fewer rows are read faster than a reference to them.
    const WORTH_IT: usize = 4;

    fn new(plan: &'a Plan, columns: usize, whole: bool) -> Self {
        let formers =
            plan.steps.iter().filter(|step| step.action == StepAction::DeleteFormer && step.replacement);
        let made_first = formers.map(|step| &step.address).collect();
        let ends = |step: &Step| step.address.kind().table().is_gate() && step.action == StepAction::Delete;
        let ends_group = plan.steps.iter().any(|step| ends(step) && !step.replacement);
        Self { columns, whole, made_first, ends_group, told: HashMap::new() }
    }

    /// A person reads it on a terminal, and has not asked for everything. What goes into a file or to another program is complete.
    fn is_quiet(&self) -> bool {
        !self.whole && self.columns < usize::MAX
    }

    /// Who has just the same changes, further up.
    fn told_before(&mut self, address: &'a Address, rows: &[Row]) -> Option<&'a Address> {
        if self.whole || rows.len() < Self::WORTH_IT {
            return None;
        }
        match self.told.entry((address.kind(), rows.to_vec())) {
            Entry::Occupied(entry) => Some(entry.get()),
            Entry::Vacant(entry) => {
                entry.insert(address);
                None
            }
        }
    }
}

/// What is shown of a step, or of several that are alike.
struct Block<'a> {
    symbol: &'static str,
    colour: anstyle::Style,
    address: &'a Address,
    name: String,
    headline: String,
    reasons: &'a [String],
    rows: Vec<Row>,
}

impl<'a> Block<'a> {
    /// Nothing for what is shown with another step, or changes nothing outside of the state.
    fn of(step: &'a Step, page: &Page<'a>) -> Option<Self> {
        let made_first = page.made_first.contains(&step.address);
        let (symbol, colour) = match step.action {
            // Shown with the create that belongs to it.
            StepAction::Delete | StepAction::DeleteFormer if step.replacement => return None,
            StepAction::Record => return None,
            StepAction::Create if step.replacement && made_first => ("+/-", style::REPLACE),
            StepAction::Create if step.replacement => ("-/+", style::REPLACE),
            StepAction::Create => ("  +", style::CREATE),
            StepAction::Update => ("  ~", style::CHANGE),
            StepAction::Delete | StepAction::DeleteFormer => ("  -", style::DESTROY),
            StepAction::Forget => ("  ·", style::FAINT),
        };
        let (name, headline, address) = (step.address.to_string(), headline(step, page), &step.address);
        let rows = rows(step, page);
        Some(Self { symbol, colour, address, name, headline, reasons: &step.reasons, rows })
    }

    fn text(&self, page: &mut Page<'a>) -> String {
        let columns = page.columns;
        // What does not fit beside the address goes under it.
        let fits = 6 + self.name.chars().count() + self.headline.chars().count() <= columns;
        let (gap, headline) = match fits {
            true => ("  ", self.headline.clone()),
            false => ("\n      ", folded(&self.headline, 6, columns)),
        };
        let mut text = format!(
            "{} {}{gap}{}\n",
            paint(self.colour, self.symbol),
            paint(style::STRONG, folded(&self.name, 6, columns)),
            paint(style::FAINT, headline)
        );
        for reason in self.reasons {
            let _ = writeln!(text, "      {}", paint(style::FAINT, folded(reason, 6, columns)));
        }
        if let Some(like) = page.told_before(self.address, &self.rows) {
            let _ = writeln!(text, "      {}", paint(style::FAINT, format!("the same as {like} above")));
            return text;
        }
        let width = self.rows.iter().map(|(path, ..)| path.chars().count()).max().unwrap_or(0).min(28);
        for (path, shown, note) in &self.rows {
            let note =
                if note.is_empty() { String::new() } else { format!("  {}", paint(style::FAINT, note)) };
            let indent = 8 + path.chars().count().max(width);
            // A long path leaves no room beside it.
            let (gap, indent) = match indent + seen(shown).min(24) <= columns {
                true => ("  ".to_owned(), indent),
                false => (format!("\n{}", " ".repeat(10)), 10),
            };
            let shown = folded(shown, indent, columns);
            let last = shown.lines().last().map_or(0, seen) + if shown.contains('\n') { 0 } else { indent };
            let note = match note.is_empty() || last + seen(&note) <= columns {
                true => note,
                false => format!("\n{}{}", " ".repeat(indent), note.trim_start()),
            };
            let _ = writeln!(text, "      {path:width$}{gap}{shown}{note}");
        }
        text
    }
}

/// What is new, or what changes.
fn rows(step: &Step, page: &Page<'_>) -> Vec<Row> {
    let (kind, table) = (step.address.kind(), step.address.kind().table());
    match step.action {
        StepAction::Create if !step.replacement => {
            let name = table.field_for(Purpose::Name);
            value::rows(kind, &shown_of_new(step, page.is_quiet()))
                .into_iter()
                .filter(|(path, shown)| name != Some(path) || shown != step.address.name())
                .map(|(path, shown)| (path, shown, String::new()))
                .collect()
        }
        _ => {
            let (mut rows, rest) = match table.shown.summarised {
                Some(document) if !page.whole => configuration::rows(document, &step.changes),
                _ => (Vec::new(), step.changes.iter().collect()),
            };
            rows.extend(rest.into_iter().flat_map(|change| change_rows(step, change)));
            rows
        }
    }
}

/// The fields of a new object that are worth a line. A whole document is not: its parts are named.
fn shown_of_new(step: &Step, quiet: bool) -> Spec {
    let (table, rules) = (step.address.kind().table(), step.address.kind().rules());
    let mut hidden: Vec<&str> = table.shown.in_headline.to_vec();
    if table.shown.terse {
        // The headline has who it is.
        hidden.extend(table.identity);
        hidden.extend(table.mark_field());
    }
    let usual = |field: &str, value: &Value| {
        let default = rules.rule(&FieldPath::root().child(field)).default;
        (quiet || table.shown.terse) && default.is_some_and(|default| default.equals(value))
    };
    let told = |(field, value): (&String, &Value)| {
        if hidden.contains(&field.as_str()) || usual(field, value) {
            return None;
        }
        let value = match value {
            Value::Map(parts) if table.shown.summarised == Some(field.as_str()) => {
                Value::List(parts.keys().cloned().map(Value::Text).collect())
            }
            value => value.clone(),
        };
        Some((field.clone(), value))
    };
    step.spec.iter().filter_map(told).collect()
}

/// What the object is and what happens to it as a whole.
fn headline(step: &Step, page: &Page<'_>) -> String {
    let mut text = describe(&step.address, &step.spec);
    match step.action {
        StepAction::Create if step.replacement && page.made_first.contains(&step.address) => {
            text.push_str(", replaced: the new one created, then the old one deleted");
        }
        StepAction::Create if step.replacement => text.push_str(", replaced: destroyed and recreated"),
        StepAction::Delete | StepAction::DeleteFormer => {
            text.push_str(", ");
            text.push_str((step.address.kind().table().shown.removal)(&step.spec, page.ends_group));
        }
        StepAction::Forget => text.push_str(", dropped from the state"),
        _ => {}
    }
    if step.restart {
        text.push_str(", restarts");
    } else if step.stays_pending {
        text.push_str(", takes effect at its next restart");
    }
    text
}

/// `VM 9100 on pve1`, `local:iso/…`.
pub fn describe(address: &Address, spec: &Spec) -> String {
    address.kind().table().call(spec)
}

fn change_rows(step: &Step, change: &FieldChange) -> Vec<Row> {
    let kind = step.address.kind();
    let (rule, shown) = (kind.rules().rule(&change.path), &kind.table().shown);
    let mut notes = Vec::new();
    match rule.effect {
        ChangeEffect::Replace => notes.push("needs a replacement"),
        ChangeEffect::Restart if step.restart => notes.push("needs the restart"),
        ChangeEffect::Migrate => notes.push("migrates"),
        _ => {}
    }
    if change.drift {
        notes.push("changed by somebody else");
    }
    let detached = change.after.is_none() && rule.volume;
    if detached {
        notes.push("detached; the volume is kept as unused");
    }
    let note = notes.join(", ");
    if let (Some(Value::List(before)), Some(Value::List(after))) = (&change.before, &change.after)
        && before.iter().chain(after).any(|item| item.as_map().is_some())
    {
        return list_rows(shown, &change.path, before, after, &note);
    }
    let side = |side: &Option<Value>| match side {
        Some(Value::Map(map)) => value::group(kind, &change.path, map),
        Some(other) => value::show(shown, other, rule.unit),
        None => "(none)".to_owned(),
    };
    let text = match (&change.before, &change.after) {
        (None, Some(_)) => paint(style::CREATE, format!("+ {}", side(&change.after))),
        (Some(_), None) => paint(style::DESTROY, format!("- {}", side(&change.before))),
        _ => format!(
            "{} → {}",
            paint(style::DESTROY, side(&change.before)),
            paint(style::CREATE, side(&change.after))
        ),
    };
    vec![(change.path.to_string(), text, note)]
}

/// Items of a list that come and go, such as firewall rules.
fn list_rows(shown: &Shown, path: &FieldPath, before: &[Value], after: &[Value], note: &str) -> Vec<Row> {
    let said = |item: &Value| value::show(shown, item, Unit::None);
    let mut rows = Vec::new();
    for item in before.iter().filter(|item| !after.contains(item)) {
        rows.push((path.to_string(), paint(style::DESTROY, format!("- {}", said(item))), note.to_owned()));
    }
    for item in after.iter().filter(|item| !before.contains(item)) {
        rows.push((path.to_string(), paint(style::CREATE, format!("+ {}", said(item))), note.to_owned()));
    }
    let common = |one: &'_ [Value], other: &[Value]| -> Vec<Value> {
        one.iter().filter(|item| other.contains(item)).cloned().collect()
    };
    // The first rule that matches decides: those that stay can mean something else in another order.
    if rows.is_empty() || common(before, after) != common(after, before) {
        let order: Vec<String> = common(after, before).iter().map(said).collect();
        let shown = match rows.is_empty() {
            true => "in another order".to_owned(),
            false => format!("those that stay, in another order: {}", order.join("; ")),
        };
        rows.push((path.to_string(), shown, note.to_owned()));
    }
    rows
}

/// Why a plan cannot be applied, with its hints.
pub fn render_problem(problem: &Problem) -> String {
    render_obstacle(problem, paint(style::ERROR, "  ✗"))
}

fn render_obstacle(problem: &Problem, sign: String) -> String {
    let mut text = format!("{sign} {}: {}\n", paint(style::STRONG, &problem.address), problem.message);
    if let Some(origin) = &problem.origin {
        let _ = writeln!(text, "      {} {origin}", paint(style::FAINT, "-->"));
    }
    let _ = writeln!(text, "      {} {}", paint(style::HINT, "hint:"), problem.hint);
    text
}

/// `2 to create, 1 to change (1 restart), 12 unchanged`.
pub fn render_summary(summary: &Summary) -> String {
    let mut parts = Vec::new();
    let mut push = |count: usize, style: anstyle::Style, what: &str| {
        if count > 0 {
            parts.push(paint(style, format!("{count} {what}")));
        }
    };
    push(summary.moved, style::CHANGE, "to move");
    push(summary.create, style::CREATE, "to create");
    push(summary.update, style::CHANGE, "to change");
    push(summary.replace, style::REPLACE, "to replace");
    push(summary.delete, style::DESTROY, "to destroy");
    push(summary.restart, style::CHANGE, if summary.restart == 1 { "restart" } else { "restarts" });
    push(summary.unchanged, style::FAINT, "unchanged");
    if summary.changes() == 0 {
        parts = vec![format!("{} {} unchanged", paint(style::CREATE, "nothing to do:"), summary.unchanged)];
    }
    if summary.left_out > 0 {
        parts.push(paint(style::WARNING, format!("{} left out", summary.left_out)));
    }
    parts.join(", ")
}

/// `applied: 2 created, 1 changed`, in the numbers of the plan.
pub fn render_applied(summary: &Summary) -> String {
    let counts = [
        (summary.moved, "moved"),
        (summary.create, "created"),
        (summary.update, "changed"),
        (summary.replace, "replaced"),
        (summary.delete, "destroyed"),
    ];
    let parts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let what = if parts.is_empty() { "the state is up to date".to_owned() } else { parts.join(", ") };
    format!("{} {what}", paint(style::CREATE, "applied:"))
}
