//! `cosi.resource.State`: what a node knows about itself, as resources.

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GetRequest {
    #[prost(string, tag = "1")]
    pub(crate) namespace: String,
    #[prost(string, tag = "2")]
    pub(crate) kind: String,
    #[prost(string, tag = "3")]
    pub(crate) id: String,
}

/// What Get answers, and each message that List answers.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ResourceResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) resource: Option<Resource>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ListRequest {
    #[prost(string, tag = "1")]
    pub(crate) namespace: String,
    #[prost(string, tag = "2")]
    pub(crate) kind: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct WatchRequest {
    #[prost(string, tag = "1")]
    pub(crate) namespace: String,
    #[prost(string, tag = "2")]
    pub(crate) kind: String,
    #[prost(string, optional, tag = "3")]
    pub(crate) id: Option<String>,
    #[prost(message, optional, tag = "4")]
    pub(crate) options: Option<WatchOptions>,
    #[prost(int32, tag = "5")]
    pub(crate) api_version: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct WatchOptions {
    #[prost(bool, tag = "1")]
    pub(crate) bootstrap_contents: bool,
}

/// The first one is empty: it says that the watch has begun.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct WatchResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) events: Vec<Event>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Event {
    #[prost(message, optional, tag = "1")]
    pub(crate) resource: Option<Resource>,
    #[prost(int32, tag = "2")]
    pub(crate) event_type: i32,
    #[prost(string, optional, tag = "4")]
    pub(crate) error: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Resource {
    #[prost(message, optional, tag = "1")]
    pub(crate) metadata: Option<Metadata>,
    #[prost(message, optional, tag = "2")]
    pub(crate) spec: Option<Spec>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Metadata {
    #[prost(string, tag = "1")]
    pub(crate) namespace: String,
    #[prost(string, tag = "2")]
    pub(crate) kind: String,
    #[prost(string, tag = "3")]
    pub(crate) id: String,
    #[prost(string, tag = "4")]
    pub(crate) version: String,
    #[prost(string, tag = "6")]
    pub(crate) phase: String,
}

/// The same twice. It may hold secrets.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub(crate) struct Spec {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) proto: Vec<u8>,
    #[prost(string, tag = "2")]
    pub(crate) yaml: String,
}

impl std::fmt::Debug for Spec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Spec({} bytes)", self.proto.len())
    }
}

/// What `proto` of a machine configuration holds: the bytes that the node was given. What `yaml` makes of them is another text.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub(crate) struct MachineConfigSpec {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) yaml_marshalled: Vec<u8>,
}
