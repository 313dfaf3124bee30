//! The kinds of managed objects.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::rules::KindRules;

/// What sort of object a resource is. Each kind has a table of field rules, see [`Kind::rules`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A volume that Proxmox downloads: an ISO, a cloud image or a container template.
    Image,
    /// A NoCloud ISO that Strata makes and uploads, for one VM.
    Cidata,
    /// A VM that is only cloned.
    Template,
    Vm,
    Container,
    /// A dataset on a TrueNAS.
    Dataset,
    /// What is built into Talos images, given to the image factory.
    Schematic,
    /// The Talos of one node: its machine configuration and its version.
    Machine,
    /// The etcd of a cluster, begun once.
    Bootstrap,
    /// The Kubernetes of a cluster: the version of its components.
    Kubernetes,
    /// A Kubernetes secret that is there before Flux is.
    Secret,
    /// The controllers of Flux.
    Flux,
    /// What Flux follows: a git repository and a folder in it.
    Sync,
    /// A pool of guests and storages.
    Pool,
    /// A named set of privileges.
    Role,
    /// A group of users.
    Group,
    User,
    /// An API token of a user.
    Token,
    /// Who may do what where: one role of one subject on one path.
    Acl,
    /// The definition of a storage; what is stored there is not part of it.
    Storage,
    /// A device that guests refer to by name.
    Mapping,
    /// The name servers of a host.
    Dns,
    /// The time zone of a host.
    Timezone,
    /// The interfaces of a host that the source speaks of.
    Network,
    /// The firewall of the whole datacenter: options and rules.
    Firewall,
    /// A name for an address, in the firewall.
    Alias,
    /// A named set of addresses, in the firewall.
    Ipset,
    /// A named set of rules, in the firewall.
    SecurityGroup,
}

impl Kind {
    pub const ALL: [Self; 28] = [
        Self::Image,
        Self::Cidata,
        Self::Template,
        Self::Vm,
        Self::Container,
        Self::Dataset,
        Self::Schematic,
        Self::Machine,
        Self::Bootstrap,
        Self::Kubernetes,
        Self::Secret,
        Self::Flux,
        Self::Sync,
        Self::Pool,
        Self::Role,
        Self::Group,
        Self::User,
        Self::Token,
        Self::Acl,
        Self::Storage,
        Self::Mapping,
        Self::Dns,
        Self::Timezone,
        Self::Network,
        Self::Firewall,
        Self::Alias,
        Self::Ipset,
        Self::SecurityGroup,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Cidata => "cidata",
            Self::Template => "template",
            Self::Vm => "vm",
            Self::Container => "container",
            Self::Dataset => "dataset",
            Self::Schematic => "schematic",
            Self::Machine => "machine",
            Self::Bootstrap => "bootstrap",
            Self::Kubernetes => "kubernetes",
            Self::Secret => "secret",
            Self::Flux => "flux",
            Self::Sync => "sync",
            Self::Pool => "pool",
            Self::Role => "role",
            Self::Group => "group",
            Self::User => "user",
            Self::Token => "token",
            Self::Acl => "acl",
            Self::Storage => "storage",
            Self::Mapping => "mapping",
            Self::Dns => "dns",
            Self::Timezone => "timezone",
            Self::Network => "network",
            Self::Firewall => "firewall",
            Self::Alias => "alias",
            Self::Ipset => "ipset",
            Self::SecurityGroup => "securitygroup",
        }
    }

    /// Whether objects of this kind have a VMID, notes and a power state.
    pub fn is_guest(self) -> bool {
        matches!(self, Self::Template | Self::Vm | Self::Container)
    }

    /// Whether it is a volume on a storage of Proxmox.
    pub fn is_volume(self) -> bool {
        matches!(self, Self::Image | Self::Cidata)
    }

    /// Whether it is part of the datacenter itself, which `hypervisors/` describes.
    pub fn is_datacenter(self) -> bool {
        matches!(
            self,
            Self::Pool
                | Self::Role
                | Self::Group
                | Self::User
                | Self::Token
                | Self::Acl
                | Self::Storage
                | Self::Mapping
                | Self::Dns
                | Self::Timezone
                | Self::Network
                | Self::Firewall
                | Self::Alias
                | Self::Ipset
                | Self::SecurityGroup
        )
    }

    /// Whether it is a setting that every host has: it is never made and never deleted, only set.
    pub fn is_setting(self) -> bool {
        matches!(self, Self::Dns | Self::Timezone)
    }

    /// Whether one request makes it complete: if it is there after an interrupted run, nothing of it is missing.
    pub fn is_made_at_once(self) -> bool {
        matches!(
            self,
            Self::Pool
                | Self::Role
                | Self::Group
                | Self::User
                | Self::Acl
                | Self::Storage
                | Self::Mapping
                | Self::Alias
        )
    }

    /// Whether a replacement makes the new object first and deletes the old one when nothing uses it any more.
    pub fn creates_before_delete(self) -> bool {
        self.is_volume()
    }

    pub fn rules(self) -> &'static KindRules {
        crate::kinds::rules(self)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|kind| kind.as_str()).collect();
            format!("`{text}` is no kind; there are {}", known.join(", "))
        })
    }
}
