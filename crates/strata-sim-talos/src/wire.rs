//! The messages of the Talos API that the simulator reads and writes, field by field.
//!
//! A reply of most calls is a list of messages, one for each node that was asked: `listed` makes it of one message.

pub mod cosi;
pub mod structure;
pub mod system;

use prost::Message;

/// A reply with this message as its only one.
pub fn listed(message: &impl Message) -> Vec<u8> {
    field(1, &message.encode_to_vec())
}

/// A field of bytes: its number and type, its length, its content.
pub fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + 8);
    prost::encoding::encode_varint(u64::from(number << 3 | 2), &mut out);
    prost::encoding::encode_varint(content.len() as u64, &mut out);
    out.extend_from_slice(content);
    out
}

#[derive(Clone, PartialEq, Message)]
pub struct Metadata {
    #[prost(string, tag = "1")]
    pub hostname: String,
    #[prost(string, tag = "2")]
    pub error: String,
    #[prost(message, optional, tag = "3")]
    pub status: Option<RpcStatus>,
}

#[derive(Clone, PartialEq, Message)]
pub struct RpcStatus {
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(string, tag = "2")]
    pub message: String,
}

/// A message with nothing in it but who sent it.
#[derive(Clone, PartialEq, Message)]
pub struct Nothing {}

