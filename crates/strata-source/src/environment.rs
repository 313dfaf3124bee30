//! `environments/<env>.yaml`: what differs in one environment.

pub(crate) mod localize;
pub(crate) mod naming;
pub mod offsets;

use strata_yaml::{Map, Partial, choice, record};

use crate::cluster::Cluster;
use crate::environment::offsets::Offsets;
use crate::hypervisor::Hypervisor;
use crate::machine::profile::Profile;
use crate::settings::target::Target;
use crate::settings::{Defaults, Policy};
use crate::stack::Stack;
use crate::value::name::{NAME, TAG, URL};

choice! {
    /// A folder of stacks.
    pub enum StackFolder { Stacks = "stacks", Clusters = "clusters", Hypervisors = "hypervisors" }
}

record! {
    /// An overlay. A stack that is named here is part of the environment, even if nothing differs; `null` leaves it out.
    pub struct Environment [document] {
        /// folders whose stacks are all part of it, as if each were named here; code of OpenTofu is part only where it is named
        "include" include: Vec<StackFolder>;
        /// what moves with the environment: numbers, addresses, VLANs and bridges of everything that is not written in this file
        "offsets" offsets: Option<Offsets>;
        /// tags that every guest has besides its own
        "tags" tags: Vec<String> [text(TAG), env()];
        /// targets that differ
        "targets" targets: Map<Partial<Target>> [keys(NAME)];
        /// defaults that differ
        "defaults" defaults: Option<Partial<Defaults>>;
        /// profiles that differ
        "profiles" profiles: Map<Profile> [keys(NAME)];
        /// mirrors that differ
        "mirrors" mirrors: Map<String> [keys(URL), text(URL)];
        /// policy that differs
        "policy" policy: Option<Partial<Policy>>;
        /// stacks of machines, by name
        "stacks" stacks: Map<Partial<Stack>>;
        /// clusters, by name
        "clusters" clusters: Map<Partial<Cluster>>;
        /// hypervisors, by name
        "hypervisors" hypervisors: Map<Partial<Hypervisor>>;
    }
}

/// The keys of an environment that are laid over strata.yaml.
pub(crate) const SETTINGS: [&str; 5] = ["targets", "defaults", "profiles", "mirrors", "policy"];

/// The keys of an environment that hold stacks.
pub(crate) const STACKS: [&str; 3] = ["stacks", "clusters", "hypervisors"];
