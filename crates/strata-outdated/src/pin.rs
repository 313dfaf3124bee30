//! A version that the source pins, and where.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use strata_source::value::checksum::Checksum;
use strata_talos::Version;
use strata_yaml::edit::Step;

/// What is brought up to date together, in one branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Talos of clusters.
    Talos,
    /// Kubernetes of clusters.
    Kubernetes,
    /// Flux of clusters.
    Flux,
    /// Images of guests, with their checksums.
    Images,
    /// Providers of stacks that were written for OpenTofu.
    Providers,
    /// Modules of such stacks.
    Modules,
}

impl Group {
    /// Every group, in the order of their reports.
    pub const ALL: [Self; 6] =
        [Self::Talos, Self::Kubernetes, Self::Flux, Self::Images, Self::Providers, Self::Modules];

    /// As the command line and the branches call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Talos => "talos",
            Self::Kubernetes => "kubernetes",
            Self::Flux => "flux",
            Self::Images => "images",
            Self::Providers => "providers",
            Self::Modules => "modules",
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Not the name of a group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no group; there are talos, kubernetes, flux, images, providers and modules")]
pub struct NoGroup(String);

impl FromStr for Group {
    type Err = NoGroup;

    fn from_str(text: &str) -> Result<Self, NoGroup> {
        Self::ALL.into_iter().find(|group| group.as_str() == text).ok_or_else(|| NoGroup(text.to_owned()))
    }
}

/// Where something is written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// From the root of the repository.
    pub file: String,
    /// The first is 1.
    pub line: usize,
    /// The first byte of the value.
    pub byte: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// What a value is within its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    /// A scalar of a YAML file.
    Yaml(Vec<Step>),
    /// Bytes of any other.
    Bytes(Range<usize>),
}

/// One value that changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// From the root of the repository.
    pub file: String,
    /// Which value of the file.
    pub at: At,
    /// What it says now.
    pub before: String,
    /// What it is to say.
    pub after: String,
}

/// A version that is written down once, whoever uses it.
#[derive(Debug, Clone)]
pub struct Pin {
    /// What it is brought up to date with.
    pub group: Group,
    /// `talos`, the file name of an image, `bpg/proxmox`.
    pub name: String,
    /// The version, as it is written.
    pub current: String,
    /// Where it is written.
    pub place: Place,
    /// The stacks that it counts for, as `environment/stack`.
    pub stacks: BTreeSet<String>,
    pub(crate) what: What,
    /// The value itself; why not, where it cannot be edited.
    pub(crate) at: Result<At, String>,
}

/// What is pinned, with what decides on its next version.
#[derive(Debug, Clone)]
pub(crate) enum What {
    Talos {
        /// Of every cluster that it counts for.
        kubernetes: Vec<Version>,
        extensions: BTreeSet<String>,
    },
    Kubernetes {
        talos: Vec<Version>,
    },
    Flux {
        checksum: Option<(At, Checksum)>,
        /// Its manifests come from elsewhere, so that its version alone does not say which they are.
        elsewhere: bool,
    },
    Image {
        checksum: Option<Checksum>,
        checksum_at: Option<At>,
    },
    Provider,
    Module,
}

impl Pin {
    /// The version for people: of an image, the release that its address names.
    pub fn version(&self) -> &str {
        match self.what {
            What::Image { .. } => crate::image::address::release_in(&self.current).unwrap_or("no release"),
            _ => &self.current,
        }
    }
}
