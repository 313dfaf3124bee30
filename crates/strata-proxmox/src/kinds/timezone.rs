//! The time zone of a host.

use strata_resource::kind;

use super::shared::{ADOPT, DATACENTER, NO_MARK};

kind! {
    /// The time zone of a host.
    "timezone" {
        called: "time zone of {clock}",
        identity: &["clock"],
        proof: NO_MARK,
        shares: &[ADOPT],
        always_there: true,
        ..DATACENTER
    }
    /// the host
    "clock": Text => InPlace;
    /// its time zone
    "zone": Text => InPlace;
}
