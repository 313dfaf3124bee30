//! Snapshots of a guest of ours: taken, listed, rolled back to, deleted.
//!
//! Their descriptions carry the ownership mark, as notes of guests do. What has none was made by somebody else, and is not deleted.

use std::time::Duration;

use http::Method;
use serde::Deserialize;
use strata_engine::{ErrorClass, ProviderError};
use strata_resource::{Address, Lineage, Mark, Spec};

use super::outcome::Ended;
use super::power;
use super::update::{Target, find};
use super::work::{Call, Work};
use crate::acts::Snapshot;
use crate::api::{Params, flag, whole};
use crate::client::Client;
use crate::codec::LiveConfig;
use crate::guest::Guest;
use crate::observe::facts_of;

/// Removing a snapshot merges what was written since then.
const PATIENCE: Duration = Duration::from_secs(4 * 3600);

#[derive(Debug, Clone, Deserialize)]
struct Row {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default, deserialize_with = "whole")]
    snaptime: Option<i64>,
    #[serde(default, deserialize_with = "flag")]
    vmstate: bool,
    #[serde(default)]
    parent: Option<String>,
    /// `prepare` or `delete` while it is neither there nor gone.
    #[serde(default)]
    snapstate: Option<String>,
}

/// The snapshots of the guest, oldest first.
pub(crate) async fn list(work: &Work<'_>) -> Result<Vec<Snapshot>, ProviderError> {
    let Target { guest, .. } = find(work).await?;
    of(work, &guest).await
}

pub(super) async fn of(work: &Work<'_>, guest: &Guest) -> Result<Vec<Snapshot>, ProviderError> {
    all(work.client, &work.operation.lineage, &work.operation.address, guest).await
}

/// The snapshots of a guest that is known to be ours, oldest first.
pub(crate) async fn all(
    client: &Client,
    lineage: &Lineage,
    address: &Address,
    guest: &Guest,
) -> Result<Vec<Snapshot>, ProviderError> {
    let rows = rows(client, guest).await?;
    let mark = Mark::new(lineage, address, guest.vmid);
    let snapshot = |row: Row| {
        let (found, notes) = Mark::split_from_notes(&row.description);
        Snapshot {
            name: row.name,
            created: row.snaptime.unwrap_or_default(),
            notes,
            memory: row.vmstate,
            parent: row.parent,
            ours: found.as_ref() == Some(&mark),
            unfinished: row.snapstate,
        }
    };
    // The last row is the guest as it is now.
    let rows = rows.into_iter().filter(|row| row.name != "current");
    let mut found: Vec<Snapshot> = rows.map(snapshot).collect();
    found.sort_by(|one, other| (one.created, &one.name).cmp(&(other.created, &other.name)));
    Ok(found)
}

async fn rows(client: &Client, guest: &Guest) -> Result<Vec<Row>, ProviderError> {
    let rows = client.get(&guest.path("/snapshot"), Params::new()).await;
    rows.map_err(|error| error.explain(&format!("list the snapshots of {guest}")))
}

fn mark(work: &Work<'_>, guest: &Guest) -> Mark {
    Mark::new(&work.operation.lineage, &work.operation.address, guest.vmid)
}

pub(crate) async fn create(
    work: &Work<'_>,
    name: &str,
    notes: &str,
    memory: bool,
) -> Result<Snapshot, ProviderError> {
    let Target { guest, config, .. } = find(work).await?;
    refuse_locked(&guest, &config)?;
    if let Some(old) = of(work, &guest).await?.iter().find(|one| one.name == name) {
        let whose = if old.ours { "" } else { ", made by somebody else" };
        return Err(refused(
            ErrorClass::Conflict,
            format!("{guest} has a snapshot `{name}` already{whose}"),
            "give it another name",
        ));
    }
    let doing = format!("take the snapshot `{name}` of {guest}");
    let mut params =
        Params::new().with("snapname", name).with("description", mark(work, &guest).join_to_notes(notes));
    if memory {
        params.set("vmstate", 1);
    }
    let call = work.call(Method::POST, guest.path("/snapshot"), params, doing.clone());
    work.follow_through(&guest, Call { patience: PATIENCE, ..call }).await?;
    let now = find(work).await?;
    let taken = of(work, &now.guest).await?.into_iter().find(|one| one.name == name && one.ours);
    match taken {
        Some(taken) if taken.unfinished.is_none() && now.config.lock.is_none() => Ok(taken),
        Some(_) => Err(without_effect(&doing, &guest, "it is not finished")),
        None => Err(without_effect(&doing, &guest, "it is not listed")),
    }
}

