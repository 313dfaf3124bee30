//! Kubernetes client: server-side apply, waits, nodes and drains; Flux and the secrets it starts from; the `infrastructure/` tree.
//!
//! Every function that writes makes one remote write, so that a caller can look before each whether it may. What takes
//! several of them says so, and takes the look as an argument.

mod apply;
mod client;
mod download;
mod drain;
mod error;
pub mod flux;
mod health;
mod kubeconfig;
mod manifest;
mod node;
mod object;
pub mod scaffold;
mod secret;
mod wait;
mod watch;

pub use apply::{ApplyOptions, FIELD_MANAGER};
pub use client::{Deletion, KubeClient, KubeOptions, Selector};
pub use download::{Download, DownloadError};
pub use drain::{DrainError, DrainOptions, DrainPlan, DrainReport, Eviction, PodRef, Remaining};
pub use error::{FieldConflict, Guarded, KubeError, Trouble};
pub use health::ServerVersion;
pub use kubeconfig::{Kubeconfig, KubeconfigError};
pub use manifest::{ManifestError, read_manifest};
pub use node::{Node, Taint};
pub use object::{NotAnObject, Object, ObjectRef, content_digest};
pub use secret::BootstrapSecret;
pub use wait::{Patience, Progress, Until};
pub use watch::{Watch, WatchEvent};
