//! Answers of the API, only the parts that are used: a listing of ten thousand guests becomes ten thousand small rows.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::scalar::{Scalar, flag, whole};

/// Every answer: the data, or what went wrong.
#[derive(Deserialize)]
pub(crate) struct Envelope<T> {
    pub(crate) data: T,
}

/// An answer that says beside the data what is staged.
#[derive(Deserialize)]
pub(crate) struct StagedEnvelope<T> {
    pub(crate) data: T,
    #[serde(default)]
    pub(crate) changes: Option<String>,
}

/// What every failed answer with a body holds.
#[derive(Deserialize, Default)]
pub(crate) struct Failure {
    #[serde(default)]
    pub(crate) message: Option<String>,
    #[serde(default)]
    pub(crate) errors: Option<BTreeMap<String, Scalar>>,
}

/// A guest, in a listing of the cluster or of a node.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct GuestRow {
    #[serde(deserialize_with = "vmid")]
    pub(crate) vmid: u32,
    /// `qemu` or `lxc`; listings of a node do not say.
    #[serde(default, rename = "type")]
    pub(crate) kind: Option<Box<str>>,
    #[serde(default)]
    pub(crate) node: Option<Box<str>>,
    #[serde(default)]
    pub(crate) name: Option<Box<str>>,
    #[serde(default)]
    pub(crate) status: Option<Box<str>>,
    #[serde(default)]
    pub(crate) pool: Option<Box<str>>,
    #[serde(default)]
    pub(crate) lock: Option<Box<str>>,
}

/// VMIDs arrive as numbers, and as texts in the listing of containers of some versions.
fn vmid<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let scalar = Scalar::deserialize(deserializer)?;
    scalar
        .as_str()
        .parse()
        .map_err(|_| serde::de::Error::custom(format!("`{}` is not a VMID", scalar.as_str())))
}

/// What a guest does at the moment.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct GuestStatus {
    pub(crate) status: String,
    #[serde(default, deserialize_with = "whole")]
    pub(crate) uptime: Option<i64>,
    /// Its process; another one after each start.
    #[serde(default, deserialize_with = "whole")]
    pub(crate) pid: Option<i64>,
    #[serde(default)]
    pub(crate) ha: Option<HaStatus>,
}

/// What high availability has to do with a guest.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct HaStatus {
    #[serde(default, deserialize_with = "whole")]
    pub(crate) managed: Option<i64>,
    /// `started`, `request_stop`, `migrate`, `error`, …
    #[serde(default)]
    pub(crate) state: Option<String>,
}

impl GuestStatus {
    pub(crate) fn is_running(&self) -> bool {
        self.status == "running"
    }

    /// Whether it was started since `before`.
    pub(crate) fn is_started_since(&self, before: &Self) -> bool {
        let other = match (self.pid, before.pid) {
            (Some(now), Some(then)) => now != then,
            _ => self.uptime.zip(before.uptime).is_some_and(|(now, then)| now < then),
        };
        self.is_running() && (other || !before.is_running())
    }

    /// Starting, stopping and moving it is left to high availability.
    pub(crate) fn is_ha_managed(&self) -> bool {
        self.ha.as_ref().is_some_and(|ha| ha.managed == Some(1))
    }

    /// High availability sees nothing to do about it: whatever it was asked for, it is where it was before.
    pub(crate) fn is_in_ha_order(&self) -> bool {
        let state = self.ha.as_ref().and_then(|ha| ha.state.as_deref());
        state == Some(if self.is_running() { "started" } else { "stopped" })
    }

    /// High availability has given it up.
    pub(crate) fn is_in_ha_error(&self) -> bool {
        self.is_ha_managed() && self.ha.as_ref().is_some_and(|ha| ha.state.as_deref() == Some("error"))
    }
}

/// One key of a guest's configuration: what it is, and what it becomes with the next restart.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct PendingRow {
    pub(crate) key: String,
    #[serde(default)]
    pub(crate) value: Option<Scalar>,
    #[serde(default)]
    pub(crate) pending: Option<Scalar>,
    #[serde(default, deserialize_with = "whole")]
    pub(crate) delete: Option<i64>,
}

/// A volume in the listing of a storage.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ContentRow {
    pub(crate) volid: String,
    #[serde(default, deserialize_with = "whole")]
    pub(crate) size: Option<i64>,
    #[serde(default)]
    pub(crate) content: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct TaskStatus {
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) exitstatus: Option<String>,
}

/// A task in the listing of a node.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct TaskRow {
    pub(crate) upid: String,
    /// Absent while it runs; some versions say `RUNNING`.
    #[serde(default)]
    pub(crate) status: Option<String>,
    #[serde(default, deserialize_with = "whole")]
    pub(crate) endtime: Option<i64>,
}

impl TaskRow {
    pub(crate) fn is_running(&self) -> bool {
        self.endtime.is_none()
            && self.status.as_deref().is_none_or(|status| status.eq_ignore_ascii_case("running"))
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct LogLine {
    #[serde(default)]
    pub(crate) t: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct NodeRow {
    pub(crate) node: String,
    #[serde(default)]
    pub(crate) status: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct StorageRow {
    pub(crate) storage: String,
    #[serde(default, rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) content: String,
    #[serde(default, deserialize_with = "flag")]
    pub(crate) enabled: bool,
    #[serde(default, deserialize_with = "flag")]
    pub(crate) active: bool,
    /// Every node sees the same.
    #[serde(default, deserialize_with = "flag")]
    pub(crate) shared: bool,
    #[serde(default, deserialize_with = "whole")]
    pub(crate) avail: Option<i64>,
    #[serde(default, deserialize_with = "whole")]
    pub(crate) total: Option<i64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct NetworkRow {
    pub(crate) iface: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct PoolRow {
    pub(crate) poolid: String,
}

/// Whether and how a guest can move to another node. Containers answer with less.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct MigrationCheck {
    #[serde(default)]
    pub(crate) local_disks: Vec<LocalDisk>,
    #[serde(default)]
    pub(crate) local_resources: Vec<String>,
    /// By node, why not; what it says has changed from version to version.
    #[serde(default, alias = "not-allowed-nodes")]
    pub(crate) not_allowed_nodes: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct LocalDisk {
    pub(crate) volid: String,
    #[serde(default, deserialize_with = "flag")]
    pub(crate) cdrom: bool,
}

#[derive(Deserialize)]
pub(crate) struct Ticket {
    pub(crate) ticket: Option<String>,
    #[serde(rename = "CSRFPreventionToken")]
    pub(crate) csrf: Option<String>,
    /// The ticket is only good for a second factor.
    #[serde(default, rename = "NeedTFA", deserialize_with = "flag")]
    pub(crate) needs_second_factor: bool,
}

/// What the server says it is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Version {
    pub version: String,
    #[serde(default)]
    pub release: String,
}

impl Version {
    /// Some privileges have other names there.
    pub fn is_before_9(&self) -> bool {
        let major = self.version.split('.').next().and_then(|major| major.parse::<u32>().ok());
        major.is_some_and(|major| major < 9)
    }
}
