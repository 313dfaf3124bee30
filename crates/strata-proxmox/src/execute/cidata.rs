//! NoCloud ISOs: made here, uploaded, never over something that is there.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use strata_engine::{ErrorClass, Outcome, ProviderError};
use strata_net::{Verdict, retry};
use strata_resource::Value;

use super::image::present;
use super::work::{StepError, Work};
use crate::api::Params;
use crate::cidata::{self, build};
use crate::client::Trouble;
use crate::interrupted_tasks::quiet_volume;
use crate::observe::volume_facts;

const ATTEMPTS: usize = 4;

pub(crate) async fn create(work: &Work<'_>) -> Result<Outcome, ProviderError> {
    let volume = work.text("volume")?;
    let filename = volume.rsplit('/').next().unwrap_or_default();
    let (node, storage) = (work.text("node")?, work.text("storage")?);
    let iso = build(&files(work)?);
    let expected = i64::try_from(iso.len()).unwrap_or(i64::MAX);
    let mut lost: Option<StepError> = None;
    for _ in 0..ATTEMPTS {
        // `upload` overwrites without a word: look first.
        match present(work).await? {
            Some(size) if size == expected => return Ok(Outcome { facts: volume_facts(size) }),
            Some(size) if lost.is_none() => return Err(is_taken(volume, size, iso.len())),
            // Our own upload that broke off.
            _ => {}
        }
        let doing = format!("upload `{filename}` to `{storage}` on `{node}`");
        match upload(work, node, storage, filename, &iso, &doing).await {
            Ok(()) => lost = None,
            Err(error @ StepError::Lost { .. }) => {
                quiet_volume(work.client, node, filename).await?;
                lost = Some(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    match (present(work).await?, lost) {
        (Some(size), _) if size == expected => Ok(Outcome { facts: volume_facts(size) }),
        (_, Some(error)) => Err(error.into()),
        _ => Err(ProviderError::new(
            ErrorClass::TaskFailed,
            format!("`{volume}` was uploaded and is not there"),
        )),
    }
}

fn is_taken(volume: &str, size: i64, expected: usize) -> ProviderError {
    let message = format!("`{volume}` exists with {size} bytes; the planned one has {expected}");
    ProviderError::new(ErrorClass::Conflict, message)
        .hint("it was not overwritten: somebody uploaded something under this name; delete it")
}

async fn upload(
    work: &Work<'_>,
    node: &str,
    storage: &str,
    filename: &str,
    iso: &[u8],
    doing: &str,
) -> Result<(), StepError> {
    let path = format!("/nodes/{node}/storage/{storage}/upload");
    let fields = Params::new().with("content", "iso");
    let tried = AtomicBool::new(false);
    let attempt = || async {
        // It may have taken a while: nothing that came meanwhile is overwritten.
        if tried.swap(true, Ordering::Relaxed)
            && let Some(size) = present(work).await.map_err(StepError::Stop)?
        {
            return Err(StepError::Stop(is_taken(work.text("volume").unwrap_or_default(), size, iso.len())));
        }
        work.send(doing, async |permit| {
            work.client.upload(permit, &path, &fields, filename, iso.to_vec()).await
        })
        .await
    };
    let not_delivered = |error: &StepError| match error {
        StepError::Refused { error, .. } if error.trouble() == Trouble::NotDelivered => Verdict::Again,
        _ => Verdict::Final,
    };
    let client = work.client;
    let task = retry(client.policy(), client.clock(), client.random(), attempt, not_delivered).await?;
    match task {
        Some(task) => work.see_through(&task, doing, std::time::Duration::from_secs(600)).await,
        None => Ok(()),
    }
}

fn files(work: &Work<'_>) -> Result<BTreeMap<String, Vec<u8>>, ProviderError> {
    let files = work.operation.spec.get("files").and_then(Value::as_map);
    let files = files.ok_or_else(|| work.internal("its spec has no files"))?;
    cidata::files(files).map_err(|name| work.internal(&format!("the content of `{name}` is not at hand")))
}
