//! The messages of the Talos API that are sent and read here, by their numbers on the wire.
//!
//! Numbers and types are those of Talos 1.11 to 1.14; between these versions no message that is used here changed one. Fields that nobody
//! reads are left out: a reader skips what it does not know. Enumerations are plain numbers, since a newer node may send one that
//! is not known yet. docs/decisions/0007 says why they are written by hand.

pub(crate) mod cosi;
pub(crate) mod etcd;
pub(crate) mod image;
pub(crate) mod machine;

/// What has no fields.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Empty {}

/// A piece of a stream of bytes; it may be a piece of a kubeconfig.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub(crate) struct Data {
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) bytes: bytes::Bytes,
}

impl std::fmt::Debug for Data {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Data({} bytes)", self.bytes.len())
    }
}

/// A length of time.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Span {
    #[prost(int64, tag = "1")]
    pub(crate) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(crate) nanos: i32,
}

impl From<std::time::Duration> for Span {
    fn from(duration: std::time::Duration) -> Self {
        let nanos = i32::try_from(duration.subsec_nanos()).unwrap_or_default();
        Self { seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX), nanos }
    }
}

/// An answer to a call on one node: a list of one. Several only ever come from a node that was asked to ask others.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub(crate) struct Answers<T: prost::Message + Default> {
    #[prost(message, repeated, tag = "1")]
    pub(crate) messages: Vec<T>,
}
