//! A backup of a guest of ours, made at once.

use std::time::Duration;

use http::Method;
use strata_engine::{ErrorClass, ProviderError};
use strata_resource::CommentMark;

use super::update::{Target, find};
use super::work::{Call, Work};
use crate::acts::BackupRequest;
use crate::api::Params;
use crate::archives::{self, Archive, BackupStorage, Whose};
use crate::client::Client;
use crate::guest::Guest;

/// A backup of terabytes takes its time.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

pub(crate) async fn run(work: &Work<'_>, request: &BackupRequest) -> Result<Archive, ProviderError> {
    let Target { guest, config, .. } = find(work).await?;
    if let Some(lock) = &config.lock {
        let message = format!("{guest} is locked ({lock})");
        return Err(
            ProviderError::new(ErrorClass::Conflict, message).hint("try again when what holds it has ended")
        );
    }
    let storage = storage(work.client, &guest.node, request.storage.as_deref()).await?;
    let doing = format!("back up {guest} to `{}`", storage.name);
    let before = list(work, &guest, &storage).await?;
    let mark = CommentMark::new(&work.operation.lineage, &work.operation.address);
    let mut params = Params::new()
        .with("vmid", guest.vmid)
        .with("storage", &storage.name)
        .with("mode", &request.mode)
        .with("compress", "zstd")
        .with("notes-template", archives::notes_template(&mark, &request.notes))
        // Nothing is pruned for it: that is the work of jobs.
        .with("remove", 0);
    if request.protected {
        params.set("protected", 1);
    }
    let call = work.call(Method::POST, format!("/nodes/{}/vzdump", guest.node), params, doing.clone());
    work.follow_through(&guest, Call { patience: PATIENCE, ..call }).await?;
    // However it ended: what the storage has now is what there is.
    let listed = list(work, &guest, &storage).await?;
    let is_new = |archive: &Archive| before.iter().all(|old| old.volume != archive.volume);
    let mut new: Vec<Archive> = listed.into_iter().filter(is_new).collect();
    // A job may have made another one meanwhile: ours says so.
    let says_so = |archive: &Archive| archive.mark.as_ref() == Some(&mark);
    if new.iter().any(says_so) {
        new.retain(says_so);
    } else if let Some(archive) = new.first() {
        let volume = &archive.volume;
        work.context.warning(&format!(
            "the notes of `{volume}` do not say whose it is: the server did not write them"
        ));
    }
    new.sort_by_key(|archive| archive.created);
    let Some(mut archive) = new.pop() else {
        let message = format!("cannot {doing}: its task has ended, and no new backup is listed there");
        return Err(ProviderError::new(ErrorClass::TaskFailed, message)
            .hint(format!("look at the tasks of {guest} on `{}`, then run it again", guest.node)));
    };
    archives::verify(work.client, work.operation, guest.vmid, &archive).await?;
    archive.whose = Whose::Ours;
    Ok(archive)
}

async fn list(
    work: &Work<'_>,
    guest: &Guest,
    storage: &BackupStorage,
) -> Result<Vec<Archive>, ProviderError> {
    let listed = archives::listed(work.client, &guest.node, storage, guest.vmid).await;
    listed.map_err(|error| error.explain(&format!("list the backups on `{}`", storage.name)))
}

/// The storage that is named, or the only one that takes backups.
pub(crate) async fn storage(
    client: &Client,
    node: &str,
    named: Option<&str>,
) -> Result<BackupStorage, ProviderError> {
    let mut storages = archives::storages(client, node)
        .await
        .map_err(|error| error.explain(&format!("list the storages of `{node}`")))?;
    let names: Vec<String> = storages.iter().map(|storage| format!("`{}`", storage.name)).collect();
    let refuse = |message: String, hint: String| {
        let mut error = ProviderError::new(ErrorClass::BadInput, message).hint(hint);
        error.nothing_done = true;
        Err(error)
    };
    let candidates = match names.as_slice() {
        [] => "give a storage of it the content `backup`, or the login `Datastore.AllocateSpace` on one"
            .to_owned(),
        names => format!("`{node}` can write backups to {}", names.join(", ")),
    };
    match named {
        Some(named) => match storages.iter().position(|storage| storage.name == named) {
            Some(at) => Ok(storages.swap_remove(at)),
            None => refuse(format!("`{node}` has no storage `{named}` that takes backups"), candidates),
        },
        None if storages.len() == 1 => Ok(storages.remove(0)),
        None if storages.is_empty() => refuse(format!("no storage of `{node}` takes backups"), candidates),
        None => refuse("more than one storage takes backups".to_owned(), format!("name one: {candidates}")),
    }
}
