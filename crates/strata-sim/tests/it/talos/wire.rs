//! The wire format once more, from the client's side: only what these tests send and read.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub struct Apply {
    #[prost(bytes = "vec", tag = "1")]
    pub data: Vec<u8>,
    #[prost(int32, tag = "4")]
    pub mode: i32,
    #[prost(bool, tag = "5")]
    pub dry_run: bool,
    #[prost(message, optional, tag = "6")]
    pub timeout: Option<Seconds>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Seconds {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Applied {
    #[prost(int32, tag = "3")]
    pub mode: i32,
    #[prost(string, tag = "4")]
    pub details: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct AppliedList {
    #[prost(message, repeated, tag = "1")]
    pub messages: Vec<Applied>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Flag {
    #[prost(bool, tag = "1")]
    pub on: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct Number {
    #[prost(uint64, tag = "1")]
    pub value: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Text {
    #[prost(string, tag = "1")]
    pub value: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Data {
    #[prost(bytes = "vec", tag = "2")]
    pub bytes: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Member {
    #[prost(uint64, tag = "2")]
    pub id: u64,
    #[prost(string, tag = "3")]
    pub hostname: String,
    #[prost(bool, tag = "6")]
    pub learner: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct Members {
    #[prost(message, repeated, tag = "3")]
    pub members: Vec<Member>,
}

#[derive(Clone, PartialEq, Message)]
pub struct MembersList {
    #[prost(message, repeated, tag = "1")]
    pub messages: Vec<Members>,
}

#[derive(Clone, PartialEq, Message)]
pub struct VersionInfo {
    #[prost(string, tag = "1")]
    pub tag: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Metadata {
    #[prost(string, tag = "1")]
    pub hostname: String,
    #[prost(string, tag = "2")]
    pub error: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Version {
    #[prost(message, optional, tag = "1")]
    pub metadata: Option<Metadata>,
    #[prost(message, optional, tag = "2")]
    pub version: Option<VersionInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub struct VersionList {
    #[prost(message, repeated, tag = "1")]
    pub messages: Vec<Version>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Reset {
    #[prost(bool, tag = "1")]
    pub graceful: bool,
    #[prost(bool, tag = "2")]
    pub reboot: bool,
    #[prost(message, repeated, tag = "3")]
    pub partitions: Vec<Partition>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Partition {
    #[prost(string, tag = "1")]
    pub label: String,
    #[prost(bool, tag = "2")]
    pub wipe: bool,
}

/// An upgrade through the lifecycle service: the reference is one level deeper.
#[derive(Clone, PartialEq, Message)]
pub struct Lifecycle {
    #[prost(message, optional, tag = "2")]
    pub source: Option<Text>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Get {
    #[prost(string, tag = "1")]
    pub namespace: String,
    #[prost(string, tag = "2")]
    pub kind: String,
    #[prost(string, tag = "3")]
    pub id: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Spec {
    #[prost(bytes = "vec", tag = "1")]
    pub proto: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Resource {
    #[prost(message, optional, tag = "2")]
    pub spec: Option<Spec>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Got {
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
}
