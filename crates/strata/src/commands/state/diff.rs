//! `strata state diff`.

use std::process::ExitCode;

use strata_events::Event;
use strata_resource::Address;
use strata_state::{StateDifference, compare_states};

use super::address::print_where;
use crate::command_error::CommandError;
use crate::commands::CommandResult;
use crate::context::Context;
use crate::style::{self, paint};
use crate::views::drift;
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
    let differences = compare_states(&older, &newest);
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

fn show(context: &Context, address: &Address, difference: &StateDifference) {
    let (sign, changes) = match difference {
        StateDifference::Added => (paint(style::CREATE, "+"), &[][..]),
        StateDifference::Removed => (paint(style::DESTROY, "-"), &[][..]),
        StateDifference::Changed(changes) => (paint(style::CHANGE, "~"), changes.as_slice()),
    };
    context.printer.line(format!("{sign} {}", paint(style::STRONG, address)));
    for change in changes {
        let (before, after) = drift::sides(address, change);
        context.printer.line(format!("    {}  {before} → {after}", change.path));
    }
}
