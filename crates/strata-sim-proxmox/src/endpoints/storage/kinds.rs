//! The kinds of storage: which options each takes, what it can hold and in which formats.

/// What may be done with an option of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Must be given at creation and never changes.
    Fixed,
    /// May be given at creation and never changes.
    FixedOptional,
    /// Must be there.
    Required,
    Optional,
}

use Rule::{Fixed, FixedOptional, Optional, Required};

#[derive(Debug)]
pub struct Kind {
    pub name: &'static str,
    /// Beyond `nodes`, `disable` and `content`, which every kind takes.
    own: &'static [(&'static str, Rule)],
    /// Takes the options of a directory tree with files.
    files: bool,
    pub contents: &'static [&'static str],
    pub default_content: &'static str,
    pub formats: &'static [&'static str],
    pub default_format: &'static str,
    /// Options that are kept in files of their own and never shown.
    pub secrets: &'static [&'static str],
    pub select_existing: bool,
}

const EVERY: &[&str] = &["nodes", "disable", "content"];
const FILES: &[&str] =
    &["prune-backups", "max-protected-backups", "mkdir", "create-base-path", "create-subdirs"];
const TREE: &[&str] = &["images", "rootdir", "vztmpl", "iso", "backup", "snippets", "import"];
const TREE_OR_NONE: &[&str] = &["images", "rootdir", "vztmpl", "iso", "backup", "snippets", "none", "import"];

const NONE: Kind = Kind {
    name: "",
    own: &[],
    files: false,
    contents: &["images"],
    default_content: "images",
    formats: &["raw"],
    default_format: "raw",
    secrets: &[],
    select_existing: false,
};

