//! Datasets. The parents of one are made with it, and it is never deleted while anything is in it.

use strata_resource::{Shown, kind};

kind! {
    /// A dataset on a TrueNAS.
    "dataset" {
        called: "dataset {dataset}",
        identity: &["dataset"],
        proof: "the state",
        shown: Shown { removal: |_, _| "deleted, as it is empty", ..Shown::USUAL },
    }
    /// its path: `tank/k8s/homelab`
    "dataset": Text => Replace [because("another name is another dataset")];
    /// any property of ZFS
    "properties.*": Text => InPlace;
}
