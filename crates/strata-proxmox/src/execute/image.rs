//! Volumes that Proxmox downloads itself, and the deletion of volumes.

use futures::FutureExt;
use http::Method;
use strata_engine::{ErrorClass, Outcome, ProviderError};
use strata_resource::Value;

use super::Patience;
use super::work::{Call, StepError, Work};
use crate::api::{Params, encode_path_part};
use crate::interrupted_tasks::quiet_volume;
use crate::observe::{find_volume, prove_download, volume_facts};

const ATTEMPTS: usize = 4;

pub(crate) async fn create(work: &Work<'_>) -> Result<Outcome, ProviderError> {
    let volume = work.text("volume")?;
    let filename = volume.rsplit('/').next().unwrap_or_default();
    let url = work.text("url")?;
    let patience = Patience::Download.of(&work.operation.spec);
    let (mut last, mut downloaded) = (None, false);
    for _ in 0..ATTEMPTS {
        // Listed first: a volume with our name is complete, since it gets that name only at the end.
        if let Some(size) = present(work).await? {
            // One that came while ours was refused is somebody else's, and ours made nothing.
            if !downloaded {
                check_download(work, size).await.inspect_err(|_| work.context.writes_undone())?;
            }
            return Ok(Outcome { facts: volume_facts(size) });
        }
        if let Some(error) = last.take_if(|error| !matches!(error, StepError::Lost { .. })) {
            return Err(explain(error));
        }
        let (node, storage) = (work.text("node")?, work.text("storage")?);
        let mut params =
            Params::new().with("content", content(work, volume)).with("filename", filename).with("url", url);
        if let Some(checksum) = work.operation.spec.get("checksum").and_then(Value::as_text) {
            let (algorithm, sum) = checksum.split_once(':').unwrap_or(("sha256", checksum));
            params.set("checksum-algorithm", algorithm);
            params.set("checksum", sum);
        }
        let path = format!("/nodes/{node}/storage/{storage}/download-url");
        let doing = format!("download `{filename}` to `{storage}` on `{node}`");
        let call = work.call(Method::POST, path, params, doing);
        last = match work.run(Call { patience, ..call }).await {
            Ok(()) => {
                downloaded = true;
                None
            }
            Err(error @ StepError::Stop(_)) => return Err(error.into()),
            Err(error) => {
                downloaded |= matches!(error, StepError::Lost { .. });
                quiet_volume(work.client, node, filename).await?;
                Some(error)
            }
        };
    }
    Err(last.map_or_else(
        || ProviderError::new(ErrorClass::TaskFailed, format!("`{volume}` was downloaded and is not there")),
        explain,
    ))
}

fn explain(error: StepError) -> ProviderError {
    ProviderError::from(error).field("url")
}

/// Of a file that came into being since the plan was made: the name alone does not make it ours.
async fn check_download(work: &Work<'_>, size: i64) -> Result<(), ProviderError> {
    let spec = &work.operation.spec;
    if spec.contains_key("size") {
        return Ok(());
    }
    prove_download(work.client, spec, work.text("node")?, size).await.map_err(|why| {
        let message = format!(
            "`{}` came into being since the plan was made: {why}",
            work.text("volume").unwrap_or_default()
        );
        let mut error = ProviderError::new(ErrorClass::Conflict, message)
            .hint("it was not overwritten: somebody put something else under this name; delete it");
        error.nothing_done = true;
        error
    })
}

fn content<'a>(work: &Work<'a>, volume: &'a str) -> &'a str {
    let said = work.operation.spec.get("content").and_then(Value::as_text);
    let by_name =
        volume.split_once(':').and_then(|(_, name)| name.split_once('/')).map(|(content, _)| content);
    said.or(by_name).unwrap_or("iso")
}

/// The size of our volume, if it is there; an error if something else has its name.
pub(super) async fn present(work: &Work<'_>) -> Result<Option<i64>, ProviderError> {
    let (volume, node, storage) = (work.text("volume")?, work.text("node")?, work.text("storage")?);
    let doing = format!("list the volumes of `{storage}` on `{node}`");
    let size =
        find_volume(work.client, node, storage, volume).await.map_err(|error| error.explain(&doing))?;
    let expected = work.operation.spec.get("size").and_then(Value::as_int);
    match (size, expected) {
        (Some(size), Some(expected)) if size != expected => Err(ProviderError::new(
            ErrorClass::Conflict,
            format!("`{volume}` is there with {size} bytes instead of {expected}"),
        )
        .hint("it was not overwritten: somebody uploaded something under this name, or a transfer broke; delete it")),
        (size, _) => Ok(size),
    }
}

fn is_another(volume: &str, size: i64) -> ProviderError {
    let message = format!("`{volume}` is another file by now: it has {size} bytes");
    ProviderError::new(ErrorClass::Conflict, message)
        .hint("it was not deleted: somebody put something else under this name; plan again")
}

pub(crate) async fn delete(work: &Work<'_>) -> Result<Outcome, ProviderError> {
    let (volume, node, storage) = (work.text("volume")?, work.text("node")?, work.text("storage")?);
    let operation = work.operation;
    let recorded = operation.recorded.as_ref();
    let known =
        recorded.is_some_and(|known| known.spec.get("volume").and_then(Value::as_text) == Some(volume));
    if !known && !volume.contains(operation.lineage.short()) {
        let message = format!("`{volume}` has no name of this repository, and the state does not know it");
        return Err(ProviderError::new(ErrorClass::Conflict, message).hint("it was not touched"));
    }
    let ours = recorded.filter(|_| known).and_then(|known| known.facts.get("size")).and_then(Value::as_int);
    let (mut lost, mut ended) = (None, false);
    for _ in 0..ATTEMPTS {
        let doing = format!("list the volumes of `{storage}` on `{node}`");
        let there = find_volume(work.client, node, storage, volume).await;
        match there {
            Ok(None) => return Ok(Outcome::default()),
            Err(error) if error.says_no_storage(storage) => return Ok(Outcome::default()),
            Err(error) => return Err(error.explain(&doing)),
            Ok(Some(size)) if ours.is_some_and(|ours| ours != size) => return Err(is_another(volume, size)),
            Ok(Some(_)) if ended => {
                let message =
                    format!("the task that deletes `{volume}` ended without an error, and it is still there");
                return Err(ProviderError::new(ErrorClass::TaskFailed, message)
                    .hint("see the log of the task on its hypervisor, then apply again"));
            }
            Ok(Some(_)) => {}
        }
        let path = format!("/nodes/{node}/storage/{storage}/content/{}", encode_path_part(volume));
        let call = work.call(Method::DELETE, path, Params::new(), format!("delete `{volume}`"));
        let unchanged = || {
            let look = async {
                let size = find_volume(work.client, node, storage, volume).await;
                match size.map_err(|error| error.explain(&doing))? {
                    Some(size) if ours.is_some_and(|ours| ours != size) => Err(is_another(volume, size)),
                    _ => Ok(()),
                }
            };
            look.boxed()
        };
        match work.run_while(call, &unchanged).await {
            // The next look proves it.
            Ok(()) => ended = true,
            Err(error @ StepError::Lost { .. }) => {
                quiet_volume(work.client, node, volume.rsplit('/').next().unwrap_or_default()).await?;
                lost = Some(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(lost.map_or_else(|| work.internal("it was not tried"), ProviderError::from))
}
