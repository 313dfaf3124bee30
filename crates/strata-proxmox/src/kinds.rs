//! The kinds that a Proxmox datacenter has, one module each. A module holds all about its kind: the table of its fields
//! (`strata_resource::kind!` says how it is read), and how its objects are seen, made, changed and deleted ([`managed`]).
//!
//! A new kind is a module and its line in [`KINDS`].

pub(crate) mod access;
mod acl;
mod acme_account;
mod acme_plugin;
mod alias;
mod backup_job;
mod certificate;
mod cidata;
mod container;
mod dns;
mod firewall;
mod group;
mod guest;
mod ha_resource;
mod ha_rule;
mod host_firewall;
mod host_options;
mod image;
mod ipset;
pub(crate) mod lockout;
pub(crate) mod managed;
mod mapping;
mod metric_server;
mod network;
mod notification;
mod notification_matcher;
mod options;
mod pool;
mod realm;
mod realm_sync;
mod replication;
mod repositories;
mod role;
mod sdn;
mod sdn_dns;
mod sdn_ipam;
mod security_group;
mod shared;
mod storage;
mod template;
mod timezone;
mod token;
mod user;
mod vm;
mod volume;

use strata_resource::{Kind, Spec, register_kinds};

pub(crate) use self::cidata::KIND as CIDATA;
pub use self::container::KIND as CONTAINER;
use self::managed::ManagedKind;
pub use self::template::KIND as TEMPLATE;
pub use self::token::TokenKeeper;
pub use self::vm::KIND as VM;
use crate::datacenter::Family;

/// Every kind, in the order in which plans put objects that do not depend on each other.
static KINDS: &[&dyn ManagedKind] = &[
    &image::Image,
    &cidata::Cidata,
    &template::Template,
    &vm::Vm,
    &container::Container,
    &ha_resource::HaResource,
    &ha_rule::HaRule,
    &replication::Replication,
    &pool::Pool,
    &role::Role,
    &realm::Realm,
    &realm_sync::RealmSync,
    &group::Group,
    &user::User,
    &token::Token,
    &acl::Acl,
    &storage::Storage,
    &backup_job::BackupJob,
    &mapping::Mapping,
    &options::DatacenterOptions,
    &metric_server::MetricServer,
    &notification::Notification,
    &notification_matcher::Matcher,
    &dns::Dns,
    &timezone::Timezone,
    &acme_account::AcmeAccount,
    &acme_plugin::AcmePlugin,
    &host_options::HostOptions,
    &repositories::Repositories,
    &certificate::Certificate,
    &network::Network,
    &sdn_ipam::SdnIpam,
    &sdn_dns::SdnDns,
    &sdn::Sdn,
    &firewall::Firewall,
    &host_firewall::HostFirewall,
    &alias::Alias,
    &ipset::IpSet,
    &security_group::SecurityGroup,
];

/// Makes the kinds known. Done at start-up, before anything is read.
pub fn register() {
    let tables: Vec<_> = KINDS.iter().map(|kind| kind.table()).collect();
    register_kinds(&tables);
}

/// What the provider knows about a kind; none where it is not of Proxmox.
pub(crate) fn of(kind: Kind) -> Option<&'static dyn ManagedKind> {
    KINDS.iter().copied().find(|managed| managed.table().kind() == kind)
}

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = &'static dyn ManagedKind> {
    KINDS.iter().copied()
}

pub(crate) fn family_of(kind: Kind) -> Option<&'static dyn Family> {
    of(kind)?.family()
}

/// Which object of the datacenter a spec is about; none where the kind is not part of the datacenter itself.
pub fn datacenter_name(kind: Kind, spec: &Spec) -> Option<String> {
    family_of(kind)?.key(spec)
}

/// Whether objects of the kind have a VMID, notes and a power state.
pub fn is_guest(kind: Kind) -> bool {
    of(kind).is_some_and(|managed| managed.guest().is_some())
}

/// Whether it is part of the datacenter itself.
pub fn is_datacenter(kind: Kind) -> bool {
    family_of(kind).is_some()
}

/// Whether Proxmox has objects of the kind.
pub fn is_proxmox(kind: Kind) -> bool {
    of(kind).is_some()
}

/// An address, in tests, where nothing else has made the kinds known.
#[cfg(test)]
pub(crate) fn address(text: &str) -> strata_resource::Address {
    register();
    text.parse().unwrap()
}
