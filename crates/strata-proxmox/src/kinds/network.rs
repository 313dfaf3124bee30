//! The network of a host. Proxmox stages changes of interfaces and brings them into effect together.

use strata_resource::kind;

use super::shared::{ADOPT, DATACENTER};

kind! {
    /// The interfaces of a host that the source speaks of.
    "network" {
        called: "network of {network}",
        identity: &["network"],
        proof: "for each interface the state, or `adopt`",
        shares: &[ADOPT],
        staged: true,
        busy: "bring what is staged into effect (`pvesh set /nodes/{name}/network`) or take it back (`pvesh delete /nodes/{name}/network`)",
        ..DATACENTER
    }
    /// the host
    "network": Text => InPlace;
    /// changes wait for a reload; never wanted
    "staged": Bool => InPlace [off_by_default];
    /// an interface, by its name: `vmbr1`
    "interfaces.*": Map => InPlace [slot];
    /// the interfaces of a bridge or bond
    "interfaces.*.ports": List => InPlace [set];
    /// a bridge that passes VLANs on
    "interfaces.*.vlan_aware": Bool => InPlace [off_by_default];
    /// up with the host
    "interfaces.*.autostart": Bool => InPlace [off_by_default];
    /// what people read of it
    "interfaces.*.comment": Text => InPlace [default_text("")];
    /// what is there already is taken over
    "interfaces.*.adopt": Bool => Computed;
    /// the source allows a change that may cut the connection
    "interfaces.*.may_cut": Bool => Computed;
    /// any other key of an interface
    "interfaces.*.options.*": Text => InPlace;
    /// type, addresses, gateways, device, tag, MTU, mode
    "interfaces.*.*": Any => InPlace;
}
