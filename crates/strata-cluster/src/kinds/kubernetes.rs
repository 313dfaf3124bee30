//! The Kubernetes of a cluster.

use strata_resource::{Shown, kind};

use super::{LETTING_GO, goes_with_its_machines};

kind! {
    /// The Kubernetes of a cluster: the version of its components.
    "kubernetes" {
        called: "Kubernetes {version}",
        identity: &["kubernetes"],
        proof: "it answers to the certificate authority of the cluster",
        shown: Shown { removal: goes_with_its_machines, removing: LETTING_GO, ..Shown::USUAL },
        gone: "it went with its etcd",
    }
    /// the cluster's name
    "kubernetes": Text => InPlace;
    /// the version of its components: `v1.36.3`
    "version": Text => InPlace;
}
