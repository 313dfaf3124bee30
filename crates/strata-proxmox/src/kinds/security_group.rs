//! Named sets of rules, in the firewall.

use strata_resource::kind;

use super::shared::{DATACENTER, MARK_IN_COMMENT, MARKED};

kind! {
    /// A named set of rules, in the firewall.
    "securitygroup" {
        called: "security group {security_group}",
        identity: &["security_group"],
        proof: MARK_IN_COMMENT,
        shares: &[MARKED],
        ..DATACENTER
    }
    /// its name
    "security_group": Text => InPlace;
    /// rules in their order
    "rules": List => InPlace;
}
