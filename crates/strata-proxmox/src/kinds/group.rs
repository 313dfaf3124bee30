//! Groups of users.

use strata_resource::kind;

use super::shared::{DATACENTER, MARK_IN_COMMENT, MARKED};

kind! {
    /// A group of users.
    "group" {
        called: "group {group}",
        identity: &["group"],
        proof: MARK_IN_COMMENT,
        shares: &[MARKED],
        at_once: true,
        ..DATACENTER
    }
    /// its name
    "group": Text => InPlace;
}
