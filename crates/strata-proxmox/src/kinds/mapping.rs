//! Device mappings.

use strata_resource::kind;

use super::shared::{DATACENTER, MARK_IN_COMMENT, MARKED};

kind! {
    /// A device that guests refer to by name.
    "mapping" {
        called: "{bus:upper} device {mapping}",
        identity: &["bus", "mapping"],
        proof: MARK_IN_COMMENT,
        shares: &[MARKED],
        at_once: true,
        ..DATACENTER
    }
    /// `pci` or `usb`
    "bus": Text => InPlace;
    /// its name
    "mapping": Text => InPlace;
    /// it is divided among guests
    "mediated": Bool => InPlace [off_by_default];
    /// the devices of each hypervisor
    "devices": List => InPlace [set];
}
