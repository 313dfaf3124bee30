//! `machine.ImageService` and `machine.LifecycleService` (from Talos 1.13 on), and the older way to pull an image.

/// One of the node's stores of images: a containerd and a namespace of it.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct Containerd {
    #[prost(int32, tag = "1")]
    pub(in crate::api) driver: i32,
    #[prost(int32, tag = "2")]
    pub(in crate::api) namespace: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct PullRequest {
    #[prost(message, optional, tag = "1")]
    pub(in crate::api) containerd: Option<Containerd>,
    #[prost(string, tag = "3")]
    pub(in crate::api) image_ref: String,
}

/// Many of these tell of progress; the last one names the image.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct PullResponse {
    #[prost(string, optional, tag = "1")]
    pub(in crate::api) name: Option<String>,
}

/// `machine.MachineService/ImagePull`.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct OldPullRequest {
    #[prost(int32, tag = "1")]
    pub(in crate::api) namespace: i32,
    #[prost(string, tag = "2")]
    pub(in crate::api) reference: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct UpgradeRequest {
    #[prost(message, optional, tag = "1")]
    pub(in crate::api) containerd: Option<Containerd>,
    #[prost(message, optional, tag = "2")]
    pub(in crate::api) source: Option<Source>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct Source {
    #[prost(string, tag = "1")]
    pub(in crate::api) image_name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct UpgradeResponse {
    #[prost(message, optional, tag = "1")]
    pub(in crate::api) progress: Option<Progress>,
}

/// One of the two is there: a line of the installer's output, or how it ended.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::api) struct Progress {
    #[prost(string, optional, tag = "1")]
    pub(in crate::api) message: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub(in crate::api) exit_code: Option<i32>,
}
