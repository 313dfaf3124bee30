//! The hosts of one Proxmox, with the guests of this repository on them: what somebody needs who empties a host and brings its guests back.
//!
//! [`AllProviders::open_hosts`] locks every stack: nothing else of this repository moves a guest meanwhile. A guest is moved, stopped and started by way of the
//! provider that guards the nodes of clusters, one at a time, and written ahead.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strata_engine::{ErrorClass, Observed, OperationContext, ProviderError, Sighting, StopSignal};
use strata_proxmox::ProxmoxProvider;
use strata_resource::{Address, FieldChange, FieldPath, Value};
use strata_session::{Purpose, SessionError, StackSession, StateAccess, Workspace};

use crate::AllProviders;

/// The hosts of one target, under the locks of all stacks.
pub struct HostSession {
    sessions: Vec<StackSession>,
    /// The stacks that are Talos clusters.
    clusters: BTreeSet<String>,
    provider: Arc<ProxmoxProvider>,
    pub target: String,
    /// The id of the repository.
    pub repository: String,
}

/// A guest of ours, as the state knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostedByUs {
    pub address: Address,
    pub vmid: u32,
    /// The host that the source puts it on.
    pub home: String,
    /// It is to run.
    pub runs: bool,
    /// It is a node of a Talos cluster.
    pub is_node: bool,
    /// Those that it must not be down with.
    pub group: Option<String>,
}

impl AllProviders {
    pub async fn open_hosts(
        &self,
        workspace: &Workspace,
        target: Option<&str>,
        doing: &str,
    ) -> Result<HostSession, SessionError> {
        let mut sessions = workspace.open_native(&[], &Purpose::LOOK, StateAccess::Lock(doing)).await?;
        let ready = async {
            for session in &mut sessions {
                session.recover().await?;
            }
            let known = self.proxmox();
            let names: Vec<String> = known.keys().map(|name| format!("`{name}`")).collect();
            let (name, provider) = match target {
                Some(target) => known.get_key_value(target).ok_or_else(|| {
                    SessionError::usage(format!("there is no Proxmox `{target}` among the targets"))
                        .hint(format!("there are {}", names.join(", ")))
                })?,
                None if known.len() == 1 => known.iter().next().ok_or_else(no_target)?,
                None if known.is_empty() => return Err(no_target()),
                None => {
                    return Err(SessionError::usage("more than one target is a Proxmox")
                        .hint(format!("name one with `--target`: {}", names.join(", "))));
                }
            };
            Ok((name.clone(), Arc::clone(provider), workspace.repository_id()?.to_owned()))
        };
        match ready.await {
            Ok((target, provider, repository)) => {
                let is_cluster = |name: &&str| workspace.one(name).is_ok_and(|one| one.cluster().is_some());
                let names = sessions.iter().map(|session| session.name.as_str());
                let clusters = names.filter(is_cluster).map(str::to_owned).collect();
                Ok(HostSession { sessions, clusters, provider, target, repository })
            }
            Err(error) => {
                for session in sessions {
                    // The first error is the one to tell.
                    let _ = session.release().await;
                }
                Err(error)
            }
        }
    }
}

fn no_target() -> SessionError {
    SessionError::failed("no stack of this repository is on a Proxmox").hint("there is nothing to maintain")
}

impl HostSession {
    pub fn provider(&self) -> &ProxmoxProvider {
        &self.provider
    }

    pub async fn release(self) -> Result<(), SessionError> {
        let mut first = Ok(());
        for session in self.sessions {
            let released = session.release().await;
            if first.is_ok() {
                first = released;
            }
        }
        first
    }

