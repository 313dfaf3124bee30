//! Writing the keys of a configuration, and what has calls of its own: moving and growing volumes.

use http::Method;
use strata_engine::{ErrorClass, ProviderError};
use strata_resource::{FieldChange, FieldPath, Value, diff_specs};

use super::Patience;
use super::steps::ConfigWrite;
use super::update::{Target, bad_field, live_spec, overlap};
use super::work::{Call, StepError, Work};
use crate::api::Params;
use crate::client::Rights;
use crate::codec::{GuestKind, LiveConfig, storage_of, to_size_text, volume_size};
use crate::review;

/// How often a write is sent whose answers get lost.
const ATTEMPTS: usize = 4;

/// Sends the keys that changed and reads back; fixes what the server changed of its own accord along with them.
pub(super) async fn configure(
    work: &Work<'_>,
    target: &mut Target,
    changes: &[FieldChange],
) -> Result<(), ProviderError> {
    let before = distance(work, target);
    write_keys(work, target, changes).await?;
    // A new CD-ROM joins the boot order by itself, for example. What stood as wanted before our write and does not after it
    // is such a side effect.
    let known = |path: &FieldPath| before.iter().chain(changes).any(|change| overlap(&change.path, path));
    let side: Vec<FieldChange> =
        distance(work, target).into_iter().filter(|change| !known(&change.path)).collect();
    write_keys(work, target, &side).await
}

/// What stands between the spec and the configuration.
fn distance(work: &Work<'_>, target: &Target) -> Vec<FieldChange> {
    let spec = &work.operation.spec;
    diff_specs(work.operation.address.kind().rules(), spec, Some(spec), &live_spec(work, target)).changes
}

/// Sends the keys that differ, with the digest of what they were worked out from, and reads back.
async fn write_keys(
    work: &Work<'_>,
    target: &mut Target,
    changes: &[FieldChange],
) -> Result<(), ProviderError> {
    let mut lost: Option<(StepError, String)> = None;
    for _ in 0..ATTEMPTS {
        let write = plan(work, target, changes)?;
        if write.is_empty() {
            return Ok(());
        }
        if let Some((error, digest)) = &lost
            && *digest != target.config.digest
            && !write.is_only_secrets()
        {
            // Something was written since, and it is not what we sent.
            let mut conflict = ProviderError::from(error.clone());
            conflict.class = ErrorClass::Conflict;
            return Err(conflict.hint("somebody else changed it in the meantime; plan again"));
        }
        let sent_for = target.config.digest.clone();
        match send(work, target, &write).await {
            Ok(()) => return reread(work, target).await,
            Err(error) if error.is_not_hotplugged() => {
                // The value is in, and waits for a restart.
                reread(work, target).await?;
                return match plan(work, target, changes)? {
                    left if left.is_empty() || left.is_only_secrets() => Ok(()),
                    _ => Err(error.into()),
                };
            }
            Err(error @ StepError::Lost { .. }) => {
                crate::interrupted_tasks::quiet_guest(
                    work.client,
                    &target.guest,
                    None,
                    Patience::Create.of(&work.operation.spec),
                    work.context,
                )
                .await?;
                reread(work, target).await?;
                lost = Some((error, sent_for));
            }
            Err(StepError::Refused { error, doing }) => {
                let explained = error.explain(&doing);
                return Err(work.point_to_field(explained, &error));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(lost.map_or_else(|| work.internal("it was not tried"), |(error, _)| error.into()))
}

fn plan(work: &Work<'_>, target: &Target, changes: &[FieldChange]) -> Result<ConfigWrite, ProviderError> {
    let reattached = review::reattached(work.operation.recorded.as_ref(), &target.config);
    ConfigWrite::of(target.guest.kind, &work.operation.spec, changes, &target.config, &reattached)
        .map_err(bad_field)
}

async fn send(work: &Work<'_>, target: &Target, write: &ConfigWrite) -> Result<(), StepError> {
    let guest = &target.guest;
    // A VM's new volumes are made in a task; a plain change is done when the answer comes.
    let asynchronous = write.allocates && guest.kind == GuestKind::Qemu;
    work.run(Call {
        method: if asynchronous { Method::POST } else { Method::PUT },
        path: guest.path("/config"),
        params: write.params(&target.config.digest),
        rights: if write.needs_root { Rights::Root } else { Rights::Usual },
        doing: format!("configure {guest}"),
        patience: Patience::Create.of(&work.operation.spec),
    })
    .await
}

pub(super) async fn reread(work: &Work<'_>, target: &mut Target) -> Result<(), ProviderError> {
    let config = target.guest.config(work.client).await;
    target.config = config.map_err(|error| error.explain(&format!("read {} back", target.guest)))?;
    Ok(())
}

/// Moves a volume to another storage; the old one goes once the new one is in use.
pub(super) async fn move_volume(
    work: &Work<'_>,
    target: &mut Target,
    slot: &str,
    storage: &str,
) -> Result<(), ProviderError> {
    let guest = target.guest.clone();
    let is_there = |config: &LiveConfig| {
        config.get(slot).and_then(|text| storage_of(text.split(',').next()?)) == Some(storage)
    };
    if is_there(&target.config) {
        return Ok(());
    }
    let (path, name) = match guest.kind {
        GuestKind::Qemu => (guest.path("/move_disk"), "disk"),
        GuestKind::Lxc => (guest.path("/move_volume"), "volume"),
    };
    let doing = format!("move `{slot}` of {guest} to `{storage}`");
    let params = Params::new()
        .with(name, slot)
        .with("storage", storage)
        .with("delete", 1)
        .with("digest", &target.config.digest);
    let patience = Patience::Disk.of(&work.operation.spec);
    work.ensure(
        &guest,
        &doing,
        patience,
        || async {
            let call = work.call(Method::POST, path.clone(), params.clone(), doing.clone());
            work.run(Call { patience, ..call }).await
        },
        || async { Ok(is_there(&guest.config(work.client).await?)) },
    )
    .await?;
    reread(work, target).await
}

/// Grows a volume to a size.
pub(super) async fn grow(
    work: &Work<'_>,
    target: &mut Target,
    slot: &str,
    size: i64,
) -> Result<(), ProviderError> {
    let guest = target.guest.clone();
    let doing = format!("grow `{slot}` of {guest} to {}", to_size_text(size));
    let params = Params::new()
        .with("disk", slot)
        .with("size", to_size_text(size))
        .with("digest", &target.config.digest);
    let patience = Patience::Disk.of(&work.operation.spec);
    work.ensure(
        &guest,
        &doing,
        patience,
        || async {
            let call = work.call(Method::PUT, guest.path("/resize"), params.clone(), doing.clone());
            work.run(Call { patience, ..call }).await
        },
        || async {
            let config = guest.config(work.client).await?;
            Ok(config.get(slot).and_then(volume_size).is_some_and(|live| live >= size))
        },
    )
    .await?;
    reread(work, target).await
}

/// What a change by us outside of the plan looks like: an ejected CD-ROM that is put back.
pub(super) fn put_back(slot: &str, volume: &str) -> FieldChange {
    FieldChange {
        path: FieldPath::root().child("cdroms").child(slot).child("volume"),
        before: Some(Value::text("none")),
        after: Some(Value::text(volume)),
        drift: false,
    }
}
