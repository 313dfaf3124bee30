//! Whether a server respects the conditions of a write. One that ignores them would let two runs hold one lock.

use bytes::Bytes;

use super::objects::Objects;
use crate::StoreError;

/// Is there once the server has been found to respect conditions.
const MARK: &str = "conditional-writes";

pub(super) async fn respects_conditions(objects: &Objects) -> Result<(), StoreError> {
    if objects.get(MARK).await?.is_some() {
        return Ok(());
    }
    let mut name = [0; 8];
    getrandom::fill(&mut name).map_err(|error| StoreError::Io {
        what: "no random numbers".to_owned(),
        source: std::io::Error::other(error.to_string()),
    })?;
    let path = format!("probe-{}", hex::encode(name));
    let verdict = try_conditions(objects, &path).await;
    // Nothing is known under this name, so it can be deleted without a condition.
    let _ = objects.delete(&path).await;
    verdict?;
    objects.put(MARK, Bytes::from_static(b"this server respects If-Match and If-None-Match\n")).await
}

async fn try_conditions(objects: &Objects, path: &str) -> Result<(), StoreError> {
    let refused = |reason: &str| StoreError::Remote {
        what: "states cannot be kept safely on this server".to_owned(),
        reason: reason.to_owned(),
        hint: Some(
            "it needs conditional writes, as Amazon S3, MinIO, R2 and Ceph have them; or use another backend"
                .to_owned(),
        ),
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
