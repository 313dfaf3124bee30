//! Names for addresses, in the firewall.

use strata_resource::kind;

use super::shared::{DATACENTER, MARK_IN_COMMENT, MARKED};

kind! {
    /// A name for an address, in the firewall.
    "alias" {
        called: "alias {alias}",
        identity: &["alias"],
        proof: MARK_IN_COMMENT,
        shares: &[MARKED],
        at_once: true,
        ..DATACENTER
    }
    /// its name
    "alias": Text => InPlace;
    /// the address or network
    "cidr": Text => InPlace;
}
