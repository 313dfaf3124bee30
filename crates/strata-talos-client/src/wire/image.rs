//! `machine.ImageService` and `machine.LifecycleService` (from Talos 1.13 on), and the older way to pull an image.

/// One of the node's stores of images: a containerd and a namespace of it.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Containerd {
    #[prost(int32, tag = "1")]
    pub(crate) driver: i32,
    #[prost(int32, tag = "2")]
    pub(crate) namespace: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PullRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) containerd: Option<Containerd>,
    #[prost(string, tag = "3")]
    pub(crate) image_ref: String,
}

/// Many of these tell of progress; the last one names the image.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PullResponse {
    #[prost(string, optional, tag = "1")]
    pub(crate) name: Option<String>,
}

/// `machine.MachineService/ImagePull`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct OldPullRequest {
    #[prost(int32, tag = "1")]
    pub(crate) namespace: i32,
    #[prost(string, tag = "2")]
    pub(crate) reference: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct UpgradeRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) containerd: Option<Containerd>,
    #[prost(message, optional, tag = "2")]
    pub(crate) source: Option<Source>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Source {
    #[prost(string, tag = "1")]
    pub(crate) image_name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct UpgradeResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) progress: Option<Progress>,
}

/// One of the two is there: a line of the installer's output, or how it ended.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Progress {
    #[prost(string, optional, tag = "1")]
    pub(crate) message: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub(crate) exit_code: Option<i32>,
}
