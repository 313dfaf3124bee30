//! `strata snapshot`.

use clap::Subcommand;
use strata_events::Event;
use strata_providers::{GuestSession, Snapshot};
use strata_session::{SessionError, StateAccess};

use crate::{Desk, one_line, time, timestamp};

/// Snapshots of one VM or container: taken, listed, rolled back to, deleted
#[derive(Debug, clap::Args)]
pub struct SnapshotArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Create(CreateArgs),
    List(ListArgs),
    Rollback(RollbackArgs),
    Delete(DeleteArgs),
}

/// Takes a snapshot of a guest, and proves that it is whole
#[derive(Debug, clap::Args)]
struct CreateArgs {
    /// The guest, such as `web/vm/db`
    #[arg(value_name = "ADDRESS")]
    address: String,
    /// Its name; `strata-` and the time without one
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// What it is for
    #[arg(long, value_name = "TEXT", default_value = "")]
    notes: String,
    /// With the memory of a VM that runs: a rollback continues where it was
    #[arg(long)]
    memory: bool,
}

/// Lists the snapshots of a guest, oldest first
#[derive(Debug, clap::Args)]
struct ListArgs {
    /// The guest, such as `web/vm/db`
    #[arg(value_name = "ADDRESS")]
    address: String,
}

/// Puts a guest back to a snapshot of it
///
/// What its disks hold since then is lost. A guest that runs is stopped, and started again. A guest with `protect: true` and a node of a cluster
/// are refused. The plan afterwards shows what the source has changed since the snapshot.
#[derive(Debug, clap::Args)]
struct RollbackArgs {
    /// The guest, such as `web/vm/db`
    #[arg(value_name = "ADDRESS")]
    address: String,
    /// The snapshot, whoever took it
    #[arg(value_name = "NAME")]
    name: String,
    /// Does not ask
    #[arg(short, long)]
    yes: bool,
}

/// Deletes a snapshot that Strata took
///
/// One that somebody else took is refused.
#[derive(Debug, clap::Args)]
struct DeleteArgs {
    /// The guest, such as `web/vm/db`
    #[arg(value_name = "ADDRESS")]
    address: String,
    /// The snapshot
    #[arg(value_name = "NAME")]
    name: String,
    /// Does not ask
    #[arg(short, long)]
    yes: bool,
}

pub(crate) async fn run(args: &SnapshotArgs, desk: &Desk<'_>) -> Result<(), SessionError> {
    let open = |address, access| desk.providers.open_guest(desk.workspace, address, access);
    match &args.verb {
        Verb::Create(args) => {
            let name = name(args, desk)?;
            let mut guest = open(&args.address, StateAccess::Lock("snapshot create")).await?;
            let outcome = create(args, &name, desk, &mut guest).await;
            desk.end(guest, outcome).await
        }
        Verb::List(args) => {
            let guest = open(&args.address, StateAccess::Look).await?;
            let outcome = list(desk, &guest).await;
            desk.end(guest, outcome).await
        }
        Verb::Rollback(args) => {
            let mut guest = open(&args.address, StateAccess::Lock("snapshot rollback")).await?;
            let outcome = roll_back(args, desk, &mut guest).await;
            desk.end(guest, outcome).await
        }
        Verb::Delete(args) => {
            let loss =
                format!("what `{}` was at `{}` cannot be brought back afterwards", args.address, args.name);
            desk.agree(args.yes, &loss, "Delete the snapshot?")?;
            let mut guest = open(&args.address, StateAccess::Lock("snapshot delete")).await?;
            let outcome = delete(args, desk, &mut guest).await;
            desk.end(guest, outcome).await
        }
    }
}

