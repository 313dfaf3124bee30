//! Waiting until nothing of an interrupted operation runs any more, so that what is live can be judged.

pub(crate) mod leftover;

use std::time::Duration;

use strata_engine::{ErrorClass, OperationContext, ProviderError};
use strata_resource::{Spec, Value};
use strata_state::{Action, OpenEntry};

use crate::api::{NodeRow, Params, Upid};
use crate::client::{CallError, Client, TaskEnd};
use crate::codec::GuestKind;
use crate::guest::{Guest, locate};

/// How long recovery waits for tasks of an earlier run.
const PATIENCE: Duration = Duration::from_secs(3600);
/// How far the clocks of this machine and of a hypervisor may be apart.
const SKEW: i64 = 600;
const FIRST_LOOK: Duration = Duration::from_millis(50);
const LONGEST_LOOK: Duration = Duration::from_secs(2);
/// How long a lock may stand without a task of ours before it counts as left behind: its hypervisor died, or the task never began.
const GRACE: Duration = Duration::from_secs(4);

pub(crate) async fn wait_for_tasks(
    client: &Client,
    entry: &OpenEntry,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    let online = match entry.tasks.is_empty() {
        true => Vec::new(),
        false => online(client).await?,
    };
    for task in &entry.tasks {
        let Ok(upid) = task.parse::<Upid>() else { continue };
        if !online.contains(&upid.node) {
            // Nobody can ask about it; the look that follows says that its hypervisor is unreachable, or where the object is now.
            continue;
        }
        context.progress(&format!("waiting for a task of the interrupted run: {} {}", upid.kind, upid.id));
        wait_for(client, &upid, PATIENCE).await?;
    }
    if crate::kinds::is_datacenter(entry.address.kind()) {
        // Everything else about them is done when it is answered.
        return Ok(());
    }
    let mut about = About::of(entry);
    wait_for_unrecorded(client, &about, Some(entry.begun), context).await?;
    if let About::Guest { guest, .. } = &mut about {
        // Where it is now: it may have been on its way to another hypervisor.
        let row =
            locate(client, guest.vmid).await.map_err(|error| error.explain(&format!("look for {guest}")))?;
        let Some(node) = row.and_then(|row| row.node) else { return Ok(()) };
        guest.node = node.into();
        let guest = guest.clone();
        let lock = match wait_for_lock(client, &guest, &about, PATIENCE, context).await {
            // Its hypervisor does not answer: the look that follows says so.
            Err(error) if error.class == ErrorClass::Unreachable => return Ok(()),
            other => other?,
        };
        if entry.action == Action::Create {
            let ours = !entry.tasks.is_empty() || was_begun(client, &about, entry.begun).await;
            return leftover::clear(client, &guest, lock.as_deref(), ours, context).await;
        }
        if let Some(lock) = lock {
            return Err(leftover::stale_lock(&guest, &lock));
        }
    }
    Ok(())
}

/// Whether a task of ours about this was begun since then, however it ended.
async fn was_begun(client: &Client, about: &About, since: i64) -> bool {
    let Ok(nodes) = nodes(client, about).await else { return false };
    for node in nodes {
        for upid in client.past_tasks(&node, since - SKEW).await.unwrap_or_default() {
            if concerns(client, about, &upid).await {
                return true;
            }
        }
    }
    false
}

/// What tasks are looked for.
enum About {
    Guest {
        guest: Guest,
        source: Option<u32>,
    },
    /// The name of a file on a storage.
    Volume {
        name: String,
        node: String,
    },
}

impl About {
    fn of(entry: &OpenEntry) -> Self {
        let text =
            |field: &str| entry.identity.get(field).and_then(Value::as_text).unwrap_or_default().to_owned();
        match GuestKind::of(entry.address.kind()) {
            Some(kind) => {
                let vmid = int(&entry.identity, "vmid").unwrap_or_default();
                let clone = entry.identity.get("clone").and_then(Value::as_map);
                let source = clone.and_then(|clone| int(clone, "template"));
                Self::Guest { guest: Guest { kind, node: text("node"), vmid }, source }
            }
            None => {
                let volume = text("volume");
                let name = volume.rsplit('/').next().unwrap_or_default().to_owned();
                Self::Volume { name, node: text("node") }
            }
        }
    }

