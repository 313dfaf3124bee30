//! Whether a server respects the conditions of a write. One that ignores them would let two runs hold one lock.

use bytes::Bytes;

use super::objects::Objects;
use crate::{Failure, FailureKind};

/// Is there once the server has been found to respect conditions.
const MARK: &str = "conditional-writes";

pub(super) async fn respects_conditions(objects: &Objects) -> Result<(), Failure> {
    if objects.get(MARK).await?.is_some() {
        return Ok(());
    }
    let mut name = [0; 8];
    getrandom::fill(&mut name).map_err(|error| Failure::new(format!("no random numbers: {error}")))?;
    let path = format!("probe-{}", hex::encode(name));
    let verdict = try_conditions(objects, &path).await;
    // Nothing is known under this name, so it can be deleted without a condition.
    let _ = objects.delete(&path).await;
    verdict?;
    objects.put(MARK, Bytes::from_static(b"this server respects If-Match and If-None-Match\n")).await
}

async fn try_conditions(objects: &Objects, path: &str) -> Result<(), Failure> {
    let refused = |reason: &str| {
        Failure::new(format!("states cannot be kept safely on this server: {reason}"))
            .kind(FailureKind::Conditions)
    };
    let Some(first) = objects.create(path, Bytes::from_static(b"1")).await? else {
        return Err(refused("it says that an object exists which nobody has written"));
    };
    if objects.condition_holds(path, Bytes::from_static(b"2"), None).await? {
        return Err(refused("it ignores `If-None-Match: *`: two runs could hold the same lock"));
    }
    let Some(second) = objects.replace(path, Bytes::from_static(b"3"), &first).await? else {
        return Err(refused("it refuses `If-Match` with the ETag that it gave"));
    };
    if first == second {
        return Err(refused("it gives the same ETag to different objects"));
    }
    if objects.condition_holds(path, Bytes::from_static(b"4"), Some(&first)).await? {
        return Err(refused("it ignores `If-Match`: a write could undo another"));
    }
    Ok(())
}
