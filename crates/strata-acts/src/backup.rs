//! `strata backup`.

use clap::{Subcommand, ValueEnum};
use strata_events::Event;
use strata_providers::{Archive, BackupRequest, GuestSession, Whose};
use strata_session::{SessionError, StateAccess};

use crate::{Desk, one_line, size, time, timestamp};

/// Backups of one VM or container: made at once, listed, verified, restored
///
/// Jobs make backups on a schedule (`backupJobs` of the datacenter); these verbs are for the one before an upgrade, and for the day on which one is
/// needed.
#[derive(Debug, clap::Args)]
pub struct BackupArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Run(RunArgs),
    List(ListArgs),
    Verify(VerifyArgs),
    Restore(RestoreArgs),
}

/// Makes a backup of a guest, and proves that it is there and readable
///
/// Its notes carry the ownership mark. Nothing is pruned: that is the work of jobs.
#[derive(Debug, clap::Args)]
struct RunArgs {
    /// The guest, such as `web/vm/db`
    #[arg(value_name = "ADDRESS")]
    address: String,
    /// Where it goes; the only storage that takes backups, where there is one
    #[arg(long, value_name = "STORAGE")]
    storage: Option<String>,
    /// How a guest that runs is kept still
    #[arg(long, value_name = "MODE", default_value = "snapshot")]
    mode: Mode,
    /// What it is for
    #[arg(long, value_name = "TEXT", default_value = "")]
    notes: String,
    /// Keeps it from being pruned or removed
    #[arg(long)]
    protect: bool,
    /// Does not ask before a guest is suspended or stopped for it
    #[arg(short, long)]
    yes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// It goes on
    Snapshot,
    /// It is suspended while disks are copied
    Suspend,
    /// It is shut down and started again
    Stop,
}

impl Mode {
    fn word(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::Suspend => "suspend",
            Self::Stop => "stop",
        }
    }
}

/// Lists the backups with the VMID of a guest, and says whose they are
#[derive(Debug, clap::Args)]
struct ListArgs {
    /// The guest, such as `web/vm/db`
    #[arg(value_name = "ADDRESS")]
    address: String,
}

/// Proves that a backup is there, readable, and of this guest
///
/// Reads the configuration in it. Where Proxmox Backup Server has it, its own verification counts too. The data of the disks are read by a restore
/// alone.
#[derive(Debug, clap::Args)]
struct VerifyArgs {
    /// The guest, such as `web/vm/db`
    #[arg(value_name = "ADDRESS")]
    address: String,
    /// The backup, as `strata backup list` names it, or `latest`
    #[arg(value_name = "VOLUME", default_value = "latest")]
    volume: String,
}

/// Puts a guest back from a backup of it: the same VMID, hardware addresses and ownership mark
///
/// What its disks hold is lost, and its snapshots go. A guest that is gone is made again. A guest with `protect: true`, a node of a cluster, and a
/// backup of another guest are refused. The plan afterwards shows what the source has changed since the backup.
#[derive(Debug, clap::Args)]
struct RestoreArgs {
    /// The guest, such as `web/vm/db`
    #[arg(value_name = "ADDRESS")]
    address: String,
    /// The backup, as `strata backup list` names it, or `latest`
    #[arg(value_name = "VOLUME")]
    volume: String,
    /// Does not ask
    #[arg(short, long)]
    yes: bool,
}

pub(crate) async fn run(args: &BackupArgs, desk: &Desk<'_>) -> Result<(), SessionError> {
    let open = |address, access| desk.providers.open_guest(desk.workspace, address, access);
    match &args.verb {
        Verb::Run(args) => {
            if args.mode != Mode::Snapshot {
                let what =
                    if args.mode == Mode::Stop { "is shut down and started again" } else { "is suspended" };
                let loss = format!("`{}` {what} for its backup", args.address);
                desk.agree(args.yes, &loss, "Back it up?")?;
            }
            let mut guest = open(&args.address, StateAccess::Lock("backup run")).await?;
            let outcome = back_up(args, desk, &mut guest).await;
            desk.end(guest, outcome).await
        }
        Verb::List(args) => {
            let guest = open(&args.address, StateAccess::Look).await?;
            let outcome = list(desk, &guest).await;
            desk.end(guest, outcome).await
        }
        Verb::Verify(args) => {
            let guest = open(&args.address, StateAccess::Look).await?;
            let outcome = verify(args, desk, &guest).await;
            desk.end(guest, outcome).await
        }
        Verb::Restore(args) => {
            let mut guest = open(&args.address, StateAccess::Lock("backup restore")).await?;
            let outcome = restore(args, desk, &mut guest).await;
            desk.end(guest, outcome).await
        }
    }
}

