//! `machine.MachineService`: configuration, bootstrap, services, reboot, reset, the old upgrade.

use super::Span;

#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub(crate) struct ApplyConfigurationRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) data: Vec<u8>,
    #[prost(int32, tag = "4")]
    pub(crate) mode: i32,
    #[prost(bool, tag = "5")]
    pub(crate) dry_run: bool,
    #[prost(message, optional, tag = "6")]
    pub(crate) try_mode_timeout: Option<Span>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ApplyConfiguration {
    #[prost(string, repeated, tag = "2")]
    pub(crate) warnings: Vec<String>,
    #[prost(int32, tag = "3")]
    pub(crate) mode: i32,
    #[prost(string, tag = "4")]
    pub(crate) mode_details: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BootstrapRequest {
    #[prost(bool, tag = "1")]
    pub(crate) recover_etcd: bool,
    #[prost(bool, tag = "2")]
    pub(crate) recover_skip_hash_check: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Version {
    #[prost(message, optional, tag = "2")]
    pub(crate) version: Option<VersionInfo>,
    #[prost(message, optional, tag = "3")]
    pub(crate) platform: Option<PlatformInfo>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct VersionInfo {
    #[prost(string, tag = "1")]
    pub(crate) tag: String,
    #[prost(string, tag = "2")]
    pub(crate) sha: String,
    #[prost(string, tag = "6")]
    pub(crate) arch: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PlatformInfo {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) mode: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RebootRequest {
    #[prost(int32, tag = "1")]
    pub(crate) mode: i32,
}

/// What Reboot, Reset, Upgrade and ServiceRestart answer: only that they have begun.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Begun {}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ResetRequest {
    #[prost(bool, tag = "1")]
    pub(crate) graceful: bool,
    #[prost(bool, tag = "2")]
    pub(crate) reboot: bool,
    #[prost(message, repeated, tag = "3")]
    pub(crate) system_partitions_to_wipe: Vec<ResetPartition>,
    #[prost(string, repeated, tag = "4")]
    pub(crate) user_disks_to_wipe: Vec<String>,
    #[prost(int32, tag = "5")]
    pub(crate) mode: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ResetPartition {
    #[prost(string, tag = "1")]
    pub(crate) label: String,
    #[prost(bool, tag = "2")]
    pub(crate) wipe: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct UpgradeRequest {
    #[prost(string, tag = "1")]
    pub(crate) image: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ServiceRequest {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ServiceList {
    #[prost(message, repeated, tag = "2")]
    pub(crate) services: Vec<ServiceInfo>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ServiceInfo {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(string, tag = "2")]
    pub(crate) state: String,
    #[prost(message, optional, tag = "4")]
    pub(crate) health: Option<ServiceHealth>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ServiceHealth {
    #[prost(bool, tag = "1")]
    pub(crate) unknown: bool,
    #[prost(bool, tag = "2")]
    pub(crate) healthy: bool,
    #[prost(string, tag = "3")]
    pub(crate) last_message: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SystemStat {
    #[prost(uint64, tag = "2")]
    pub(crate) boot_time: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ReadRequest {
    #[prost(string, tag = "1")]
    pub(crate) path: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListRequest {
    #[prost(string, tag = "1")]
    pub(crate) root: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct FileInfo {
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    #[prost(string, tag = "7")]
    pub(crate) error: String,
    #[prost(string, tag = "9")]
    pub(crate) relative_name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Mounts {
    #[prost(message, repeated, tag = "2")]
    pub(crate) stats: Vec<MountStat>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct MountStat {
    #[prost(string, tag = "4")]
    pub(crate) mounted_on: String,
}
