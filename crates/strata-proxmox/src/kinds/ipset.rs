//! Named sets of addresses, in the firewall.

use strata_resource::kind;

use super::shared::{DATACENTER, MARK_IN_COMMENT, MARKED};

kind! {
    /// A named set of addresses, in the firewall.
    "ipset" {
        called: "IP set {ipset}",
        identity: &["ipset"],
        proof: MARK_IN_COMMENT,
        shares: &[MARKED],
        ..DATACENTER
    }
    /// its name
    "ipset": Text => InPlace;
    /// what is in it
    "addresses": List => InPlace [set];
}
