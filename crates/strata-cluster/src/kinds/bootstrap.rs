//! The etcd of a cluster, bootstrapped once.

use strata_resource::{Rollout, Shown, kind};

use super::{LETTING_GO, goes_with_its_machines};

kind! {
    /// The etcd of a cluster, bootstrapped once.
    "bootstrap" {
        called: "etcd, begun once",
        identity: &["etcd"],
        proof: "its members answer to the certificate authority of the cluster",
        shown: Shown { removal: goes_with_its_machines, removing: LETTING_GO, ..Shown::USUAL },
        gone: "etcd was bootstrapped once, and is lost",
        rollout: Rollout::Gate,
        lost: Some((
            "etcd has lost its majority, and control planes of it are gone: {what}",
            "start control planes that are only stopped; else `strata talos snapshot {stack}` saves what is left, and `strata talos restore {stack} --snapshot FILE` brings etcd back from a snapshot",
        )),
    }
    /// the cluster's name
    "etcd": Text => InPlace;
    /// the cluster's id
    "id": Text => Replace [because("other secrets are another cluster")];
}
