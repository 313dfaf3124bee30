//! The JSON Schemas of the source files, for editors, and the reference, for people.

use serde_json::Value;
use strata_yaml::{Choice, choice};

use crate::cluster::Cluster;
use crate::cluster::topology::NodesFile;
use crate::environment::Environment;
use crate::hypervisor::Hypervisor;
use crate::settings::Settings;
use crate::stack::Stack;

choice! {
    /// A kind of source file.
    pub enum Document {
        Strata = "strata",
        Stack = "stack",
        Cluster = "cluster",
        Nodes = "nodes",
        Environment = "environment",
        Hypervisor = "hypervisor",
    }
}

impl Document {
    /// Every kind, in the order they are listed to people.
    pub fn all() -> &'static [Self] {
        <Self as Choice>::ALL
    }

    /// The schema that editors check such a file with.
    pub fn schema(self) -> Value {
        match self {
            Self::Strata => strata_yaml::schema::<Settings>("strata.yaml"),
            Self::Stack => strata_yaml::schema::<Stack>("stacks/<path>/stack.yaml"),
            Self::Cluster => strata_yaml::schema::<Cluster>("clusters/<name>/cluster.yaml"),
            Self::Nodes => strata_yaml::schema::<NodesFile>("clusters/<name>/nodes.yaml"),
            Self::Environment => strata_yaml::schema::<Environment>("environments/<env>.yaml"),
            Self::Hypervisor => strata_yaml::schema::<Hypervisor>("hypervisors/<name>.yaml"),
        }
    }

    /// The same for people: every key of such a file, as Markdown.
    pub fn reference(self) -> String {
        match self {
            Self::Strata => strata_yaml::reference::<Settings>(),
            Self::Stack => strata_yaml::reference::<Stack>(),
            Self::Cluster => strata_yaml::reference::<Cluster>(),
            Self::Nodes => strata_yaml::reference::<NodesFile>(),
            Self::Environment => strata_yaml::reference::<Environment>(),
            Self::Hypervisor => strata_yaml::reference::<Hypervisor>(),
        }
    }
}
