//! Kubernetes: a client with server-side apply, waits, nodes and drains; Flux and the secrets it starts from; the `infrastructure/` tree.
//!
//! A [`KubeClient`] talks to the API of one cluster; an [`Object`] is any object as JSON, an [`ObjectRef`] its name; [`read_manifest`] reads
//! what others wrote; [`flux`] installs and follows Flux; [`scaffold`] writes the tree that Flux applies.
//!
//! Every function that writes makes one remote write, so that a caller can look before each whether it may. What takes several of them
//! says so, and takes the look as an argument. What a server says is scrubbed of every secret that was sent.
//!
//! ```
//! use strata_kubernetes::read_manifest;
//!
//! let manifest = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: limits, namespace: web}\ndata: {mode: 'yes'}\n---\n";
//! let objects = read_manifest(manifest)?;
//! assert_eq!(objects[0].reference().to_string(), "ConfigMap `web/limits`");
//! assert_eq!(objects[0].text("/data/mode"), Some("yes"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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

pub use apply::ApplyOptions;
pub(crate) use apply::FIELD_MANAGER;
pub use client::{Deletion, KubeClient, KubeOptions, Selector};
pub use download::{Download, DownloadError};
pub use drain::{DrainError, DrainOptions, DrainPlan, DrainReport, Eviction, PodRef, Remaining};
pub use error::{FieldConflict, Guarded, KubeError, Trouble};
pub use health::ServerVersion;
pub use kubeconfig::{Kubeconfig, KubeconfigError};
pub use manifest::{ManifestError, read_manifest};
pub use node::{Node, Taint};
pub(crate) use object::content_digest;
pub use object::{NotAnObject, Object, ObjectRef};
pub use secret::BootstrapSecret;
pub use wait::{Patience, Progress, Until};
pub use watch::{Watch, WatchEvent};
