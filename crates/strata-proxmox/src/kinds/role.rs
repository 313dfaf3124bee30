//! Roles.

use strata_resource::kind;

use super::shared::{ADOPT, DATACENTER, NO_MARK};

kind! {
    /// A named set of privileges.
    "role" {
        called: "role {role}",
        identity: &["role"],
        proof: NO_MARK,
        shares: &[ADOPT],
        at_once: true,
        ..DATACENTER
    }
    /// its name
    "role": Text => InPlace;
    /// what it allows
    "privileges": List => InPlace [set];
}
