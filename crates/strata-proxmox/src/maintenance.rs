//! Hosts as somebody sees them who empties, updates and reboots them: what runs on them, whether the cluster can do without one, when they booted.
//!
//! No call of the API upgrades a host. What a host says of itself afterwards is the proof: no pending updates, another version, a later boot.

mod mark;

use std::time::Duration;

use http::Method;
use serde::Deserialize;
use strata_engine::{ErrorClass, OperationContext, ProviderError};

pub use self::mark::{MaintenanceMark, Stage};
use crate::ProxmoxProvider;
use crate::api::{Params, flag, whole};
use crate::client::{CallError, Client, Permit, Rights, Trouble};
use crate::codec::GuestKind;
use crate::guest::Guest;

/// Times and uptimes are rounded.
const DOUBT: i64 = 2;

/// A host of the datacenter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRow {
    pub name: String,
    pub online: bool,
}

/// The hosts, and whether they agree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostRows {
    pub hosts: Vec<HostRow>,
    /// None where there is one host and no cluster.
    pub quorate: Option<bool>,
}

impl HostRows {
    pub fn is_online(&self, name: &str) -> bool {
        self.hosts.iter().any(|host| host.name == name && host.online)
    }

    /// Whether the others have a majority of the votes without this host. One vote each: of others nothing is known.
    pub fn can_do_without(&self, name: &str) -> bool {
        let others = self.hosts.iter().filter(|host| host.online && host.name != name).count();
        self.quorate.is_none() || others * 2 > self.hosts.len()
    }
}

/// What a host says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostNow {
    /// In seconds since 1970, by its own clock.
    pub time: i64,
    /// When it booted, likewise.
    pub booted: i64,
    /// `pve-manager/9.1.7/…`
    pub version: String,
    pub kernel: String,
}

impl HostNow {
    /// Whether it booted since a time by its own clock.
    pub fn has_booted_since(&self, time: i64) -> bool {
        self.booted >= time - DOUBT
    }
}

/// The notes of a host, and what they were read at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostNotes {
    text: String,
    digest: Option<String>,
}

impl HostNotes {
    pub fn mark(&self) -> Option<MaintenanceMark> {
        MaintenanceMark::in_notes(&self.text)
    }
}

/// A guest on a host, whoever made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestOnHost {
    pub vmid: u32,
    pub name: String,
    pub node: String,
    pub running: bool,
    pub template: bool,
    pub container: bool,
    pub memory: i64,
    /// High availability keeps it in this state.
    pub ha: Option<String>,
}

/// Whether a guest can be moved while it runs, and where to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Movable {
    /// Why it cannot leave its host at all.
    pub bound: Option<String>,
    /// Hosts that lack something that it needs.
    pub not: Vec<String>,
}

#[derive(Deserialize)]
struct StatusRow {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(default, deserialize_with = "flag")]
    online: bool,
    #[serde(default, deserialize_with = "flag")]
    quorate: bool,
}

#[derive(Deserialize)]
struct NodeStatus {
    #[serde(default, deserialize_with = "whole")]
    uptime: Option<i64>,
    #[serde(default)]
    pveversion: String,
    #[serde(default, rename = "current-kernel")]
    kernel: Option<Kernel>,
}

#[derive(Deserialize)]
struct Kernel {
    #[serde(default)]
    release: String,
}

#[derive(Deserialize)]
struct NodeTime {
    #[serde(default, deserialize_with = "whole")]
    time: Option<i64>,
}

#[derive(Deserialize)]
struct NodeConfig {
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    digest: Option<String>,
}

#[derive(Deserialize)]
struct GuestRow {
    #[serde(default, deserialize_with = "whole")]
    vmid: Option<i64>,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    node: Option<String>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default, deserialize_with = "flag")]
    template: bool,
    #[serde(default, deserialize_with = "whole")]
    maxmem: Option<i64>,
    #[serde(default)]
    hastate: Option<String>,
}

#[derive(Deserialize)]
struct Update {
    #[serde(rename = "Package")]
    package: String,
    #[serde(default, rename = "Version")]
    version: String,
}

/// The notes of a host; none where this login may not read them.
pub(crate) async fn notes(client: &Client, node: &str) -> Result<HostNotes, CallError> {
    let config: NodeConfig = client.get(&format!("/nodes/{node}/config"), Params::new()).await?;
    Ok(HostNotes { text: config.description.unwrap_or_default(), digest: config.digest })
}

impl ProxmoxProvider {
    pub async fn host_rows(&self) -> Result<HostRows, ProviderError> {
        let rows: Vec<StatusRow> = self
            .client()
            .get("/cluster/status", Params::new())
            .await
            .map_err(|error| error.explain("see which hosts are online"))?;
        let cluster = rows.iter().find(|row| row.kind == "cluster").map(|row| row.quorate);
        let nodes = rows.into_iter().filter(|row| row.kind == "node");
        let mut hosts: Vec<HostRow> =
            nodes.map(|row| HostRow { name: row.name, online: row.online }).collect();
        hosts.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(HostRows { hosts, quorate: cluster })
    }

