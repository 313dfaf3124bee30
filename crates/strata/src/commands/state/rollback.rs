//! `strata state rollback`.

use std::process::ExitCode;

use strata_events::Event;
use strata_resource::Value;
use strata_state::{StateDocument, StoreError, Writer};

use super::address::print_where;
use crate::command_error::CommandError;
use crate::commands::CommandResult;
use crate::context::Context;
use crate::workspace::Workspace;

/// Makes an older version of a state the newest one
///
/// Only the record goes back, no object does: the next plan shows what differs.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The stack
    stack: String,
    /// The serial to go back to; without it, the one before the newest
    serial: Option<u64>,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load_with_removed(context, std::slice::from_ref(&args.stack)).await?;
    print_where(&workspace, &args.stack, "list")?;
    let (store, key) = (workspace.store()?, workspace.state_key(&args.stack)?);
    let owner = workspace.surroundings().lock_owner("state rollback");
    let written_by = Some(Writer::from(&owner));
    let lock = store.lock(&key, owner).await?;
    let outcome = async {
        // A damaged document cannot be opened as a state; its lock can be taken all the same.
        let now = match store.read(&key).await {
            Ok(document) => document,
            Err(StoreError::Damaged { newest_good: Some(serial), .. }) => {
                Some(store.read_version(&key, serial).await?)
            }
            Err(StoreError::Damaged { newest_good: None, .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let current = now.as_ref().map_or(0, |document| document.serial);
        let to = match args.serial {
            Some(serial) => serial,
            None => current.checked_sub(1).filter(|serial| *serial > 0).ok_or_else(|| {
                CommandError::failed("there is no version before this one")
                    .hint("`strata state history` lists them")
            })?,
        };
        let document = store.read_version(&key, to).await?;
        workspace.refuse_known_elsewhere(now.as_ref(), &document).await?;
        // The journal stays: what it holds is newer than any version and is applied on top.
        let dropped = dropped(now.as_ref(), &document);
        lock.write(&StateDocument { serial: current + 1, written_by, ..document }).await?;
        Ok::<_, CommandError>((to, current, dropped))
    }
    .await;
    lock.release().await?;
    let (to, former, dropped) = outcome?;
    let printer = context.printer;
    let addresses: Vec<String> = dropped.iter().map(|(address, _)| address.clone()).collect();
    printer.event_of(&key, &Event::RolledBack { key: &key, to, serial: former + 1, dropped: addresses });
    printer.line(format!("`{key}` is back at serial {to}, as serial {}", former + 1));
    if !dropped.is_empty() {
        let names: Vec<String> =
            dropped.iter().map(|(address, what)| format!("\n  {address}{what}")).collect();
        let (count, stay) = match dropped.len() {
            1 => ("1 resource is".to_owned(), "it stays"),
            count => (format!("{count} resources are"), "they stay"),
        };
        printer.note(format!(
            "warning: {count} not in serial {to} and removed from state; {stay} as before, with the ownership mark:{}",
            names.concat()
        ));
        printer.note(format!(
            "hint: `strata recover {stack}` records what the source still asks for, `strata drift --orphans` lists the rest; `strata state rollback \
             {stack} {former}` takes this back",
            stack = args.stack
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// What the state knew and the older version does not, with the identity by which it is found.
fn dropped(now: Option<&StateDocument>, older: &StateDocument) -> Vec<(String, String)> {
    let Some(now) = now else { return Vec::new() };
    let gone = now.resources.iter().filter(|(address, _)| !older.resources.contains_key(address));
    gone.map(|(address, resource)| {
        let text = |field: &str| resource.spec.get(field).and_then(Value::as_text).map(str::to_owned);
        let vmid = resource.spec.get("vmid").and_then(Value::as_int).map(|vmid| format!("VMID {vmid}"));
        let what = vmid.or_else(|| text("volume")).or_else(|| text("name"));
        (
            address.to_string(),
            what.map(|what| format!(" ({what} on `{}`)", resource.target)).unwrap_or_default(),
        )
    })
    .collect()
}
