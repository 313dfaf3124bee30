//! `hypervisors/<name>.yaml`: what the hosts themselves have; layer 0.

pub mod access;
pub mod host;
pub mod network;
pub mod sdn;
pub mod services;
pub mod storage;

use strata_yaml::{Map, Spanned, TextRule, TextShape, choice, record};

use crate::hypervisor::access::{AclEntry, Group, Realm, RealmSyncJob, Role, Token, User};
use crate::hypervisor::host::{Acme, Host};
use crate::hypervisor::network::{DnsSettings, HostInterface};
use crate::hypervisor::sdn::Sdn;
use crate::hypervisor::services::Services;
use crate::hypervisor::storage::Storage;
use crate::machine::firewall::{FirewallRule, Policy};
use crate::stack::{Metadata, Moved};
use crate::value::name::{ID, NAME, POOL, TOKEN, USER};
use crate::value::place::{ADDRESS, VM_ID};

/// Of an IP set, of a security group: Proxmox makes the letters lower-case when it reads its file.
const FIREWALL_NAME: TextRule = TextRule {
    shape: TextShape {
        what: "a name of lower-case letters, digits, `-` and `_` that begins with a letter",
        pattern: Some("^[a-z][a-z0-9_-]+$"),
    },
    accepts: |text| {
        let plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
        text.len() > 1
            && text.starts_with(|first: char| first.is_ascii_lowercase())
            && text.bytes().all(plain)
    },
};

record! {
    /// Where the hosts are.
    pub struct HypervisorProxmox [at_most_one(&["node", "nodes"])] {
        /// one of the targets of strata.yaml
        "target" target: Option<Spanned<String>> [text(NAME)];
        /// the Proxmox node that host settings apply to
        "node" node: Option<Spanned<String>> [text(ID)];
        /// the Proxmox nodes that host settings apply to
        "nodes" nodes: Vec<Spanned<String>> [text(ID)];
        /// the addresses and networks that hosts are managed from: no plan lets a firewall keep them from the API of a host. Otherwise
        /// that is the address that Strata itself has
        "managedFrom" managed_from: Vec<String> [label(ADDRESS)];
    }
}

record! {
    /// A pool of guests and storages.
    pub struct GuestPool {
        /// for people
        "comment" comment: Option<String> [env()];
        /// taken over if it is there already and nobody's mark is on it
        "adopt" adopt: bool = false;
        /// never destroyed or replaced by Strata
        "protect" protect: bool = false;
    }
}

choice! {
    /// What happens to a guest while it is backed up.
    pub enum BackupMode {
        Snapshot = "snapshot",
        Suspend = "suspend",
        Stop = "stop",
    }
}

choice! {
    /// How a backup is compressed.
    pub enum BackupCompression {
        None = "0",
        Gzip = "gzip",
        Lzo = "lzo",
        Zstd = "zstd",
    }
}

record! {
    /// How many backups of a guest are kept; without one, all are.
    pub struct BackupRetention {
        /// the newest ones
        "last" last: Option<u32> [range(1, 1_000_000)];
        /// one for each of so many hours
        "hourly" hourly: Option<u32> [range(1, 1_000_000)];
        /// one for each of so many days
        "daily" daily: Option<u32> [range(1, 1_000_000)];
        /// one for each of so many weeks
        "weekly" weekly: Option<u32> [range(1, 1_000_000)];
        /// one for each of so many months
        "monthly" monthly: Option<u32> [range(1, 1_000_000)];
        /// one for each of so many years
        "yearly" yearly: Option<u32> [range(1, 1_000_000)];
    }
}

choice! {
    /// Who is told of a backup.
    pub enum BackupNotification {
        Auto = "auto",
        LegacySendmail = "legacy-sendmail",
        NotificationSystem = "notification-system",
    }
}

record! {
    /// Where the old content of blocks goes that a guest writes while it is backed up: it does not wait for the storage of the backups.
    pub struct BackupFleecing {
        /// a storage for images; needed where it is done
        "storage" storage: Option<Spanned<String>> [text(ID)];
        /// whether it is done
        "enabled" enabled: bool = true;
    }
}