    pub async fn host_now(&self, node: &str) -> Result<HostNow, ProviderError> {
        let failed = |error: CallError| error.explain(&format!("ask `{node}` how it is"));
        let none = Params::new;
        let status: NodeStatus =
            self.client().get(&format!("/nodes/{node}/status"), none()).await.map_err(failed)?;
        let time: NodeTime =
            self.client().get(&format!("/nodes/{node}/time"), none()).await.map_err(failed)?;
        let time = time.time.unwrap_or_default();
        Ok(HostNow {
            time,
            booted: time - status.uptime.unwrap_or_default(),
            version: status.pveversion,
            kernel: status.kernel.map(|kernel| kernel.release).unwrap_or_default(),
        })
    }

    pub async fn host_notes(&self, node: &str) -> Result<HostNotes, ProviderError> {
        notes(self.client(), node)
            .await
            .map_err(|error| error.explain(&format!("read the notes of `{node}`")))
    }

    /// Writes the mark into the notes as they were read, and reads it back. What somebody else writes in between is not overwritten.
    pub async fn mark_host(
        &self,
        node: &str,
        notes: &HostNotes,
        mark: Option<&MaintenanceMark>,
        context: &dyn OperationContext,
    ) -> Result<(), ProviderError> {
        let text = MaintenanceMark::put(mark, &notes.text);
        let mut params = match text.is_empty() {
            true => Params::new().with("delete", "description"),
            false => Params::new().with("description", text),
        };
        if let Some(digest) = &notes.digest {
            params.set("digest", digest);
        }
        let permit = Permit::ask(&|| context.before_write())?;
        let path = format!("/nodes/{node}/config");
        let doing = format!("mark `{node}` in its notes");
        let sent = self.client().write(permit, Method::PUT, &path, &params, Rights::Usual).await;
        match sent {
            Err(error) if error.trouble() != Trouble::AnswerLost => return Err(error.explain(&doing)),
            _ => {}
        }
        let now = self.host_notes(node).await?;
        if now.mark().as_ref() == mark {
            return Ok(());
        }
        Err(ProviderError::new(ErrorClass::Conflict, format!("cannot {doing}: it reads back otherwise"))
            .hint("somebody else changed the notes; run it again"))
    }

    /// Tells a host to reboot. It may be down before it answers.
    pub async fn reboot_host(&self, node: &str, context: &dyn OperationContext) -> Result<(), ProviderError> {
        let permit = Permit::ask(&|| context.before_write())?;
        let path = format!("/nodes/{node}/status");
        let params = Params::new().with("command", "reboot");
        match self.client().write(permit, Method::POST, &path, &params, Rights::Usual).await {
            Err(error) if error.trouble() != Trouble::AnswerLost => {
                Err(error.explain(&format!("reboot `{node}`")))
            }
            _ => Ok(()),
        }
    }

    /// Every guest of the datacenter.
    pub async fn guests_on_hosts(&self) -> Result<Vec<GuestOnHost>, ProviderError> {
        let query = Params::new().with("type", "vm");
        let rows: Vec<GuestRow> = self
            .client()
            .get("/cluster/resources", query)
            .await
            .map_err(|error| error.explain("list the guests"))?;
        let mut guests = Vec::new();
        for row in rows {
            let vmid = row.vmid.and_then(|vmid| u32::try_from(vmid).ok());
            let (Some(vmid), Some(node)) = (vmid, row.node) else { continue };
            let container = row.kind == "lxc";
            let running = match row.status.as_deref() {
                Some("running") => true,
                Some("stopped") => false,
                // The listing knows a guest that was just started or moved only after the next round of statistics.
                _ => {
                    let kind = if container { GuestKind::Lxc } else { GuestKind::Qemu };
                    let guest = Guest { kind, node: node.clone(), vmid };
                    let running = guest.is_running(self.client()).await;
                    running.map_err(|error| error.explain(&format!("see whether {guest} runs")))?
                }
            };
            guests.push(GuestOnHost {
                vmid,
                name: row.name.unwrap_or_default(),
                node,
                running,
                template: row.template,
                container,
                memory: row.maxmem.unwrap_or_default(),
                ha: row.hastate.filter(|state| state != "ignored"),
            });
        }
        Ok(guests)
    }

    pub async fn movable(&self, guest: &GuestOnHost) -> Result<Movable, ProviderError> {
        let kind = if guest.container { GuestKind::Lxc } else { GuestKind::Qemu };
        let guest = Guest { kind, node: guest.node.clone(), vmid: guest.vmid };
        crate::execute::movable(self.client(), &guest).await
    }

    /// The packages that a host could upgrade, by its own list.
    pub async fn pending_updates(&self, node: &str) -> Result<Vec<String>, ProviderError> {
        let updates: Vec<Update> = self
            .client()
            .get(&format!("/nodes/{node}/apt/update"), Params::new())
            .await
            .map_err(|error| error.explain(&format!("list the updates of `{node}`")))?;
        Ok(updates.into_iter().map(|update| format!("{} {}", update.package, update.version)).collect())
    }

    /// Sleeps as the clock of this connection does.
    pub async fn pause(&self, time: Duration) {
        self.client().clock().sleep(time).await;
    }

    /// For how long something was waited for, as the clock of this connection does.
    pub fn since_start(&self) -> Duration {
        self.client().clock().monotonic()
    }
}
