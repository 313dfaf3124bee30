//! The messages of calls that look into a machine: files, logs, processes, containers, health.

use prost::Message;

use super::{Duration, Timestamp};

#[derive(Clone, PartialEq, Message)]
pub struct HealthRequest {
    #[prost(message, optional, tag = "1")]
    pub wait: Option<Duration>,
    #[prost(message, optional, tag = "2")]
    pub nodes: Option<HealthNodes>,
}

#[derive(Clone, PartialEq, Message)]
pub struct HealthNodes {
    #[prost(string, repeated, tag = "1")]
    pub control_planes: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub workers: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct HealthProgress {
    #[prost(string, tag = "2")]
    pub message: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct DmesgRequest {
    #[prost(bool, tag = "1")]
    pub follow: bool,
    #[prost(bool, tag = "2")]
    pub tail: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct LogsRequest {
    #[prost(string, tag = "1")]
    pub namespace: String,
    #[prost(string, tag = "2")]
    pub id: String,
    #[prost(bool, tag = "4")]
    pub follow: bool,
    #[prost(int32, tag = "5")]
    pub tail: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct LogsContainer {
    #[prost(string, repeated, tag = "2")]
    pub ids: Vec<String>,
}

/// Which containers are asked for: those of Talos, or those of Kubernetes.
#[derive(Clone, PartialEq, Message)]
pub struct ContainersRequest {
    #[prost(string, tag = "1")]
    pub namespace: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct ContainerInfo {
    #[prost(string, tag = "1")]
    pub namespace: String,
    #[prost(string, tag = "2")]
    pub id: String,
    #[prost(string, tag = "3")]
    pub image: String,
    #[prost(uint32, tag = "4")]
    pub pid: u32,
    #[prost(string, tag = "5")]
    pub status: String,
    #[prost(string, tag = "6")]
    pub pod: String,
    #[prost(string, tag = "7")]
    pub name: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Containers {
    #[prost(message, repeated, tag = "2")]
    pub containers: Vec<ContainerInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Stat {
    #[prost(string, tag = "1")]
    pub namespace: String,
    #[prost(string, tag = "2")]
    pub id: String,
    #[prost(uint64, tag = "4")]
    pub memory: u64,
    #[prost(uint64, tag = "5")]
    pub processor: u64,
    #[prost(string, tag = "6")]
    pub pod: String,
    #[prost(string, tag = "7")]
    pub name: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Stats {
    #[prost(message, repeated, tag = "2")]
    pub stats: Vec<Stat>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ProcessInfo {
    #[prost(int32, tag = "1")]
    pub pid: i32,
    #[prost(int32, tag = "2")]
    pub parent: i32,
    #[prost(string, tag = "3")]
    pub state: String,
    #[prost(int32, tag = "4")]
    pub threads: i32,
    #[prost(double, tag = "5")]
    pub time: f64,
    #[prost(uint64, tag = "6")]
    pub virtual_memory: u64,
    #[prost(uint64, tag = "7")]
    pub resident_memory: u64,
    #[prost(string, tag = "8")]
    pub command: String,
    #[prost(string, tag = "9")]
    pub executable: String,
    #[prost(string, tag = "10")]
    pub arguments: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Processes {
    #[prost(message, repeated, tag = "2")]
    pub processes: Vec<ProcessInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ListRequest {
    #[prost(string, tag = "1")]
    pub root: String,
    #[prost(bool, tag = "2")]
    pub recurse: bool,
    #[prost(int32, tag = "3")]
    pub depth: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct FileInfo {
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(int64, tag = "3")]
    pub size: i64,
    #[prost(uint32, tag = "4")]
    pub mode: u32,
    #[prost(int64, tag = "5")]
    pub modified: i64,
    #[prost(bool, tag = "6")]
    pub directory: bool,
    #[prost(string, tag = "9")]
    pub relative: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct UsageRequest {
    #[prost(string, repeated, tag = "4")]
    pub paths: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Usage {
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(int64, tag = "3")]
    pub size: i64,
    #[prost(string, tag = "5")]
    pub relative: String,
}

/// 1 is what Talos runs itself, 3 and 2 are what Kubernetes runs.
#[derive(Clone, PartialEq, Message)]
pub struct ImagesRequest {
    #[prost(int32, tag = "1")]
    pub namespace: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct OldImage {
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(string, tag = "3")]
    pub digest: String,
    #[prost(int64, tag = "4")]
    pub size: i64,
    #[prost(message, optional, tag = "5")]
    pub created: Option<Timestamp>,
}
