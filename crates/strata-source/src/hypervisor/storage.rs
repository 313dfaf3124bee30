//! Storages of a datacenter.

use strata_yaml::{Map, Raw, Spanned, Value, choice, record};

use crate::value::name::ID;
use crate::value::place::ADDRESS;

choice! {
    /// What a storage is.
    pub enum StorageType {
        Dir = "dir",
        Lvm = "lvm",
        LvmThin = "lvmthin",
        Zfspool = "zfspool",
        Btrfs = "btrfs",
        Nfs = "nfs",
        Cifs = "cifs",
        Pbs = "pbs",
        Rbd = "rbd",
        Cephfs = "cephfs",
        Iscsi = "iscsi",
        Zfs = "zfs",
    }
}

choice! {
    /// What a storage may hold.
    pub enum StorageContent {
        Images = "images",
        Rootdir = "rootdir",
        Iso = "iso",
        Vztmpl = "vztmpl",
        Backup = "backup",
        Snippets = "snippets",
        Import = "import",
    }
}

record! {
    /// A storage.
    pub struct Storage {
        /// what it is
        "type" kind: StorageType;
        /// what it may hold
        "content" content: Vec<StorageContent>;
        /// the nodes that have it; otherwise all
        "nodes" nodes: Vec<Spanned<String>> [text(ID)];
        /// the same on every node
        "shared" shared: Option<bool>;
        /// whether it is used
        "enabled" enabled: bool = true;
        /// dir, btrfs: the folder
        "path" path: Option<String>;
        /// nfs, cifs, pbs: the server
        "server" server: Option<String> [label(ADDRESS)];
        /// nfs: what the server exports
        "export" export: Option<String>;
        /// cifs: what the server shares
        "share" share: Option<String>;
        /// pbs: the datastore
        "datastore" datastore: Option<String>;
        /// pbs: the namespace
        "namespace" namespace: Option<String>;
        /// pbs: the certificate's fingerprint
        "fingerprint" fingerprint: Option<String>;
        /// cifs, pbs: who
        "username" username: Option<Value<String>>;
        /// cifs, pbs: their password
        "password" password: Option<Value<String>> [secret];
        /// lvm, lvmthin: the volume group
        "volumeGroup" volume_group: Option<String>;
        /// lvmthin: the thin pool
        "thinPool" thin_pool: Option<String>;
        /// zfspool, rbd: the pool
        "pool" pool: Option<String>;
        /// zfspool: space is taken as it is used
        "sparse" sparse: Option<bool>;
        /// any key that Proxmox knows and Strata has no field for
        "options" options: Map<Raw>;
        /// taken over if it is there already and nobody's mark is on it
        "adopt" adopt: bool = false;
        /// never destroyed or replaced by Strata
        "protect" protect: bool = false;
    }
}

impl Storage {
    /// Whether every node sees the same content: as written, or by what it is.
    pub fn is_shared(&self) -> bool {
        let by_type = match self.kind {
            StorageType::Nfs
            | StorageType::Cifs
            | StorageType::Pbs
            | StorageType::Rbd
            | StorageType::Cephfs
            | StorageType::Iscsi
            | StorageType::Zfs => true,
            StorageType::Dir
            | StorageType::Lvm
            | StorageType::LvmThin
            | StorageType::Zfspool
            | StorageType::Btrfs => false,
        };
        by_type || self.shared == Some(true)
    }
}
