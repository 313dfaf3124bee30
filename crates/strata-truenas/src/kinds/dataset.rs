//! Datasets. The parents of one are made with it, and it is never deleted while anything is in it.

use strata_resource::{Shown, kind};

kind! {
    /// A dataset on a TrueNAS.
    "dataset" {
        called: "dataset {dataset}",
        identity: &["dataset"],
        no_tofu: Some("OpenTofu has no part in a TrueNAS here"),
        proof: "the user property `strata:mark` with lineage and address, or the state",
        recovery: "looked at again; created if it is not there",
        shown: Shown { removal: |_, _| "deleted, as it is empty", ..Shown::USUAL },
    }
    /// its path: `tank/k8s/homelab`
    "dataset": Text => Replace [because("another name is another dataset")];
    /// any property of ZFS
    "properties.*": Text => InPlace;
}
