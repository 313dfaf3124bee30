//! What Flux follows.

use strata_resource::{Shown, kind};

use super::{LETTING_GO, with_the_cluster};

kind! {
    /// What Flux follows: a git repository and a folder in it.
    "sync" {
        called: "{path} of {repository}",
        identity: &["namespace", "sync"],
        proof: "the state, and its name in Flux' namespace",
        shown: Shown {
            removal: |_, ends| with_the_cluster(ends, "let go: what it applied stays"),
            removing: LETTING_GO,
            ..Shown::USUAL
        },
    }
    /// its namespace
    "namespace": Text => InPlace;
    /// its name
    "sync": Text => InPlace;
    /// the repository
    "repository": Text => InPlace;
    /// the branch
    "branch": Text => InPlace;
    /// the folder
    "path": Text => InPlace;
    /// how often it is looked at
    "interval": Text => InPlace;
    /// the secret with the key that decrypts
    "decryption": Text => InPlace;
    /// the secret with what the repository asks for
    "auth": Text => InPlace;
}
