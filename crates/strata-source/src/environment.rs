//! `environments/<env>.yaml`: what differs in one environment.

use strata_yaml::{Map, Partial, record};

use crate::cluster::Cluster;
use crate::hypervisor::Hypervisor;
use crate::settings::target::Target;
use crate::settings::{Defaults, Policy};
use crate::stack::Stack;
use crate::value::name::{NAME, URL};

record! {
    /// An overlay. A stack that is named here is part of the environment, even if nothing differs.
    pub struct Environment [document] {
        /// targets that differ
        "targets" targets: Map<Partial<Target>> [keys(NAME)];
        /// defaults that differ
        "defaults" defaults: Option<Partial<Defaults>>;
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
pub(crate) const SETTINGS: [&str; 4] = ["targets", "defaults", "mirrors", "policy"];

/// The keys of an environment that hold stacks.
pub(crate) const STACKS: [&str; 3] = ["stacks", "clusters", "hypervisors"];
