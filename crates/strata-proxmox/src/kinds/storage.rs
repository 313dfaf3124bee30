//! Definitions of storages; what is stored there is not part of them.

use strata_resource::{Shown, kind};

use super::shared::{ADOPT, DATACENTER, NO_MARK};

const FIXED: &str = "Proxmox cannot change it: the definition is removed and made anew; what is stored stays";

kind! {
    /// The definition of a storage.
    "storage" {
        called: "storage {storage}, {type}",
        identity: &["storage"],
        proof: NO_MARK,
        shares: &[ADOPT],
        at_once: true,
        shown: Shown { told: &["type"], removal: |_, _| "no longer defined", ..DATACENTER.shown },
        ..DATACENTER
    }
    /// its name
    "storage": Text => InPlace;
    /// `dir`, `nfs`, `zfspool`, …
    "type": Text => Replace [because(FIXED)];
    /// what may be stored
    "content": List => InPlace [set];
    /// the hypervisors that have it
    "nodes": List => InPlace [set];
    /// it is the same on every hypervisor
    "shared": Bool => InPlace [off_by_default];
    /// it is used
    "enabled": Bool => InPlace [on_by_default];
    /// space is taken when it is written
    "sparse": Bool => InPlace [off_by_default];
    /// the password of its server
    "password": Text => InPlace [write_only];
    /// any other key of Proxmox
    "options.*": Text => InPlace;
    /// a folder of the host
    "path": Text => Replace [because(FIXED)];
    /// the server that it is on
    "server": Text => Replace [because(FIXED)];
    /// the export of an NFS server
    "export": Text => Replace [because(FIXED)];
    /// the share of an SMB server
    "share": Text => Replace [because(FIXED)];
    /// the datastore of a backup server
    "datastore": Text => Replace [because(FIXED)];
    /// the namespace on a backup server
    "namespace": Text => InPlace;
    /// the fingerprint of a server's certificate
    "fingerprint": Text => InPlace;
    /// the user of a server
    "username": Text => InPlace;
    /// an LVM volume group
    "volume_group": Text => Replace [because(FIXED)];
    /// an LVM thin pool
    "thin_pool": Text => Replace [because(FIXED)];
    /// a pool of ZFS or Ceph
    "pool": Text => Replace [because(FIXED)];
}
