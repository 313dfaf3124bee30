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
}

impl Kind {
    pub const ALL: [Self; 13] = [
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