/// Deletes one of ours. Gone already, it does nothing.
pub(crate) async fn delete(work: &Work<'_>, name: &str) -> Result<(), ProviderError> {
    let Target { guest, config, .. } = find(work).await?;
    let all = of(work, &guest).await?;
    let Some(one) = all.iter().find(|one| one.name == name) else {
        return Err(no_such(&guest, name, &all));
    };
    if !one.ours {
        return Err(refused(
            ErrorClass::Guard,
            format!("the snapshot `{name}` of {guest} was not made by Strata for this guest"),
            "delete it by hand if nobody needs it",
        ));
    }
    refuse_locked(&guest, &config)?;
    let doing = format!("delete the snapshot `{name}` of {guest}");
    let call =
        work.call(Method::DELETE, guest.path(&format!("/snapshot/{name}")), Params::new(), doing.clone());
    work.follow_through(&guest, Call { patience: PATIENCE, ..call }).await?;
    let now = find(work).await?;
    match of(work, &now.guest).await?.iter().any(|one| one.name == name) {
        true => Err(without_effect(&doing, &guest, "it is still listed")),
        false => Ok(()),
    }
}

/// Puts disks and configuration back to a snapshot, whoever took it. Gives the facts of what is there then.
pub(crate) async fn roll_back(work: &Work<'_>, name: &str) -> Result<Spec, ProviderError> {
    let before = find(work).await?;
    let guest = before.guest.clone();
    let all = of(work, &guest).await?;
    let Some(snapshot) = all.iter().find(|one| one.name == name) else {
        return Err(no_such(&guest, name, &all));
    };
    if let Some(state) = &snapshot.unfinished {
        let message = format!("the snapshot `{name}` of {guest} is not whole (`{state}`)");
        return Err(refused(ErrorClass::Conflict, message, "choose another one"));
    }
    refuse_locked(&guest, &before.config)?;
    let doing = format!("roll {guest} back to `{name}`");
    let path = guest.path(&format!("/snapshot/{name}/rollback"));
    let call = work.call(Method::POST, path, Params::new(), doing.clone());
    let ended = work.follow_through(&guest, Call { patience: PATIENCE, ..call }).await?;
    let now = find(work).await?;
    if let Some(lock) = &now.config.lock {
        return Err(without_effect(&doing, &guest, &format!("it is locked ({lock})")));
    }
    if now.config.get("parent") != Some(name) {
        return Err(without_effect(&doing, &guest, "it goes on from another snapshot"));
    }
    // It went on from that snapshot before, too: then nothing but the end of the task tells.
    let same = before.config.get("parent") == Some(name) && before.config.digest == now.config.digest;
    if ended == Ended::Unknown && same && before.running == now.running {
        return Err(without_effect(
            &doing,
            &guest,
            "nobody knows how the task ended, and it looks as it did before",
        ));
    }
    if before.running && !now.running {
        power::start(work, &now.guest).await?;
    }
    Ok(facts_of(&now.guest, &now.config))
}

fn refuse_locked(guest: &Guest, config: &LiveConfig) -> Result<(), ProviderError> {
    match &config.lock {
        Some(lock) => Err(refused(
            ErrorClass::Conflict,
            format!("{guest} is locked ({lock})"),
            "try again when what holds it has ended",
        )),
        None => Ok(()),
    }
}

fn no_such(guest: &Guest, name: &str, all: &[Snapshot]) -> ProviderError {
    let names: Vec<String> = all.iter().map(|one| format!("`{}`", one.name)).collect();
    let has =
        if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
    refused(ErrorClass::Missing, format!("{guest} has no snapshot `{name}`"), &has)
}

fn refused(class: ErrorClass, message: String, hint: &str) -> ProviderError {
    let mut error = ProviderError::new(class, message).hint(hint);
    error.nothing_done = true;
    error
}

fn without_effect(doing: &str, guest: &Guest, what: &str) -> ProviderError {
    ProviderError::new(ErrorClass::TaskFailed, format!("cannot {doing}: its task has ended, and {what}"))
        .hint(format!("look at the tasks of {guest} on `{}`, then try again", guest.node))
}