    /// The guests that states know on this target, by their VMIDs.
    pub fn ours(&self) -> BTreeMap<u32, HostedByUs> {
        let mut ours = BTreeMap::new();
        for session in &self.sessions {
            let is_cluster = self.clusters.contains(&session.name);
            for (address, record) in &session.state().document.resources {
                if !strata_proxmox::kinds::is_guest(address.kind()) || record.target != self.target {
                    continue;
                }
                let text = |field: &str| record.spec.get(field).and_then(Value::as_text);
                let vmid = record.spec.get("vmid").and_then(Value::as_int);
                let Some(vmid) = vmid.and_then(|vmid| u32::try_from(vmid).ok()) else { continue };
                let rollout = record.spec.get("rollout").and_then(Value::as_map);
                let group = rollout.and_then(|rollout| rollout.get("group")?.as_text());
                let guest = HostedByUs {
                    address: address.clone(),
                    vmid,
                    // With `node: any` it is at home wherever it is.
                    home: match record.spec.contains_key("home") {
                        true => String::new(),
                        false => text("node").unwrap_or_default().to_owned(),
                    },
                    runs: text("power") == Some("running"),
                    is_node: is_cluster && address.kind() == strata_proxmox::kinds::VM,
                    group: group.map(|group| format!("{}/{group}", address.stack())),
                };
                ours.insert(vmid, guest);
            }
        }
        ours
    }

    /// Moves a guest of ours to another host. There already, it does nothing.
    pub async fn move_to(
        &mut self,
        guest: &HostedByUs,
        host: &str,
        stop: &StopSignal,
    ) -> Result<(), SessionError> {
        self.change(guest, "node", host, stop).await
    }

    /// Starts a guest of ours, or shuts it down. So already, it does nothing.
    pub async fn set_power(
        &mut self,
        guest: &HostedByUs,
        runs: bool,
        stop: &StopSignal,
    ) -> Result<(), SessionError> {
        self.change(guest, "power", if runs { "running" } else { "stopped" }, stop).await
    }

    async fn change(
        &mut self,
        guest: &HostedByUs,
        field: &str,
        to: &str,
        stop: &StopSignal,
    ) -> Result<(), SessionError> {
        let session = self.sessions.iter_mut().find(|session| session.name == guest.address.stack());
        let unknown = || SessionError::failed(format!("no stack has `{}`", guest.address));
        let session = session.ok_or_else(unknown)?;
        if let Some(unseen) = session.left_open(&guest.address) {
            return Err(SessionError::failed(unseen.what.clone()).hint(unseen.hint.clone()));
        }
        let (mut operation, record) = session.operation_on(&guest.address).ok_or_else(unknown)?;
        let observed = match session.sight(&operation).await? {
            Some(Sighting::Ours(observed)) => observed,
            Some(Sighting::Unmanaged(who)) => {
                return Err(SessionError::refused(who.to_string()).hint("it was not touched"));
            }
            _ => {
                return Err(SessionError::failed(format!("`{}` cannot be seen", guest.address))
                    .hint("try again when it can"));
            }
        };
        let now = now(&observed, field);
        if now.as_deref() == Some(to) {
            return Ok(());
        }
        operation.spec.insert(field.to_owned(), Value::text(to));
        operation.changes = vec![FieldChange {
            path: FieldPath::dotted(field),
            before: now.map(|now| Value::text(now.as_str())),
            after: Some(Value::text(to)),
            drift: false,
        }];
        operation.observed = Some(observed);
        session.carry_out(&operation, record, stop).await
    }

    /// For what is written to a host itself: allowed as long as every lock is held.
    pub fn context<'s>(&'s self, stop: &'s StopSignal) -> impl OperationContext + 's {
        HostContext { sessions: &self.sessions, stop }
    }
}

fn now(observed: &Observed, field: &str) -> Option<String> {
    let from = if field == "node" { &observed.facts } else { &observed.spec };
    from.get(field).and_then(Value::as_text).map(str::to_owned)
}

struct HostContext<'s> {
    sessions: &'s [StackSession],
    stop: &'s StopSignal,
}

#[async_trait::async_trait]
impl OperationContext for HostContext<'_> {
    fn before_write(&self) -> Result<(), ProviderError> {
        if self.stop.now() {
            return Err(ProviderError::new(ErrorClass::Stopped, "stopped by the user"));
        }
        for session in self.sessions {
            session.still_held().map_err(|error| ProviderError::new(ErrorClass::Stopped, error.message))?;
        }
        Ok(())
    }

    async fn task_started(&self, _: &str) -> Result<(), ProviderError> {
        Ok(())
    }

    fn progress(&self, _: &str) {}

    fn stopping(&self) -> bool {
        self.stop.stopping()
    }
}