    fn node(&self) -> &str {
        match self {
            Self::Guest { guest, .. } => &guest.node,
            Self::Volume { node, .. } => node,
        }
    }

    /// Whether the task's own id says that it is about this; `None` if only its log can tell.
    fn named_by(&self, upid: &Upid) -> Option<bool> {
        match self {
            Self::Guest { guest, source } => {
                if upid.id == guest.vmid.to_string() {
                    return Some(true);
                }
                let is_clone = matches!(upid.kind.as_str(), "qmclone" | "vzclone");
                let from_source = source.is_none_or(|source| upid.id == source.to_string());
                if is_clone && from_source { None } else { Some(false) }
            }
            Self::Volume { name, .. } => match upid.kind.as_str() {
                "download" => Some(upid.id == *name),
                "imgcopy" | "imgdel" => None,
                _ => Some(false),
            },
        }
    }

    /// Whether a line of a task's log says so.
    fn named_in(&self, line: &str) -> bool {
        match self {
            Self::Guest { guest, .. } => line.trim_end().ends_with(&format!("with ID {}", guest.vmid)),
            Self::Volume { name, .. } => line.contains(name.as_str()),
        }
    }
}

fn int(spec: &Spec, field: &str) -> Option<u32> {
    spec.get(field).and_then(Value::as_int).and_then(|int| u32::try_from(int).ok())
}

/// Waits until no task of ours works on a guest and nothing holds its lock. `source` is what it is cloned from.
pub(crate) async fn quiet_guest(
    client: &Client,
    guest: &Guest,
    source: Option<u32>,
    patience: Duration,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    let about = About::Guest { guest: guest.clone(), source };
    wait_for_unrecorded(client, &about, None, &NoReport).await?;
    match wait_for_lock(client, guest, &about, patience, context).await? {
        Some(lock) => Err(leftover::stale_lock(guest, &lock)),
        None => Ok(()),
    }
}

/// Waits for the tasks of ours that put a volume into place.
pub(crate) async fn quiet_volume(client: &Client, node: &str, name: &str) -> Result<(), ProviderError> {
    let about = About::Volume { name: name.to_owned(), node: node.to_owned() };
    wait_for_unrecorded(client, &about, None, &NoReport).await
}

/// Finds tasks whose answer was lost, and waits for them.
async fn wait_for_unrecorded(
    client: &Client,
    about: &About,
    since: Option<i64>,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    let failed = |error: CallError| error.explain("list the running tasks");
    for node in nodes(client, about).await? {
        let running = match client.running_tasks(&node).await {
            // Nothing can be asked there now; what is on it is unknown to every look.
            Err(error) if error.is_unreachable_node() => continue,
            other => other.map_err(failed)?,
        };
        for upid in running {
            if since.is_some_and(|since| upid.started < since - SKEW) || !concerns(client, about, &upid).await
            {
                continue;
            }
            context.progress(&format!("waiting for a task whose answer was lost: {} {}", upid.kind, upid.id));
            wait_for(client, &upid, PATIENCE).await?;
        }
    }
    Ok(())
}

/// The nodes on which such tasks can run: that of the object, and where it may be cloned or moved from.
async fn nodes(client: &Client, about: &About) -> Result<Vec<String>, ProviderError> {
    if matches!(about, About::Volume { .. }) {
        return Ok(vec![about.node().to_owned()]);
    }
    online(client).await
}

async fn online(client: &Client) -> Result<Vec<String>, ProviderError> {
    let rows: Vec<NodeRow> =
        client.get("/nodes", Params::new()).await.map_err(|error| error.explain("list the nodes"))?;
    let online = rows.into_iter().filter(|row| row.status.as_deref() != Some("offline"));
    Ok(online.map(|row| row.node).collect())
}

async fn concerns(client: &Client, about: &About, upid: &Upid) -> bool {
    match about.named_by(upid) {
        Some(named) => named,
        None => {
            let log = client.task_log(upid).await.unwrap_or_default();
            log.iter().any(|line| about.named_in(line))
        }
    }
}

