//! Pools.

use strata_resource::kind;

use super::shared::{DATACENTER, MARK_IN_COMMENT, MARKED};

kind! {
    /// A pool of guests and storages.
    "pool" {
        called: "pool {pool}",
        identity: &["pool"],
        proof: MARK_IN_COMMENT,
        shares: &[MARKED],
        at_once: true,
        ..DATACENTER
    }
    /// its name
    "pool": Text => InPlace;
}
