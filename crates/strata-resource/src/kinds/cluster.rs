//! What a cluster has once: its etcd, its Kubernetes, and the hand-over to Flux.
//! ```text
//! schematic   schematic: Text (its id: 64 hex digits)   content: Text (YAML)   factory: Text (URL)
//! bootstrap   etcd: Text (the cluster's name)   id: Text (the cluster's id)
//! kubernetes  kubernetes: Text (the cluster's name)   version: Text "v1.36.3"
//! secret      namespace, secret, type: Text   data: {key: Secret}
//! flux        flux: Text (its namespace)   version: Text   source: Text (URL, or `file:…`)   checksum: Text "sha256:…"
//!             manifests: Text (the digest of the file's content)   missing: [Text] (controllers that were installed, and are gone)
//! sync        namespace, sync: Text   repository, branch, path: Text   interval: Text   decryption: Text   auth: Text (a secret's name)
//! ```

use crate::rules::ChangeEffect::{CreateOnly, InPlace, Replace};
use crate::rules::{FieldRule, KindRules};

pub(super) fn rules() -> KindRules {
    KindRules::new(vec![
        FieldRule::new("id", Replace).because("other secrets are another cluster"),
        FieldRule::new("type", Replace).because("the type of a secret is fixed when it is made"),
        FieldRule::new("data.*", InPlace),
        FieldRule::new("schematic", InPlace),
        FieldRule::new("etcd", InPlace),
        FieldRule::new("kubernetes", InPlace),
        FieldRule::new("namespace", InPlace),
        FieldRule::new("secret", InPlace),
        FieldRule::new("flux", InPlace),
        FieldRule::new("sync", InPlace),
        FieldRule::new("repository", InPlace),
        FieldRule::new("branch", InPlace),
        FieldRule::new("path", InPlace),
        FieldRule::new("interval", InPlace),
        FieldRule::new("decryption", InPlace),
        FieldRule::new("auth", InPlace),
        FieldRule::new("content", CreateOnly),
        FieldRule::new("factory", CreateOnly),
        FieldRule::new("source", CreateOnly),
        FieldRule::new("checksum", InPlace).write_only(),
        FieldRule::new("manifests", InPlace).write_only(),
        FieldRule::new("missing", InPlace).set(),
        FieldRule::new("version", InPlace),
    ])
}