/// What Proxmox takes: a letter, then letters, digits, `-` and `_`, up to 40 in all.
fn name(args: &CreateArgs, desk: &Desk<'_>) -> Result<String, SessionError> {
    let Some(name) = args.name.clone() else {
        return Ok(format!("strata-{}", desk.workspace.surroundings().now().strftime("%Y%m%dT%H%M%S")));
    };
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    let good = (2..=40).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(allowed);
    match good && name != "current" && name != "pending" {
        true => Ok(name),
        false => Err(SessionError::usage(format!("`{name}` is no name of a snapshot")).hint(
            "a letter, then letters, digits, `-` and `_`: 2 to 40 in all, and not `current` or `pending`",
        )),
    }
}

async fn create(
    args: &CreateArgs,
    name: &str,
    desk: &Desk<'_>,
    guest: &mut GuestSession,
) -> Result<(), SessionError> {
    let taken = guest.take_snapshot(name, &args.notes, args.memory, desk.stop).await?;
    tell(desk, guest, &taken);
    desk.terminal.line(&format!("the snapshot `{name}` of `{}` is taken", guest.address));
    Ok(())
}

fn tell(desk: &Desk<'_>, guest: &GuestSession, snapshot: &Snapshot) {
    desk.terminal.event(
        Some(guest.key()),
        &Event::GuestSnapshot {
            address: &guest.address,
            name: &snapshot.name,
            created: timestamp(snapshot.created),
            notes: &snapshot.notes,
            memory: snapshot.memory,
            ours: snapshot.ours,
        },
    );
}

async fn list(desk: &Desk<'_>, guest: &GuestSession) -> Result<(), SessionError> {
    let snapshots = guest.snapshots().await?;
    for snapshot in &snapshots {
        tell(desk, guest, snapshot);
        let mut line = format!("{}  {}", time(snapshot.created), snapshot.name);
        let memory = snapshot.memory.then(|| "with memory".to_owned());
        let others = (!snapshot.ours).then(|| "taken by somebody else".to_owned());
        let open = snapshot.unfinished.as_ref().map(|state| format!("not whole: {state}"));
        for part in [memory, others, open].into_iter().flatten() {
            line = format!("{line}  {part}");
        }
        desk.terminal.line(&line);
        let notes = one_line(&snapshot.notes);
        if !notes.is_empty() {
            desk.terminal.line(&format!("    {notes}"));
        }
    }
    if snapshots.is_empty() {
        desk.terminal.line(&format!("`{}` has no snapshots", guest.address));
    }
    Ok(())
}

async fn roll_back(
    args: &RollbackArgs,
    desk: &Desk<'_>,
    guest: &mut GuestSession,
) -> Result<(), SessionError> {
    guest.refuse_disturbed("roll back")?;
    let snapshots = guest.snapshots().await?;
    let address = guest.address.clone();
    let Some(snapshot) = snapshots.into_iter().find(|snapshot| snapshot.name == args.name) else {
        return Err(SessionError::failed(format!("`{address}` has no snapshot `{}`", args.name))
            .hint(format!("`strata snapshot list {address}` shows what there is")));
    };
    let loss = format!(
        "`{address}` is put back to {}: what its disks hold since then is lost; it is stopped for it if it runs, and started again",
        time(snapshot.created)
    );
    desk.agree(args.yes, &loss, "Roll it back?")?;
    guest.roll_back(&snapshot, desk.stop).await?;
    desk.terminal
        .event(Some(guest.key()), &Event::GuestRolledBack { address: &address, name: &snapshot.name });
    desk.terminal.line(&format!(
        "`{address}` is as it was at `{}`; `strata plan {address}` shows what the source has changed since then",
        snapshot.name
    ));
    Ok(())
}

async fn delete(args: &DeleteArgs, desk: &Desk<'_>, guest: &mut GuestSession) -> Result<(), SessionError> {
    guest.delete_snapshot(&args.name, desk.stop).await?;
    let address = &guest.address;
    desk.terminal.event(Some(guest.key()), &Event::GuestSnapshotDeleted { address, name: &args.name });
    desk.terminal.line(&format!("the snapshot `{}` of `{address}` is deleted", args.name));
    Ok(())
}
