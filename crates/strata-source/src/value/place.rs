//! Labels of values that say where a machine is: what the offsets of an environment move.

/// A VMID, or a range of them.
pub const VM_ID: &str = "vmId";

/// An address, a network, a range; alone, in a list, or in a URL.
pub const ADDRESS: &str = "address";

/// A VLAN tag.
pub const VLAN: &str = "vlan";

/// A bridge of the host.
pub const BRIDGE: &str = "bridge";
