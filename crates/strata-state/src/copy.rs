//! Copies of states from one store into another, with their older versions.

use std::collections::BTreeSet;

use crate::{LockOwner, LockedState, StateDocument, Store, StoreError};

/// What became of one state.
pub enum Copied {
    Yes(u64, CopiedHistory),
    /// The same document: an earlier migration came this far.
    Already,
    Nothing,
}

/// What became of the versions before the newest one.
#[derive(Default)]
pub struct CopiedHistory {
    pub copied: usize,
    /// Too many for the new store, or not wanted.
    pub left: usize,
    /// They cannot be read any more, such as with a key that is gone.
    pub unreadable: Vec<u64>,
}

/// Copies one state, under the locks of both stores. The old one stays as it was.
pub async fn copy_state(
    old: &dyn Store,
    new: &dyn Store,
    key: &str,
    with_history: bool,
    owner: &(dyn Fn() -> LockOwner + Sync),
) -> Result<Copied, StoreError> {
    let from = old.lock(key, owner()).await?;
    let copied = async {
        let Some(document) = old.read(key).await? else { return Ok(Copied::Nothing) };
        if !old.read_journal(key).await?.is_empty() {
            return Err(StoreError::Remote {
                what: format!("the state `{key}` cannot be moved"),
                reason: "an interrupted run left work open in it".to_owned(),
                hint: Some("`strata apply` finishes it".to_owned()),
                source: None,
            });
        }
        let to = new.lock(key, owner()).await?;
        let written = async {
            match new.read(key).await? {
                Some(there) if there == document => return Ok(Copied::Already),
                Some(there) => {
                    return Err(StoreError::Exists { key: key.to_owned(), serial: there.serial });
                }
                None => {}
            }
            // The document comes last: until then there is no state that somebody could go on with.
            let history = copy_versions(old, new, to.as_ref(), &document, with_history).await?;
            to.adopt(&document).await?;
            if new.read(key).await?.as_ref() == Some(&document) {
                return Ok(Copied::Yes(document.serial, history));
            }
            Err(StoreError::Damaged {
                key: key.to_owned(),
                reason: "what the new store gives back is not what was written".to_owned(),
                newest_good: None,
            })
        }
        .await;
        to.release().await?;
        written
    }
    .await;
    from.release().await?;
    copied
}

/// Oldest first, so that a store that keeps few keeps the newest.
async fn copy_versions(
    old: &dyn Store,
    new: &dyn Store,
    to: &dyn LockedState,
    document: &StateDocument,
    wanted: bool,
) -> Result<CopiedHistory, StoreError> {
    let key = &document.key;
    let versions = old.history(key).await?;
    let older: BTreeSet<u64> =
        versions.iter().map(|version| version.serial).filter(|serial| *serial < document.serial).collect();
    let room = match new.kept() {
        _ if !wanted => 0,
        Some(kept) => kept.saturating_sub(1).min(older.len()),
        None => older.len(),
    };
    let mut history = CopiedHistory { left: older.len() - room, ..CopiedHistory::default() };
    let there: BTreeSet<u64> = new.history(key).await?.iter().map(|version| version.serial).collect();
    for serial in older.into_iter().skip(history.left) {
        let version = match old.read_version(key, serial).await {
            Ok(version) => version,
            Err(StoreError::Damaged { .. } | StoreError::Sealed { .. } | StoreError::NoVersion { .. }) => {
                history.unreadable.push(serial);
                continue;
            }
            Err(error) => return Err(error),
        };
        // An earlier migration may have come this far.
        let is_there = there.contains(&serial)
            && new.read_version(key, serial).await.is_ok_and(|found| found == version);
        if !is_there {
            to.adopt_version(&version).await?;
        }
        history.copied += 1;
    }
    Ok(history)
}
