//! Secrets that are there before Flux is.

use strata_resource::{Shape, Shown, kind};

use super::with_the_cluster;

kind! {
    /// A Kubernetes secret that is there before Flux is.
    "secret" {
        called: "Kubernetes secret {namespace}/{secret}",
        identity: &["namespace", "secret"],
        proof: "its label, and the state",
        shown: Shown { removal: |_, ends| with_the_cluster(ends, "deleted"), shape: Shape::Secret, ..Shown::USUAL },
    }
    /// its namespace
    "namespace": Text => InPlace;
    /// its name
    "secret": Text => InPlace;
    /// its type
    "type": Text => Replace [because("the type of a secret is fixed when it is made")];
    /// what is in it
    "data.*": Text => InPlace;
}
