//! `strata state diff`.

use std::collections::BTreeSet;
use std::process::ExitCode;

use strata_events::Event;
use strata_resource::{Address, FieldChange, FieldPath, Spec, Value};
use strata_state::{StateDocument, StateResource};

use super::address::print_where;
use crate::command_error::CommandError;
use crate::commands::CommandResult;
use crate::context::Context;
use crate::style::{self, paint};
use crate::views::value;
use crate::workspace::Workspace;

/// Compares two versions of a state
///
/// Without a version, the newest is compared with the one before it; with one, that one with the newest. A secret is only ever said to
/// have changed.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The stack
    stack: String,
    /// The serial to compare from
    from: Option<u64>,
    /// The serial to compare with; the newest without it
    to: Option<u64>,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load_with_removed(context, std::slice::from_ref(&args.stack)).await?;
    print_where(&workspace, &args.stack, "list")?;
    let (store, key) = (workspace.store()?, workspace.state_key(&args.stack)?);
    let newest = match args.to {
        Some(serial) => store.read_version(&key, serial).await?,
        None => store
            .read(&key)
            .await?
            .ok_or_else(|| CommandError::failed(format!("there is no state `{key}`")))?,
    };
    let from =
        args.from.or_else(|| newest.serial.checked_sub(1).filter(|serial| *serial > 0)).ok_or_else(|| {
            CommandError::failed("there is no version before this one")
                .hint("`strata state history` lists them")
        })?;
    let older = store.read_version(&key, from).await?;
    let differences = compare(&older, &newest);
    for (address, difference) in &differences {
        let (name, fields) = (difference.name(), difference.fields());
        let event = Event::Difference { address, difference: name, fields, from, to: newest.serial };
        context.printer.event_of(&key, &event);
        show(context, address, difference);
    }
    let counted = match differences.len() {
        0 => "no resource differs".to_owned(),
        1 => "1 resource differs".to_owned(),
        many => format!("{many} resources differ"),
    };
    context.printer.line(format!("serial {from} to {}: {counted}", newest.serial));
    Ok(ExitCode::SUCCESS)
}

enum Difference {
    Added,
    Removed,
    Changed(Vec<FieldChange>),
}

impl Difference {
    fn name(&self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed(_) => "changed",
        }
    }

    fn fields(&self) -> Vec<String> {
        match self {
            Self::Changed(changes) => changes.iter().map(|change| change.path.to_string()).collect(),
            _ => Vec::new(),
        }
    }
}

fn show(context: &Context, address: &Address, difference: &Difference) {
    let (sign, changes) = match difference {
        Difference::Added => (paint(style::CREATE, "+"), &[][..]),
        Difference::Removed => (paint(style::DESTROY, "-"), &[][..]),
        Difference::Changed(changes) => (paint(style::CHANGE, "~"), changes.as_slice()),
    };
    context.printer.line(format!("{sign} {}", paint(style::STRONG, address)));
    let (rules, table) = (address.kind().rules(), address.kind().table());
    for change in changes {
        let unit = rules.rule(&change.path).unit;
        let side = |side: &Option<Value>| {
            side.as_ref().map_or_else(|| "(none)".to_owned(), |shown| value::show(&table.shown, shown, unit))
        };
        context.printer.line(format!(
            "    {}  {} → {}",
            change.path,
            side(&change.before),
            side(&change.after)
        ));
    }
}

fn compare(older: &StateDocument, newer: &StateDocument) -> Vec<(Address, Difference)> {
    let addresses: BTreeSet<&Address> = older.resources.keys().chain(newer.resources.keys()).collect();
    let mut found = Vec::new();
    for address in addresses {
        let difference = match (older.resources.get(address), newer.resources.get(address)) {
            (None, _) => Difference::Added,
            (_, None) => Difference::Removed,
            (Some(before), Some(after)) if before == after => continue,
            (Some(before), Some(after)) => Difference::Changed(changes(before, after)),
        };
        found.push((address.clone(), difference));
    }
    found
}

fn changes(before: &StateResource, after: &StateResource) -> Vec<FieldChange> {
    let mut found = Vec::new();
    fields(&FieldPath::root(), &before.spec, &after.spec, &mut found);
    fields(&FieldPath::root(), &before.facts, &after.facts, &mut found);
    found
}

fn fields(at: &FieldPath, before: &Spec, after: &Spec, found: &mut Vec<FieldChange>) {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for name in names {
        let path = at.child(name);
        match (before.get(name), after.get(name)) {
            (Some(Value::Map(before)), Some(Value::Map(after))) => fields(&path, before, after, found),
            (before, after) if before == after => {}
            (before, after) => {
                found.push(FieldChange { path, before: before.cloned(), after: after.cloned(), drift: false })
            }
        }
    }
}
