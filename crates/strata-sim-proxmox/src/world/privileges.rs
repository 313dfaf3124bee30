//! The privileges that exist, and the roles that come with the product.

use std::collections::{BTreeMap, BTreeSet};

use super::access::Role;

/// One area: its name in role names, then its privileges for root, administrators, users and auditors.
struct Area {
    name: &'static str,
    root: &'static [&'static str],
    admin: &'static [&'static str],
    user: &'static [&'static str],
    audit: &'static [&'static str],
}

const AREAS: &[Area] = &[
    Area {
        name: "VM",
        root: &[],
        admin: &[
            "VM.Config.Disk",
            "VM.Config.CPU",
            "VM.Config.Memory",
            "VM.Config.Network",
            "VM.Config.HWType",
            "VM.Config.Options",
            "VM.Allocate",
            "VM.Clone",
            "VM.GuestAgent.Unrestricted",
            "VM.Migrate",
            "VM.Replicate",
            "VM.Snapshot",
            "VM.Snapshot.Rollback",
        ],
        user: &[
            "VM.Config.CDROM",
            "VM.Config.Cloudinit",
            "VM.Console",
            "VM.Backup",
            "VM.GuestAgent.FileRead",
            "VM.GuestAgent.FileSystemMgmt",
            "VM.GuestAgent.FileWrite",
            "VM.PowerMgmt",
        ],
        audit: &["VM.Audit", "VM.GuestAgent.Audit"],
    },
    Area {
        name: "Sys",
        root: &["Sys.PowerMgmt", "Sys.Modify", "Sys.Incoming", "Sys.AccessNetwork"],
        admin: &["Sys.Console", "Sys.Syslog"],
        user: &[],
        audit: &["Sys.Audit"],
    },
    Area {
        name: "Datastore",
        root: &[],
        admin: &["Datastore.Allocate", "Datastore.AllocateTemplate"],
        user: &["Datastore.AllocateSpace"],
        audit: &["Datastore.Audit"],
    },
    Area {
        name: "SDN",
        root: &[],
        admin: &["SDN.Allocate", "SDN.Audit"],
        user: &["SDN.Use"],
        audit: &["SDN.Audit"],
    },
    Area {
        name: "User",
        root: &["Realm.Allocate"],
        admin: &["User.Modify", "Group.Allocate", "Realm.AllocateUser"],
        user: &[],
        audit: &[],
    },
    Area {
        name: "Pool",
        root: &[],
        admin: &["Pool.Allocate"],
        user: &["Pool.Audit"],
        audit: &["Pool.Audit"],
    },
    Area {
        name: "Mapping",
        root: &[],
        admin: &["Mapping.Modify"],
        user: &["Mapping.Use"],
        audit: &["Mapping.Audit"],
    },
];

fn all() -> impl Iterator<Item = &'static str> {
    AREAS
        .iter()
        .flat_map(|a| [a.root, a.admin, a.user, a.audit])
        .flatten()
        .copied()
        .chain(std::iter::once("Permissions.Modify"))
}

/// Whether a privilege of that name exists.
pub fn exists(privilege: &str) -> bool {
    all().any(|p| p == privilege)
}

/// Every privilege, sorted.
pub fn every() -> BTreeSet<&'static str> {
    all().collect()
}

/// The roles that nobody can change.
pub fn special_roles() -> BTreeMap<String, Role> {
    let mut roles: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    roles.insert("NoAccess".into(), BTreeSet::new());
    roles.insert("Administrator".into(), all().map(str::to_owned).collect());
    roles.insert("PVETemplateUser".into(), ["VM.Clone", "VM.Audit"].map(str::to_owned).into());
    for area in AREAS {
        let mut give = |role: String, privs: &[&[&'static str]]| {
            roles.entry(role).or_default().extend(privs.iter().copied().flatten().map(|p| (*p).to_owned()));
        };
        give(format!("PVE{}Admin", area.name), &[area.admin, area.user, area.audit]);
        give("PVEAdmin".into(), &[area.admin, area.user, area.audit]);
        if !area.user.is_empty() {
            give(format!("PVE{}User", area.name), &[area.user, area.audit]);
        }
        give("PVEAuditor".into(), &[area.audit]);
    }
    if let Some(admin) = roles.get_mut("PVEAdmin") {
        // Only full administrators may map hardware.
        admin.remove("Mapping.Modify");
    }
    roles.into_iter().map(|(id, privs)| (id, Role { privs, special: true })).collect()
}