record! {
    /// Guests that are backed up at set times.
    pub struct BackupJob [at_most_one(&["guests", "pool", "all"])] {
        /// when, as a calendar event of systemd: `02:00`, `sat 03:30`
        "schedule" schedule: String;
        /// the storage that the backups go to
        "storage" storage: Spanned<String> [text(ID)];
        /// the VMIDs of the guests
        "guests" guests: Vec<u32> [label(VM_ID)];
        /// all guests of a pool
        "pool" pool: Option<Spanned<String>> [text(POOL), env()];
        /// all guests of the datacenter
        "all" all: bool = false;
        /// with `all`: VMIDs that are left out
        "exclude" exclude: Vec<u32> [label(VM_ID)];
        /// only guests on this node
        "node" node: Option<Spanned<String>> [text(ID)];
        /// what happens to a guest meanwhile
        "mode" mode: Option<BackupMode>;
        /// how it is compressed
        "compress" compress: Option<BackupCompression>;
        /// how many backups of a guest are kept
        "keep" keep: Option<BackupRetention>;
        /// at most so many KiB a second
        "bandwidthLimit" bandwidth_limit: Option<u32>;
        /// VMs that write much do not wait for the storage of the backups
        "fleecing" fleecing: Option<BackupFleecing>;
        /// by mail, as before, or by the matchers of `notifications`
        "notificationMode" notification_mode: Option<BackupNotification>;
        /// what the notes of a backup say: `{{guestname}}`
        "notesTemplate" notes_template: Option<String>;
        /// a run that was missed is made up for
        "repeatMissed" repeat_missed: Option<bool>;
        /// whether it runs
        "enabled" enabled: bool = true;
        /// for people
        "comment" comment: Option<String> [env()];
        /// taken over if it is there already and nobody's mark is on it
        "adopt" adopt: bool = false;
        /// never destroyed or replaced by Strata
        "protect" protect: bool = false;
    }
}

record! {
    /// A device on one node that a mapping stands for.
    pub struct MappedDevice {
        /// the Proxmox node
        "node" node: Spanned<String> [text(ID)];
        /// PCI: the address; USB: the bus and port
        "path" path: Option<Spanned<String>>;
        /// `vendor:device`
        "id" id: Option<String>;
        /// `vendor:device` of the subsystem
        "subsystemId" subsystem_id: Option<String>;
        /// the IOMMU group
        "iommuGroup" iommu_group: Option<u32>;
    }
}

record! {
    /// A device that guests refer to by name, wherever it is.
    pub struct Mapping {
        /// for people
        "comment" comment: Option<String> [env()];
        /// PCI: it can be divided into mediated devices
        "mediated" mediated: Option<bool>;
        /// the device on each node
        "devices" devices: Vec<MappedDevice>;
        /// taken over if it is there already and nobody's mark is on it
        "adopt" adopt: bool = false;
        /// never destroyed or replaced by Strata
        "protect" protect: bool = false;
    }
}

record! {
    /// Devices that guests refer to by name.
    pub struct Mappings {
        /// PCI devices
        "pci" pci: Map<Mapping> [keys(ID)];
        /// USB devices
        "usb" usb: Map<Mapping> [keys(ID)];
    }
}

record! {
    /// A named set of rules.
    pub struct SecurityGroup {
        /// for people
        "comment" comment: Option<String> [env()];
        /// the first that matches decides
        "rules" rules: Vec<FirewallRule>;
        /// taken over if it is there already and nobody's mark is on it
        "adopt" adopt: bool = false;
        /// never destroyed or replaced by Strata
        "protect" protect: bool = false;
    }
}

record! {
    /// A named set of addresses.
    pub struct IpSet [shorthand("addresses")] {
        /// for people
        "comment" comment: Option<String> [env()];
        /// addresses and networks
        "addresses" addresses: Vec<String> [label(ADDRESS)];
        /// taken over if it is there already and nobody's mark is on it
        "adopt" adopt: bool = false;
        /// never destroyed or replaced by Strata
        "protect" protect: bool = false;
    }
}

