//! `machine.MachineService`: configuration, bootstrap, services, reboot, reset, the old upgrade.

use super::Span;

#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub(in crate::api) struct ApplyConfigurationRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(in crate::api) data: Vec<u8>,
    #[prost(int32, tag = "4")]
    pub(in crate::api) mode: i32,
    #[prost(bool, tag = "5")]
    pub(in crate::api) dry_run: bool,
    #[prost(message, optional, tag = "6")]
    pub(in crate::api) try_mode_timeout: Option<Span>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct ApplyConfiguration {
    #[prost(string, repeated, tag = "2")]
    pub(in crate::api) warnings: Vec<String>,
    #[prost(int32, tag = "3")]
    pub(in crate::api) mode: i32,
    #[prost(string, tag = "4")]
    pub(in crate::api) mode_details: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct BootstrapRequest {
    #[prost(bool, tag = "1")]
    pub(in crate::api) recover_etcd: bool,
    #[prost(bool, tag = "2")]
    pub(in crate::api) recover_skip_hash_check: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct Version {
    #[prost(message, optional, tag = "2")]
    pub(in crate::api) version: Option<VersionInfo>,
    #[prost(message, optional, tag = "3")]
    pub(in crate::api) platform: Option<PlatformInfo>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct VersionInfo {
    #[prost(string, tag = "1")]
    pub(in crate::api) tag: String,
    #[prost(string, tag = "2")]
    pub(in crate::api) sha: String,
    #[prost(string, tag = "6")]
    pub(in crate::api) arch: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct PlatformInfo {
    #[prost(string, tag = "1")]
    pub(in crate::api) name: String,
    #[prost(string, tag = "2")]
    pub(in crate::api) mode: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct RebootRequest {
    #[prost(int32, tag = "1")]
    pub(in crate::api) mode: i32,
}

/// What Reboot, Reset, Upgrade and ServiceRestart answer: only that they have begun.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct Begun {}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct ResetRequest {
    #[prost(bool, tag = "1")]
    pub(in crate::api) graceful: bool,
    #[prost(bool, tag = "2")]
    pub(in crate::api) reboot: bool,
    #[prost(message, repeated, tag = "3")]
    pub(in crate::api) system_partitions_to_wipe: Vec<ResetPartition>,
    #[prost(string, repeated, tag = "4")]
    pub(in crate::api) user_disks_to_wipe: Vec<String>,
    #[prost(int32, tag = "5")]
    pub(in crate::api) mode: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct ResetPartition {
    #[prost(string, tag = "1")]
    pub(in crate::api) label: String,
    #[prost(bool, tag = "2")]
    pub(in crate::api) wipe: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct UpgradeRequest {
    #[prost(string, tag = "1")]
    pub(in crate::api) image: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct ServiceRequest {
    #[prost(string, tag = "1")]
    pub(in crate::api) id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct ServiceList {
    #[prost(message, repeated, tag = "2")]
    pub(in crate::api) services: Vec<ServiceInfo>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct ServiceInfo {
    #[prost(string, tag = "1")]
    pub(in crate::api) id: String,
    #[prost(string, tag = "2")]
    pub(in crate::api) state: String,
    #[prost(message, optional, tag = "4")]
    pub(in crate::api) health: Option<ServiceHealth>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct ServiceHealth {
    #[prost(bool, tag = "1")]
    pub(in crate::api) unknown: bool,
    #[prost(bool, tag = "2")]
    pub(in crate::api) healthy: bool,
    #[prost(string, tag = "3")]
    pub(in crate::api) last_message: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct SystemStat {
    #[prost(uint64, tag = "2")]
    pub(in crate::api) boot_time: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct ReadRequest {
    #[prost(string, tag = "1")]
    pub(in crate::api) path: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct ListRequest {
    #[prost(string, tag = "1")]
    pub(in crate::api) root: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct FileInfo {
    #[prost(string, tag = "2")]
    pub(in crate::api) name: String,
    #[prost(string, tag = "7")]
    pub(in crate::api) error: String,
    #[prost(string, tag = "9")]
    pub(in crate::api) relative_name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct Mounts {
    #[prost(message, repeated, tag = "2")]
    pub(in crate::api) stats: Vec<MountStat>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct MountStat {
    #[prost(string, tag = "4")]
    pub(in crate::api) mounted_on: String,
}