/// Waits for a task; how it ended does not matter, what it left behind is looked at.
async fn wait_for(client: &Client, upid: &Upid, patience: Duration) -> Result<(), ProviderError> {
    let end = client.follow(upid, patience).await;
    match end.map_err(|error| error.explain(&format!("follow the task `{upid}`")))? {
        TaskEnd::StillRunning => Err(ProviderError::new(
            ErrorClass::Conflict,
            format!("the task `{upid}` still runs after {} s", patience.as_secs()),
        )
        .hint("apply again when it has ended, or stop it")),
        _ => Ok(()),
    }
}

/// A guest that is being made shows nothing but its lock. Gives the lock if no task of ours has worked on the guest for a while: then
/// nobody will take it away.
async fn wait_for_lock(
    client: &Client,
    guest: &Guest,
    about: &About,
    patience: Duration,
    context: &dyn OperationContext,
) -> Result<Option<String>, ProviderError> {
    let clock = client.clock();
    let end = clock.monotonic() + patience;
    let (mut idle_since, mut told) = (None, false);
    let mut wait = FIRST_LOOK;
    loop {
        let config =
            guest.config_if_any(client).await.map_err(|error| error.explain(&format!("read {guest}")))?;
        let Some(lock) = config.and_then(|config| config.lock) else { return Ok(None) };
        if !matches!(lock.as_str(), "create" | "clone" | "migrate" | "disk") {
            return Ok(None);
        }
        let now = clock.monotonic();
        if works_on_it(client, about).await? {
            idle_since = None;
        } else if now - *idle_since.get_or_insert(now) >= GRACE || now >= end {
            return Ok(Some(lock));
        }
        if !std::mem::replace(&mut told, true) {
            context.progress(&format!("waiting until {guest} is not locked ({lock}) any more"));
        }
        tokio::select! {
            biased;
            () = context.stopped() => {
                let message = format!("interrupted while it waited for the lock of {guest}");
                return Err(ProviderError::new(ErrorClass::Stopped, message));
            }
            () = clock.sleep(wait) => {}
        }
        wait = (wait * 3 / 2).min(LONGEST_LOOK);
    }
}

/// Whether a task of ours about this runs on any node that can be asked.
async fn works_on_it(client: &Client, about: &About) -> Result<bool, ProviderError> {
    for node in nodes(client, about).await? {
        for upid in client.running_tasks(&node).await.unwrap_or_default() {
            if concerns(client, about, &upid).await {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// A context for waiting in the middle of an operation, which has said already what it does.
struct NoReport;

#[async_trait::async_trait]
impl OperationContext for NoReport {
    fn before_write(&self) -> Result<(), ProviderError> {
        Err(ProviderError::new(ErrorClass::Internal, "waiting writes nothing"))
    }

    async fn task_started(&self, _task: &str) -> Result<(), ProviderError> {
        Ok(())
    }

    fn progress(&self, _doing: &str) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upid(kind: &str, id: &str) -> Upid {
        format!("UPID:pve:00000001:00000001:6AFA0AD4:{kind}:{id}:root@pam!test:").parse().unwrap()
    }

    #[test]
    fn a_task_is_known_by_its_id_or_by_its_log() {
        let guest = Guest { kind: GuestKind::Qemu, node: "pve".into(), vmid: 9100 };
        let about = About::Guest { guest: guest.clone(), source: Some(9000) };
        assert_eq!(about.named_by(&upid("qmcreate", "9100")), Some(true));
        assert_eq!(about.named_by(&upid("qmcreate", "9101")), Some(false));
        assert_eq!(about.named_by(&upid("qmclone", "9000")), None);
        assert_eq!(about.named_by(&upid("qmclone", "9001")), Some(false));
        assert!(about.named_in("creating a clone of VM 9000 with ID 9100"));
        assert!(!about.named_in("creating a clone of VM 9000 with ID 91000"));
        let volume = About::Volume { name: "a.iso".into(), node: "pve".into() };
        assert_eq!(volume.named_by(&upid("download", "a.iso")), Some(true));
        assert_eq!(volume.named_by(&upid("download", "b.iso")), Some(false));
        assert_eq!(volume.named_by(&upid("imgcopy", "")), None);
        assert!(volume.named_in("target file: /var/lib/vz/template/iso/a.iso"));
    }
}