record! {
    /// A name for an address or a network.
    pub struct Alias [shorthand("address")] {
        /// the address or network
        "address" address: String [label(ADDRESS)];
        /// for people
        "comment" comment: Option<String> [env()];
        /// taken over if it is there already and nobody's mark is on it
        "adopt" adopt: bool = false;
        /// never destroyed or replaced by Strata
        "protect" protect: bool = false;
    }
}

record! {
    /// The firewall of the whole datacenter.
    pub struct DatacenterFirewall [shorthand("enabled")] {
        /// whether it applies; left as it is if not said
        "enabled" enabled: Option<bool>;
        /// for packets to the hosts
        "policyIn" policy_in: Option<Policy>;
        /// for packets from the hosts
        "policyOut" policy_out: Option<Policy>;
        /// the first that matches decides
        "rules" rules: Vec<FirewallRule>;
        /// names for addresses
        "aliases" aliases: Map<Alias> [keys(ID)];
        /// named sets of addresses
        "ipSets" ip_sets: Map<IpSet> [keys(FIREWALL_NAME)];
        /// named sets of rules
        "groups" groups: Map<SecurityGroup> [keys(FIREWALL_NAME)];
        /// it may keep Strata and people away from the hosts
        "mayLockOut" may_lock_out: bool = false;
        /// taken over if it is there already and nobody's mark is on it
        "adopt" adopt: bool = false;
        /// never destroyed or replaced by Strata
        "protect" protect: bool = false;
    }
}

record! {
    /// What the hosts of a target have.
    pub struct Hypervisor [document] {
        /// who the stack is
        "metadata" metadata: Option<Metadata>;
        /// what has another address now: `from: dc/pool/web`, `to: pools/pool/web`
        "moved" moved: Vec<Moved>;
        /// where the hosts are
        "proxmox" proxmox: Option<HypervisorProxmox>;
        /// storages, by id
        "storages" storages: Map<Storage> [keys(ID)];
        /// bridges, bonds and VLANs, by name
        "network" network: Map<HostInterface> [keys(ID), aliases(&["bridges"])];
        /// the hosts themselves, by name: their settings and firewalls
        "hosts" hosts: Map<Host> [keys(ID)];
        /// authorities that give certificates, and how domains are proved to be one's own
        "acme" acme: Option<Acme>;
        /// software-defined networks
        "sdn" sdn: Option<Spanned<Sdn>>;
        /// pools of guests and storages
        "pools" pools: Map<GuestPool> [keys(POOL), env()];
        /// named sets of privileges
        "roles" roles: Map<Role> [keys(ID)];
        /// where users come from, by realm
        "realms" realms: Map<Realm> [keys(ID)];
        /// jobs that take users and groups over from the directories of realms, by id
        "realmSyncJobs" realm_sync_jobs: Map<RealmSyncJob> [keys(ID)];
        /// groups of users
        "groups" groups: Map<Group> [keys(ID)];
        /// users, with their realm: `ops@pve`
        "users" users: Map<User> [keys(USER)];
        /// API tokens: `ops@pve!ci`
        "tokens" tokens: Map<Token> [keys(TOKEN)];
        /// who may do what where
        "acl" acl: Vec<AclEntry>;
        /// backup jobs, by id
        "backupJobs" backup_jobs: Map<BackupJob> [keys(ID), env()];
        ..services: Services;
        /// devices that guests refer to by name
        "mappings" mappings: Option<Mappings>;
        /// the firewall of the whole datacenter
        "firewall" firewall: Option<Spanned<DatacenterFirewall>>;
        /// name servers of the hosts
        "dns" dns: Option<DnsSettings>;
        /// the time zone of the hosts, such as `Europe/Paris`
        "timezone" timezone: Option<Spanned<String>>;
    }
}