/// In the order in which the API enumerates them.
pub const KINDS: &[Kind] = &[
    Kind {
        name: "btrfs",
        own: &[
            ("path", Fixed),
            ("shared", Optional),
            ("format", Optional),
            ("is_mountpoint", Optional),
            ("nocow", Optional),
            ("preallocation", Optional),
        ],
        files: true,
        contents: TREE_OR_NONE,
        default_content: "images,rootdir",
        formats: &["raw", "subvol"],
        ..NONE
    },
    Kind {
        name: "cephfs",
        own: &[
            ("path", Fixed),
            ("content-dirs", Optional),
            ("monhost", Optional),
            ("subdir", Optional),
            ("options", Optional),
            ("username", Optional),
            ("format", Optional),
            ("fuse", Optional),
            ("bwlimit", Optional),
            ("keyring", Optional),
            ("fs-name", Optional),
        ],
        files: true,
        contents: &["vztmpl", "iso", "backup", "snippets", "import"],
        default_content: "backup",
        secrets: &["keyring"],
        ..NONE
    },
    Kind {
        name: "cifs",
        own: &[
            ("path", Fixed),
            ("content-dirs", Optional),
            ("server", Fixed),
            ("share", Fixed),
            ("subdir", Optional),
            ("format", Optional),
            ("username", Optional),
            ("password", Optional),
            ("domain", Optional),
            ("smbversion", Optional),
            ("bwlimit", Optional),
            ("preallocation", Optional),
            ("options", Optional),
            ("snapshot-as-volume-chain", FixedOptional),
        ],
        files: true,
        contents: TREE,
        formats: &["qcow2", "raw", "vmdk"],
        secrets: &["password"],
        ..NONE
    },
    Kind {
        name: "dir",
        own: &[
            ("path", Fixed),
            ("content-dirs", Optional),
            ("shared", Optional),
            ("format", Optional),
            ("is_mountpoint", Optional),
            ("bwlimit", Optional),
            ("preallocation", Optional),
            ("snapshot-as-volume-chain", FixedOptional),
        ],
        files: true,
        contents: TREE_OR_NONE,
        default_content: "images,rootdir",
        formats: &["qcow2", "raw", "subvol", "vmdk"],
        ..NONE
    },
    Kind {
        name: "esxi",
        own: &[
            ("shared", Optional),
            ("server", Required),
            ("username", Required),
            ("password", Optional),
            ("skip-cert-verification", Optional),
            ("port", Optional),
        ],
        contents: &["import"],
        default_content: "import",
        formats: &["qcow2", "raw", "vmdk"],
        secrets: &["password"],
        ..NONE
    },
    Kind {
        name: "iscsi",
        own: &[("portal", Fixed), ("target", Fixed), ("bwlimit", Optional)],
        contents: &["images", "none"],
        select_existing: true,
        ..NONE
    },
    Kind {
        name: "iscsidirect",
        own: &[("portal", Fixed), ("target", Fixed), ("bwlimit", Optional)],
        contents: &["images", "none"],
        select_existing: true,
        ..NONE
    },
    Kind {
        name: "lvm",
        own: &[
            ("vgname", Fixed),
            ("shared", Optional),
            ("saferemove", Optional),
            ("saferemove-stepsize", Optional),
            ("saferemove_throughput", Optional),
            ("base", FixedOptional),
            ("tagged_only", Optional),
            ("bwlimit", Optional),
            ("snapshot-as-volume-chain", Optional),
        ],
        contents: &["images", "rootdir"],
        formats: &["qcow2", "raw"],
        ..NONE
    },
    Kind {
        name: "lvmthin",
        own: &[("thinpool", Fixed), ("vgname", Fixed), ("bwlimit", Optional)],
        contents: &["images", "rootdir"],
        default_content: "images,rootdir",
        ..NONE
    },
    Kind {
        name: "nfs",
        own: &[
            ("path", Fixed),
            ("content-dirs", Optional),
            ("server", Fixed),
            ("export", Fixed),
            ("options", Optional),
            ("format", Optional),
            ("bwlimit", Optional),
            ("preallocation", Optional),
            ("snapshot-as-volume-chain", FixedOptional),
        ],
        files: true,
        contents: TREE,
        formats: &["qcow2", "raw", "vmdk"],
        ..NONE
    },
    Kind {
        name: "pbs",
        own: &[
            ("server", Fixed),
            ("datastore", Fixed),
            ("namespace", Optional),
            ("port", Optional),
            ("username", Optional),
            ("password", Optional),
            ("encryption-key", Optional),
            ("master-pubkey", Optional),
            ("prune-backups", Optional),
            ("max-protected-backups", Optional),
            ("fingerprint", Optional),
        ],
        contents: &["backup", "none"],
        default_content: "backup",
        secrets: &["encryption-key", "master-pubkey", "password"],
        ..NONE
    },
    Kind {
        name: "rbd",
        own: &[
            ("monhost", Optional),
            ("pool", Optional),
            ("data-pool", Optional),
            ("namespace", Optional),
            ("username", Optional),
            ("krbd", Optional),
            ("keyring", Optional),
            ("bwlimit", Optional),
        ],
        contents: &["images", "rootdir"],
        secrets: &["keyring"],
        ..NONE
    },
    Kind {
        name: "zfs",
        own: &[
            ("portal", Fixed),
            ("target", Fixed),
            ("pool", Fixed),
            ("blocksize", Fixed),
            ("iscsiprovider", Fixed),
            ("nowritecache", Optional),
            ("sparse", Optional),
            ("comstar_hg", Optional),
            ("comstar_tg", Optional),
            ("lio_tpg", Optional),
            ("bwlimit", Optional),
            ("zfs-base-path", Optional),
        ],
        ..NONE
    },
    Kind {
        name: "zfspool",
        own: &[
            ("pool", Fixed),
            ("blocksize", Optional),
            ("sparse", Optional),
            ("bwlimit", Optional),
            ("mountpoint", Optional),
        ],
        contents: &["images", "rootdir"],
        default_content: "images,rootdir",
        formats: &["raw", "subvol"],
        ..NONE
    },
];

/// Names of all kinds.
pub const NAMES: &[&str] = &[
    "btrfs",
    "cephfs",
    "cifs",
    "dir",
    "esxi",
    "iscsi",
    "iscsidirect",
    "lvm",
    "lvmthin",
    "nfs",
    "pbs",
    "rbd",
    "zfs",
    "zfspool",
];

pub fn kind(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

impl Kind {
    /// What may be done with an option; none if this kind does not have it.
    pub fn rule(&self, option: &str) -> Option<Rule> {
        if EVERY.contains(&option) || (self.files && FILES.contains(&option)) {
            return Some(Optional);
        }
        self.own.iter().find(|(name, _)| *name == option).map(|(_, rule)| *rule)
    }

    pub fn required(&self) -> impl Iterator<Item = &'static str> {
        self.own.iter().filter(|(_, rule)| matches!(rule, Fixed | Required)).map(|(name, _)| *name)
    }

    /// Mounted at a place that the server chooses.
    pub fn is_mounted(&self) -> bool {
        matches!(self.name, "nfs" | "cifs" | "cephfs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_names_is_the_list_of_kinds() {
        assert_eq!(KINDS.iter().map(|k| k.name).collect::<Vec<_>>(), NAMES);
    }

    #[test]
    fn options_have_rules_by_kind() {
        let dir = kind("dir").unwrap();
        assert_eq!(dir.rule("path"), Some(Fixed));
        assert_eq!(dir.rule("mkdir"), Some(Optional));
        assert_eq!(dir.rule("server"), None);
        assert_eq!(kind("lvm").unwrap().rule("mkdir"), None);
    }
}
