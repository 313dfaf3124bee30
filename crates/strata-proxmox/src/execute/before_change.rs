//! The snapshot before a restart or a change of disks, and the backup before a replacement.

use http::Method;
use strata_engine::{ErrorClass, ProviderError};
use strata_resource::CommentMark;

use super::backup;
use super::configure;
use super::power;
use super::snapshot;
use super::update::{Target, check_unchanged_since, find};
use super::work::Work;
use crate::acts::BackupRequest;
use crate::api::{Params, encode_path_part};
use crate::archives::{self, Archive};
use crate::before_change::{
    BackupBefore, SnapshotBefore, is_before_replacement, next_name, notes, taken_already, too_many,
};
use crate::guest::Guest;

/// Takes the snapshot that the source asks for, unless an interrupted run took it before this very step, and deletes those that are too many.
pub(super) async fn take_snapshot(work: &Work<'_>, target: &mut Target) -> Result<(), ProviderError> {
    let operation = work.operation;
    let Some(before) = SnapshotBefore::of(&operation.spec) else { return Ok(()) };
    let Some(reason) = before.reason(operation) else { return Ok(()) };
    let seen = target.config.clone();
    let all = snapshot::of(work, &target.guest).await?;
    let name = match taken_already(operation, &all, &seen) {
        Some(name) => name,
        None => {
            let name = next_name(operation, &all);
            snapshot::create(work, &name, &format!("before {reason}"), false).await?;
            name
        }
    };
    let all = snapshot::of(work, &target.guest).await?;
    for old in too_many(&all, Some(&name), before.keep) {
        snapshot::delete(work, &old).await?;
    }
    configure::reread(work, target).await?;
    check_unchanged_since(target, &seen, "changed")
}

/// Backs a guest up that is down and about to be deleted for its replacement. If that fails, it is started again where it ran.
pub(super) async fn back_up(work: &Work<'_>, guest: &Guest, ran: bool) -> Result<(), ProviderError> {
    let Some(before) = work.operation.payload.as_ref().and_then(|payload| payload.get::<BackupBefore>())
    else {
        return Ok(());
    };
    let done = make_backup(work, guest, before, ran).await;
    if let Err(error) = &done
        && ran
        && error.class != ErrorClass::Stopped
        && let Err(start) = power::start(work, guest).await
    {
        work.context.warning(&format!("{guest} could not be started again: {start}"));
    }
    done
}

async fn make_backup(
    work: &Work<'_>,
    guest: &Guest,
    before: &BackupBefore,
    ran: bool,
) -> Result<(), ProviderError> {
    let notes = notes(&who(work).await?);
    // An interrupted run may have made it. A guest that ran since then has written more.
    let there = of_replacements(work, guest, before).await?.iter().any(|one| one.notes == notes);
    if ran || !there {
        let request = BackupRequest {
            storage: Some(before.storage.clone()),
            mode: "stop".to_owned(),
            notes,
            protected: false,
        };
        backup::run(work, &request).await?;
    }
    let mut all = of_replacements(work, guest, before).await?;
    all.retain(|one| !one.protected);
    all.sort_by(|one, other| (one.created, &one.volume).cmp(&(other.created, &other.volume)));
    let extra = all.len().saturating_sub(before.keep);
    for old in &all[..extra] {
        // Everybody can write notes: what is in it says whose it is.
        let inside = archives::config(work.client, &old.node, &old.volume).await;
        let inside = inside.map_err(|error| error.explain(&format!("read `{}`", old.volume)))?;
        if archives::dispute(work.operation, guest.vmid, &guest.node, &inside).is_some() {
            continue;
        }
        let path = format!(
            "/nodes/{}/storage/{}/content/{}",
            guest.node,
            before.storage,
            encode_path_part(&old.volume)
        );
        let doing = format!("delete the backup `{}`", old.volume);
        work.run(work.call(Method::DELETE, path, Params::new(), doing)).await?;
    }
    Ok(())
}

/// The digest of its configuration tells one guest of an address from the next, and what it was before from what somebody made of it.
async fn who(work: &Work<'_>) -> Result<String, ProviderError> {
    let Target { guest, config, .. } = find(work).await?;
    let proof = guest.proof(&config).map(|(_, proof)| proof).unwrap_or_default();
    let digest = config.digest.get(..12).unwrap_or(&config.digest);
    Ok(format!("{proof} at {digest}"))
}

/// The backups of this object that were made before replacements: by the mark in their notes, which Strata alone writes there.
async fn of_replacements(
    work: &Work<'_>,
    guest: &Guest,
    before: &BackupBefore,
) -> Result<Vec<Archive>, ProviderError> {
    let storage = backup::storage(work.client, &guest.node, Some(&before.storage)).await?;
    let listed = archives::listed(work.client, &guest.node, &storage, guest.vmid).await;
    let mut listed =
        listed.map_err(|error| error.explain(&format!("list the backups on `{}`", storage.name)))?;
    let mark = CommentMark::new(&work.operation.lineage, &work.operation.address);
    listed.retain(|one| one.mark.as_ref() == Some(&mark) && is_before_replacement(&one.notes));
    Ok(listed)
}
