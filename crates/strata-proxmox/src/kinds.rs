//! The kinds that a Proxmox datacenter has, one module each: fields, identity, what proves an object ours, how a person calls it, and
//! what the engine has to know. `strata_resource::kind!` says how such a table is read.

pub mod acl;
pub mod alias;
pub mod cidata;
pub mod container;
pub mod dns;
pub mod firewall;
pub mod group;
mod guest;
pub mod image;
pub mod ipset;
pub mod mapping;
pub mod network;
pub mod pool;
pub mod role;
pub mod security_group;
mod shared;
pub mod storage;
pub mod template;
pub mod timezone;
pub mod token;
pub mod user;
pub mod vm;
mod volume;

pub use acl::KIND as ACL;
pub use alias::KIND as ALIAS;
pub use cidata::KIND as CIDATA;
pub use container::KIND as CONTAINER;
pub use dns::KIND as DNS;
pub use firewall::KIND as FIREWALL;
pub use group::KIND as GROUP;
pub use image::KIND as IMAGE;
pub use ipset::KIND as IPSET;
pub use mapping::KIND as MAPPING;
pub use network::KIND as NETWORK;
pub use pool::KIND as POOL;
pub use role::KIND as ROLE;
pub use security_group::KIND as SECURITY_GROUP;
pub use storage::KIND as STORAGE;
use strata_resource::{Kind, KindTable, register_kinds};
pub use template::KIND as TEMPLATE;
pub use timezone::KIND as TIMEZONE;
pub use token::KIND as TOKEN;
pub use user::KIND as USER;
pub use vm::KIND as VM;

/// Guests: what has a VMID, notes and a power state.
static GUESTS: [&KindTable; 3] = [&template::TABLE, &vm::TABLE, &container::TABLE];
/// Volumes on storages.
static VOLUMES: [&KindTable; 2] = [&image::TABLE, &cidata::TABLE];
/// What the datacenter itself has, which `hypervisors/` describes.
static DATACENTER: [&KindTable; 15] = [
    &pool::TABLE,
    &role::TABLE,
    &group::TABLE,
    &user::TABLE,
    &token::TABLE,
    &acl::TABLE,
    &storage::TABLE,
    &mapping::TABLE,
    &dns::TABLE,
    &timezone::TABLE,
    &network::TABLE,
    &firewall::TABLE,
    &alias::TABLE,
    &ipset::TABLE,
    &security_group::TABLE,
];

/// Makes the kinds known. Done at start-up, before anything is read.
pub fn register() {
    for tables in [&VOLUMES[..], &GUESTS, &DATACENTER] {
        register_kinds(tables);
    }
}

fn has(tables: &[&KindTable], kind: Kind) -> bool {
    tables.iter().any(|table| table.kind() == kind)
}

/// Whether objects of the kind have a VMID, notes and a power state.
pub fn is_guest(kind: Kind) -> bool {
    has(&GUESTS, kind)
}

/// Whether it is a volume on a storage.
pub fn is_volume(kind: Kind) -> bool {
    has(&VOLUMES, kind)
}

/// Whether it is part of the datacenter itself.
pub fn is_datacenter(kind: Kind) -> bool {
    has(&DATACENTER, kind)
}

/// Whether Proxmox has objects of the kind.
pub fn is_proxmox(kind: Kind) -> bool {
    is_guest(kind) || is_volume(kind) || is_datacenter(kind)
}

/// An address, in tests, where nothing else has made the kinds known.
#[cfg(test)]
pub(crate) fn address(text: &str) -> strata_resource::Address {
    register();
    text.parse().unwrap()
}
