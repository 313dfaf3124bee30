//! `cosi.resource.State`: what a node knows about itself, as resources.

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct GetRequest {
    #[prost(string, tag = "1")]
    pub(in crate::api) namespace: String,
    #[prost(string, tag = "2")]
    pub(in crate::api) kind: String,
    #[prost(string, tag = "3")]
    pub(in crate::api) id: String,
}

/// What Get answers, and each message that List answers.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct ResourceResponse {
    #[prost(message, optional, tag = "1")]
    pub(in crate::api) resource: Option<Resource>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct ListRequest {
    #[prost(string, tag = "1")]
    pub(in crate::api) namespace: String,
    #[prost(string, tag = "2")]
    pub(in crate::api) kind: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct WatchRequest {
    #[prost(string, tag = "1")]
    pub(in crate::api) namespace: String,
    #[prost(string, tag = "2")]
    pub(in crate::api) kind: String,
    #[prost(string, optional, tag = "3")]
    pub(in crate::api) id: Option<String>,
    #[prost(message, optional, tag = "4")]
    pub(in crate::api) options: Option<WatchOptions>,
    #[prost(int32, tag = "5")]
    pub(in crate::api) api_version: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct WatchOptions {
    #[prost(bool, tag = "1")]
    pub(in crate::api) bootstrap_contents: bool,
}

/// The first one is empty: it says that the watch has begun.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct WatchResponse {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::api) events: Vec<Event>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct Event {
    #[prost(message, optional, tag = "1")]
    pub(in crate::api) resource: Option<Resource>,
    #[prost(int32, tag = "2")]
    pub(in crate::api) event_type: i32,
    #[prost(string, optional, tag = "4")]
    pub(in crate::api) error: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct Resource {
    #[prost(message, optional, tag = "1")]
    pub(in crate::api) metadata: Option<Metadata>,
    #[prost(message, optional, tag = "2")]
    pub(in crate::api) spec: Option<Spec>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct Metadata {
    #[prost(string, tag = "1")]
    pub(in crate::api) namespace: String,
    #[prost(string, tag = "2")]
    pub(in crate::api) kind: String,
    #[prost(string, tag = "3")]
    pub(in crate::api) id: String,
    #[prost(string, tag = "4")]
    pub(in crate::api) version: String,
    #[prost(string, tag = "6")]
    pub(in crate::api) phase: String,
}

/// The same twice. It may hold secrets.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub(in crate::api) struct Spec {
    #[prost(bytes = "vec", tag = "1")]
    pub(in crate::api) proto: Vec<u8>,
    #[prost(string, tag = "2")]
    pub(in crate::api) yaml: String,
}

impl std::fmt::Debug for Spec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Spec({} bytes)", self.proto.len())
    }
}

/// What `proto` of a machine configuration holds: the bytes that the node was given. What `yaml` makes of them is another text.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub(in crate::api) struct MachineConfigSpec {
    #[prost(bytes = "vec", tag = "1")]
    pub(in crate::api) yaml_marshalled: Vec<u8>,
}
