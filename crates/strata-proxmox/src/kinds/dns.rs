//! Name servers of a host.

use strata_resource::kind;

use super::shared::{ADOPT, DATACENTER, NO_MARK};

kind! {
    /// The name servers of a host.
    "dns" {
        called: "name servers of {dns}",
        identity: &["dns"],
        proof: NO_MARK,
        shares: &[ADOPT],
        always_there: true,
        ..DATACENTER
    }
    /// the host
    "dns": Text => InPlace;
    /// its name servers, in order
    "servers": List => InPlace;
    /// the domain that names are looked up in
    "search": Text => InPlace;
}
