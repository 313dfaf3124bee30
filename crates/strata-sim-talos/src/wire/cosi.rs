//! The messages of the resource API, and the contents of the resources that the simulator has.

use std::collections::BTreeMap;

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub struct Metadata {
    #[prost(string, tag = "1")]
    pub namespace: String,
    #[prost(string, tag = "2")]
    pub kind: String,
    #[prost(string, tag = "3")]
    pub id: String,
    #[prost(string, tag = "4")]
    pub version: String,
    #[prost(string, tag = "5")]
    pub owner: String,
    #[prost(string, tag = "6")]
    pub phase: String,
    #[prost(message, optional, tag = "7")]
    pub created: Option<super::Timestamp>,
    #[prost(message, optional, tag = "8")]
    pub updated: Option<super::Timestamp>,
    #[prost(btree_map = "string, string", tag = "11")]
    pub annotations: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Spec {
    #[prost(bytes = "vec", tag = "1")]
    pub proto: Vec<u8>,
    #[prost(string, tag = "2")]
    pub yaml: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Resource {
    #[prost(message, optional, tag = "1")]
    pub metadata: Option<Metadata>,
    #[prost(message, optional, tag = "2")]
    pub spec: Option<Spec>,
}

#[derive(Clone, PartialEq, Message)]
pub struct GetRequest {
    #[prost(string, tag = "1")]
    pub namespace: String,
    #[prost(string, tag = "2")]
    pub kind: String,
    #[prost(string, tag = "3")]
    pub id: String,
}

/// The reply of a get, and each one of a list.
#[derive(Clone, PartialEq, Message)]
pub struct ResourceReply {
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
}

#[derive(Clone, PartialEq, Message)]
pub struct WatchOptions {
    #[prost(bool, tag = "1")]
    pub bootstrap_contents: bool,
    #[prost(int32, tag = "2")]
    pub tail_events: i32,
    #[prost(bool, tag = "5")]
    pub aggregated: bool,
    #[prost(bool, tag = "7")]
    pub bootstrap_bookmark: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct WatchRequest {
    #[prost(string, tag = "1")]
    pub namespace: String,
    #[prost(string, tag = "2")]
    pub kind: String,
    #[prost(string, optional, tag = "3")]
    pub id: Option<String>,
    #[prost(message, optional, tag = "4")]
    pub options: Option<WatchOptions>,
    #[prost(int32, tag = "5")]
    pub api_version: i32,
}

pub const CREATED: i32 = 0;
pub const UPDATED: i32 = 1;
pub const DESTROYED: i32 = 2;
pub const BOOTSTRAPPED: i32 = 3;

#[derive(Clone, PartialEq, Message)]
pub struct Event {
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    #[prost(int32, tag = "2")]
    pub kind: i32,
    #[prost(message, optional, tag = "3")]
    pub old: Option<Resource>,
}

#[derive(Clone, PartialEq, Message)]
pub struct WatchReply {
    #[prost(message, repeated, tag = "1")]
    pub events: Vec<Event>,
}

/// The content of a machine configuration.
#[derive(Clone, PartialEq, Message)]
pub struct MachineConfigSpec {
    #[prost(bytes = "vec", tag = "1")]
    pub yaml: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct BootIdSpec {
    #[prost(string, tag = "1")]
    pub boot_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct UnmetCondition {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub reason: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct MachineStatusStatus {
    #[prost(bool, tag = "1")]
    pub ready: bool,
    #[prost(message, repeated, tag = "2")]
    pub unmet: Vec<UnmetCondition>,
}

#[derive(Clone, PartialEq, Message)]
pub struct MachineStatusSpec {
    #[prost(int32, tag = "1")]
    pub stage: i32,
    #[prost(message, optional, tag = "2")]
    pub status: Option<MachineStatusStatus>,
}

#[derive(Clone, PartialEq, Message)]
pub struct NetIp {
    #[prost(bytes = "vec", tag = "1")]
    pub ip: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct MemberSpec {
    #[prost(string, tag = "1")]
    pub node_id: String,
    #[prost(message, repeated, tag = "2")]
    pub addresses: Vec<NetIp>,
    #[prost(string, tag = "3")]
    pub hostname: String,
    #[prost(int32, tag = "4")]
    pub machine_type: i32,
    #[prost(string, tag = "5")]
    pub operating_system: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct HostnameSpec {
    #[prost(string, tag = "1")]
    pub hostname: String,
    #[prost(string, tag = "2")]
    pub domainname: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct MachineTypeSpec {
    #[prost(int32, tag = "1")]
    pub machine_type: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct DefinitionSpec {
    #[prost(string, tag = "1")]
    pub kind: String,
    #[prost(string, tag = "2")]
    pub display: String,
    #[prost(string, tag = "3")]
    pub namespace: String,
    #[prost(string, repeated, tag = "4")]
    pub aliases: Vec<String>,
    #[prost(string, repeated, tag = "5")]
    pub all_aliases: Vec<String>,
    #[prost(message, repeated, tag = "6")]
    pub columns: Vec<Column>,
    #[prost(int32, tag = "7")]
    pub sensitivity: i32,
}

/// A column of a table of resources.
#[derive(Clone, PartialEq, Message)]
pub struct Column {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub path: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct ServiceSpec {
    #[prost(bool, tag = "1")]
    pub running: bool,
    #[prost(bool, tag = "2")]
    pub healthy: bool,
    #[prost(bool, tag = "3")]
    pub unknown: bool,
}

/// What may be switched off: the controller manager and the scheduler.
#[derive(Clone, PartialEq, Message)]
pub struct SwitchedSpec {
    #[prost(bool, tag = "1")]
    pub enabled: bool,
    #[prost(string, tag = "2")]
    pub image: String,
}

/// What begins with an image: the kubelet, and the API server.
#[derive(Clone, PartialEq, Message)]
pub struct ImageSpec {
    #[prost(string, tag = "1")]
    pub image: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct NodeStatusSpec {
    #[prost(string, tag = "1")]
    pub nodename: String,
    #[prost(bool, tag = "2")]
    pub ready: bool,
    #[prost(bool, tag = "3")]
    pub unschedulable: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct ManifestsConfigSpec {
    #[prost(string, tag = "1")]
    pub server: String,
    #[prost(string, tag = "2")]
    pub cluster_domain: String,
    #[prost(string, repeated, tag = "3")]
    pub pod_cidrs: Vec<String>,
    #[prost(bool, tag = "4")]
    pub proxy_enabled: bool,
    #[prost(string, tag = "5")]
    pub proxy_image: String,
    #[prost(bool, tag = "7")]
    pub dns_enabled: bool,
    #[prost(bool, tag = "11")]
    pub flannel_enabled: bool,
    #[prost(string, tag = "21")]
    pub cni: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct NodenameSpec {
    #[prost(string, tag = "1")]
    pub nodename: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct VersionSpec {
    #[prost(string, tag = "1")]
    pub version: String,
    #[prost(string, tag = "2")]
    pub name: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct EtcdMemberSpec {
    #[prost(string, tag = "1")]
    pub member_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct VolumeSpec {
    #[prost(int32, tag = "1")]
    pub phase: i32,
    #[prost(string, tag = "2")]
    pub location: String,
    #[prost(uint64, tag = "9")]
    pub size: u64,
}