#[derive(Clone, PartialEq, Message)]
pub struct Data {
    #[prost(bytes = "vec", tag = "2")]
    pub bytes: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Duration {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Timestamp {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct VersionInfo {
    #[prost(string, tag = "1")]
    pub tag: String,
    #[prost(string, tag = "2")]
    pub sha: String,
    #[prost(string, tag = "3")]
    pub built: String,
    #[prost(string, tag = "4")]
    pub go_version: String,
    #[prost(string, tag = "5")]
    pub os: String,
    #[prost(string, tag = "6")]
    pub arch: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct PlatformInfo {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub mode: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct FeaturesInfo {
    #[prost(bool, tag = "1")]
    pub rbac: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct Version {
    #[prost(message, optional, tag = "2")]
    pub version: Option<VersionInfo>,
    #[prost(message, optional, tag = "3")]
    pub platform: Option<PlatformInfo>,
    #[prost(message, optional, tag = "4")]
    pub features: Option<FeaturesInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Hostname {
    #[prost(string, tag = "2")]
    pub hostname: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Time {
    #[prost(string, tag = "2")]
    pub server: String,
    #[prost(message, optional, tag = "3")]
    pub localtime: Option<Timestamp>,
    #[prost(message, optional, tag = "4")]
    pub remotetime: Option<Timestamp>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ApplyRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub data: Vec<u8>,
    #[prost(int32, tag = "4")]
    pub mode: i32,
    #[prost(bool, tag = "5")]
    pub dry_run: bool,
    #[prost(message, optional, tag = "6")]
    pub try_timeout: Option<Duration>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Applied {
    #[prost(string, repeated, tag = "2")]
    pub warnings: Vec<String>,
    #[prost(int32, tag = "3")]
    pub mode: i32,
    #[prost(string, tag = "4")]
    pub details: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct BootstrapRequest {
    #[prost(bool, tag = "1")]
    pub recover: bool,
    #[prost(bool, tag = "2")]
    pub skip_hash_check: bool,
}

/// What reboots and resets answer.
#[derive(Clone, PartialEq, Message)]
pub struct Actor {
    #[prost(string, tag = "2")]
    pub id: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct ResetPartition {
    #[prost(string, tag = "1")]
    pub label: String,
    #[prost(bool, tag = "2")]
    pub wipe: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct ResetRequest {
    #[prost(bool, tag = "1")]
    pub graceful: bool,
    #[prost(bool, tag = "2")]
    pub reboot: bool,
    #[prost(message, repeated, tag = "3")]
    pub partitions: Vec<ResetPartition>,
    #[prost(string, repeated, tag = "4")]
    pub user_disks: Vec<String>,
    #[prost(int32, tag = "5")]
    pub mode: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct UpgradeRequest {
    #[prost(string, tag = "1")]
    pub image: String,
    #[prost(bool, tag = "2")]
    pub preserve: bool,
    #[prost(bool, tag = "3")]
    pub stage: bool,
    #[prost(bool, tag = "4")]
    pub force: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct Upgraded {
    #[prost(string, tag = "2")]
    pub ack: String,
    #[prost(string, tag = "3")]
    pub actor: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct ArtifactsSource {
    #[prost(string, tag = "1")]
    pub image: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct LifecycleRequest {
    #[prost(message, optional, tag = "2")]
    pub source: Option<ArtifactsSource>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Progress {
    #[prost(oneof = "ProgressKind", tags = "1, 2")]
    pub kind: Option<ProgressKind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum ProgressKind {
    #[prost(string, tag = "1")]
    Message(String),
    #[prost(int32, tag = "2")]
    ExitCode(i32),
}

#[derive(Clone, PartialEq, Message)]
pub struct LifecycleReply {
    #[prost(message, optional, tag = "1")]
    pub progress: Option<Progress>,
}

#[derive(Clone, PartialEq, Message)]
pub struct PullRequest {
    #[prost(string, tag = "3")]
    pub image: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Pulled {
    #[prost(string, tag = "1")]
    pub name: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct OldPullRequest {
    #[prost(int32, tag = "1")]
    pub namespace: i32,
    #[prost(string, tag = "2")]
    pub reference: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct ReadRequest {
    #[prost(string, tag = "1")]
    pub path: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct ServiceRequest {
    #[prost(string, tag = "1")]
    pub id: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct ServiceAnswer {
    #[prost(string, tag = "2")]
    pub resp: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct ServiceEvent {
    #[prost(string, tag = "1")]
    pub msg: String,
    #[prost(string, tag = "2")]
    pub state: String,
    #[prost(message, optional, tag = "3")]
    pub ts: Option<Timestamp>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ServiceEvents {
    #[prost(message, repeated, tag = "1")]
    pub events: Vec<ServiceEvent>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ServiceHealth {
    #[prost(bool, tag = "1")]
    pub unknown: bool,
    #[prost(bool, tag = "2")]
    pub healthy: bool,
    #[prost(string, tag = "3")]
    pub last_message: String,
    #[prost(message, optional, tag = "4")]
    pub last_change: Option<Timestamp>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ServiceInfo {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(string, tag = "2")]
    pub state: String,
    #[prost(message, optional, tag = "3")]
    pub events: Option<ServiceEvents>,
    #[prost(message, optional, tag = "4")]
    pub health: Option<ServiceHealth>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ServiceList {
    #[prost(message, repeated, tag = "2")]
    pub services: Vec<ServiceInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub struct MembersRequest {
    #[prost(bool, tag = "1")]
    pub local: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct EtcdMember {
    #[prost(uint64, tag = "2")]
    pub id: u64,
    #[prost(string, tag = "3")]
    pub hostname: String,
    #[prost(string, repeated, tag = "4")]
    pub peer_urls: Vec<String>,
    #[prost(string, repeated, tag = "5")]
    pub client_urls: Vec<String>,
    #[prost(bool, tag = "6")]
    pub is_learner: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct EtcdMembers {
    #[prost(string, repeated, tag = "2")]
    pub legacy_members: Vec<String>,
    #[prost(message, repeated, tag = "3")]
    pub members: Vec<EtcdMember>,
}

#[derive(Clone, PartialEq, Message)]
pub struct RemoveMemberRequest {
    #[prost(uint64, tag = "1")]
    pub member: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Forfeited {
    #[prost(string, tag = "2")]
    pub member: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct MemberAlarm {
    #[prost(uint64, tag = "1")]
    pub member: u64,
    #[prost(int32, tag = "2")]
    pub alarm: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Alarms {
    #[prost(message, repeated, tag = "2")]
    pub alarms: Vec<MemberAlarm>,
}

#[derive(Clone, PartialEq, Message)]
pub struct MemberStatus {
    #[prost(string, tag = "1")]
    pub protocol_version: String,
    #[prost(int64, tag = "2")]
    pub db_size: i64,
    #[prost(int64, tag = "3")]
    pub db_size_in_use: i64,
    #[prost(uint64, tag = "4")]
    pub leader: u64,
    #[prost(uint64, tag = "5")]
    pub raft_index: u64,
    #[prost(uint64, tag = "6")]
    pub raft_term: u64,
    #[prost(uint64, tag = "7")]
    pub raft_applied_index: u64,
    #[prost(string, repeated, tag = "8")]
    pub errors: Vec<String>,
    #[prost(bool, tag = "9")]
    pub is_learner: bool,
    #[prost(uint64, tag = "10")]
    pub member_id: u64,
    #[prost(string, tag = "11")]
    pub storage_version: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct EtcdStatus {
    #[prost(message, optional, tag = "2")]
    pub status: Option<MemberStatus>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Any {
    #[prost(string, tag = "1")]
    pub url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct EventsRequest {
    #[prost(int32, tag = "1")]
    pub tail_events: i32,
    #[prost(string, tag = "2")]
    pub tail_id: String,
    #[prost(int32, tag = "3")]
    pub tail_seconds: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct TaskEvent {
    #[prost(string, tag = "1")]
    pub task: String,
    #[prost(int32, tag = "2")]
    pub action: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Event {
    #[prost(message, optional, tag = "2")]
    pub data: Option<Any>,
    #[prost(string, tag = "3")]
    pub id: String,
    #[prost(string, tag = "4")]
    pub actor: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct MemInfo {
    #[prost(uint64, tag = "1")]
    pub total: u64,
    #[prost(uint64, tag = "2")]
    pub free: u64,
    #[prost(uint64, tag = "3")]
    pub available: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Memory {
    #[prost(message, optional, tag = "2")]
    pub meminfo: Option<MemInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub struct MountStat {
    #[prost(string, tag = "1")]
    pub filesystem: String,
    #[prost(uint64, tag = "2")]
    pub size: u64,
    #[prost(uint64, tag = "3")]
    pub available: u64,
    #[prost(string, tag = "4")]
    pub mounted_on: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Mounts {
    #[prost(message, repeated, tag = "2")]
    pub stats: Vec<MountStat>,
}

#[derive(Clone, PartialEq, Message)]
pub struct DiskInfo {
    #[prost(uint64, tag = "1")]
    pub size: u64,
    #[prost(string, tag = "3")]
    pub device_name: String,
    #[prost(bool, tag = "11")]
    pub system_disk: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct Disks {
    #[prost(message, repeated, tag = "2")]
    pub disks: Vec<DiskInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SystemStat {
    #[prost(uint64, tag = "2")]
    pub boot_time: u64,
}