async fn back_up(args: &RunArgs, desk: &Desk<'_>, guest: &mut GuestSession) -> Result<(), SessionError> {
    let request = BackupRequest {
        storage: args.storage.clone(),
        mode: args.mode.word().to_owned(),
        notes: args.notes.clone(),
        protected: args.protect,
    };
    let archive = guest.back_up(&request, desk.stop).await?;
    tell(desk, guest, &archive);
    desk.terminal.line(&format!(
        "`{}` is backed up: {} ({})",
        args.address,
        archive.volume,
        size(archive.size)
    ));
    Ok(())
}

fn tell(desk: &Desk<'_>, guest: &GuestSession, archive: &Archive) {
    let (whose, reason) = match &archive.whose {
        Whose::Ours => ("ours", None),
        Whose::Another(why) => ("another", Some(why.as_str())),
        Whose::Unknown(why) => ("unknown", Some(why.as_str())),
    };
    desk.terminal.event(
        Some(guest.key()),
        &Event::GuestBackup {
            address: &guest.address,
            volume: &archive.volume,
            created: timestamp(archive.created),
            size: archive.size,
            notes: &archive.notes,
            protected: archive.protected,
            verification: archive.verification.as_deref(),
            whose,
            reason,
        },
    );
}

async fn list(desk: &Desk<'_>, guest: &GuestSession) -> Result<(), SessionError> {
    let archives = guest.archives().await?;
    for archive in &archives.found {
        tell(desk, guest, archive);
        let mut line = format!("{}  {:>11}  {}", time(archive.created), size(archive.size), archive.volume);
        let protected = archive.protected.then(|| "protected".to_owned());
        let verified = archive.verification.as_ref().map(|state| format!("verified: {state}"));
        let whose = match &archive.whose {
            Whose::Ours => None,
            Whose::Another(why) => Some(format!("of another guest: {why}")),
            Whose::Unknown(why) => Some(format!("cannot be read: {why}")),
        };
        for part in [protected, verified, whose].into_iter().flatten() {
            line = format!("{line}  {part}");
        }
        desk.terminal.line(&line);
        let notes = one_line(&archive.notes);
        if !notes.is_empty() {
            desk.terminal.line(&format!("    {notes}"));
        }
    }
    if archives.found.is_empty() {
        desk.terminal.line(&format!("`{}` has no backups", guest.address));
    }
    for what in &archives.unseen {
        desk.terminal.event(Some(guest.key()), &Event::Unseen { what });
        desk.terminal.note(&format!("cannot be seen: {what}"));
    }
    match archives.unseen.is_empty() {
        true => Ok(()),
        false => Err(SessionError::failed("not every storage could be looked at")
            .hint("what is listed is there; there may be more")),
    }
}

async fn verify(args: &VerifyArgs, desk: &Desk<'_>, guest: &GuestSession) -> Result<(), SessionError> {
    let archive = guest.archive(&args.volume).await?;
    let verified = guest.verify(&archive).await?;
    let (address, volume) = (&guest.address, archive.volume.as_str());
    desk.terminal.event(
        Some(guest.key()),
        &Event::GuestBackupVerified {
            address,
            volume,
            disks: &verified.disks,
            left_out: &verified.left_out,
            verification: archive.verification.as_deref(),
        },
    );
    desk.terminal.line(&format!(
        "`{volume}` of {} is readable and of `{address}`; in it: {}",
        time(archive.created),
        named(&verified.disks)
    ));
    if !verified.left_out.is_empty() {
        desk.terminal.line(&format!("  not in it: {}", named(&verified.left_out)));
    }
    Ok(())
}

fn named(slots: &[String]) -> String {
    match slots {
        [] => "no disk".to_owned(),
        slots => slots.iter().map(|slot| format!("`{slot}`")).collect::<Vec<_>>().join(", "),
    }
}

async fn restore(args: &RestoreArgs, desk: &Desk<'_>, guest: &mut GuestSession) -> Result<(), SessionError> {
    guest.refuse_disturbed("restore")?;
    let archive = guest.archive(&args.volume).await?;
    guest.verify(&archive).await?;
    let loss = format!(
        "`{}` is put back to {}: what its disks hold since then is lost, its snapshots too; it is shut down for it if it runs, and started again",
        guest.address,
        time(archive.created)
    );
    desk.agree(args.yes, &loss, "Restore it?")?;
    guest.restore(&archive, desk.stop).await?;
    let (address, volume) = (&guest.address, archive.volume.as_str());
    desk.terminal.event(Some(guest.key()), &Event::GuestRestored { address, volume });
    desk.terminal.line(&format!(
        "`{address}` is restored from {volume}; `strata plan {address}` shows what the source has changed since then"
    ));
    Ok(())
}
