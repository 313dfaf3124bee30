//! The controllers of Flux.

use strata_resource::{Shown, kind};

use super::{LETTING_GO, with_the_cluster};

kind! {
    /// The controllers of Flux.
    "flux" {
        called: "Flux {version}",
        identity: &["flux"],
        proof: "the state, and the labels that Flux' own manifests carry",
        shown: Shown {
            // Nothing is missing of what is made.
            told: &["missing"],
            removal: |_, ends| with_the_cluster(ends, "let go: its controllers stay"),
            removing: LETTING_GO,
            ..Shown::USUAL
        },
    }
    /// its namespace
    "flux": Text => InPlace;
    /// its version
    "version": Text => InPlace;
    /// where its manifests are: a URL, or `file:…`
    "source": Text => CreateOnly;
    /// what they must add up to: `sha256:…`
    "checksum": Text => InPlace [write_only];
    /// the digest of the file's content
    "manifests": Text => InPlace [write_only];
    /// controllers that were installed, and are gone
    "missing": List => InPlace [set];
}
