//! The resource graph of a stack: what there should be, and what must be there first.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Address, FieldPath, Kind, Spec};

/// Which layer a stack belongs to. A lower layer never needs a higher one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(
    missing_docs,
    reason = "the README says what the layers are; sentences here would be part of the JSON Schemas"
)]
pub enum Layer {
    Hypervisors,
    Platforms,
    /// Stored as `standalone` by earlier versions.
    #[serde(alias = "standalone")]
    Workloads,
}

impl Layer {
    /// As on the command line and in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hypervisors => "hypervisors",
            Self::Platforms => "platforms",
            Self::Workloads => "workloads",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where a resource stands in a cold boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "as with layers")]
pub enum Stage {
    Prereqs,
    Storage,
    Compute,
    Config,
    Cluster,
    Gitops,
}

impl Stage {
    /// As in plans and events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prereqs => "prereqs",
            Self::Storage => "storage",
            Self::Compute => "compute",
            Self::Config => "config",
            Self::Cluster => "cluster",
            Self::Gitops => "gitops",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What to do about a running guest when a change needs a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RestartPolicy {
    /// Restart it; the plan names the restart.
    #[default]
    Reboot,
    /// Leave the change pending until somebody restarts it.
    Ignore,
    /// Recreate the guest where cloud-init data changed; the plan shows a replacement.
    Recreate,
}

/// A field, or all below it, that is set when an object is made and left to others after that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredField {
    /// Its name, as plans show it.
    pub path: FieldPath,
    /// Why, for people.
    pub reason: Option<String>,
}

/// One object that there should be.
#[derive(Debug, Clone)]
pub struct Resource {
    /// What it is called; unique in a graph.
    pub address: Address,
    /// The target that it lives on, as named in `strata.yaml`.
    pub target: String,
    /// What it should be, complete and canonical.
    pub spec: Spec,
    /// What must be done before it, and be taken away after it.
    pub depends_on: BTreeSet<Address>,
    /// Where it comes among others that it does not depend on.
    pub stage: Stage,
    /// Never destroyed or replaced by Strata.
    pub protect: bool,
    /// Whether a change may restart it by itself.
    pub on_change: RestartPolicy,
    /// Fields that are set when it is made, and left to others after that.
    pub ignore: Vec<IgnoredField>,
    /// What it shares with others that can bear only so much at once: `storage:pve1/local-lvm`, `template:9000`.
    pub limits: Vec<String>,
    /// The file and line that asked for it, for messages.
    pub origin: Option<String>,
}

impl Resource {
    /// That of its address.
    pub fn kind(&self) -> Kind {
        self.address.kind()
    }
}

/// The resources of a stack, by address.
#[derive(Debug, Clone, Default)]
pub struct ResourceGraph {
    resources: BTreeMap<Address, Resource>,
}

/// Why resources are no graph.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// Two resources have one address.
    #[error("`{0}` is there twice")]
    Duplicate(Box<Address>),
    /// A dependency that no resource has.
    #[error("`{from}` needs `{to}`, which does not exist")]
    Missing {
        /// Who needs it.
        from: Box<Address>,
        /// What is not there.
        to: Box<Address>,
    },
    /// Resources that wait for each other, in this order.
    #[error("these need each other: {}", .0.iter().map(|address| format!("`{address}`")).collect::<Vec<_>>().join(" → "))]
    Cycle(Vec<Address>),
}

impl ResourceGraph {
    /// An address is there once: another resource with it is an error, and the graph stays as it was.
    pub fn insert(&mut self, resource: Resource) -> Result<(), GraphError> {
        if self.resources.contains_key(&resource.address) {
            return Err(GraphError::Duplicate(Box::new(resource.address)));
        }
        self.resources.insert(resource.address.clone(), resource);
        Ok(())
    }

    /// The resource of an address.
    pub fn get(&self, address: &Address) -> Option<&Resource> {
        self.resources.get(address)
    }

    /// By address.
    pub fn iter(&self) -> impl Iterator<Item = &Resource> {
        self.resources.values()
    }

    /// By address; the address itself must stay.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Resource> {
        self.resources.values_mut()
    }

    /// Makes a resource wait for another one.
    pub fn add_dependency(&mut self, address: &Address, to: Address) {
        if let Some(resource) = self.resources.get_mut(address) {
            resource.depends_on.insert(to);
        }
    }

    /// How many resources there are.
    pub fn len(&self) -> usize {
        self.resources.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }

    /// Every dependency exists and nothing needs itself.
    pub fn check(&self) -> Result<(), GraphError> {
        for resource in self.iter() {
            for to in &resource.depends_on {
                if !self.resources.contains_key(to) {
                    return Err(GraphError::Missing {
                        from: Box::new(resource.address.clone()),
                        to: Box::new(to.clone()),
                    });
                }
            }
        }
        self.order().map(|_| ())
    }

    /// All addresses, dependencies before what needs them; equal graphs give equal orders.
    pub fn order(&self) -> Result<Vec<Address>, GraphError> {
        let mut waiting: BTreeMap<&Address, usize> = BTreeMap::new();
        let mut needed_by: BTreeMap<&Address, Vec<&Address>> = BTreeMap::new();
        let mut ready: BTreeSet<(Stage, usize, &Address)> = BTreeSet::new();
        for resource in self.iter() {
            let needs = resource.depends_on.iter().filter(|to| self.resources.contains_key(*to)).count();
            waiting.insert(&resource.address, needs);
            for to in &resource.depends_on {
                needed_by.entry(to).or_default().push(&resource.address);
            }
            if needs == 0 {
                ready.insert((resource.stage, resource.kind().rank(), &resource.address));
            }
        }
        let mut order = Vec::with_capacity(self.len());
        while let Some((_, _, address)) = ready.pop_first() {
            order.push(address.clone());
            waiting.remove(address);
            for next in needed_by.get(address).into_iter().flatten() {
                let Some(needs) = waiting.get_mut(next) else { continue };
                *needs -= 1;
                if *needs == 0 {
                    ready.insert((self.resources[*next].stage, next.kind().rank(), next));
                }
            }
        }
        if order.len() == self.len() { Ok(order) } else { Err(GraphError::Cycle(self.find_cycle(&waiting))) }
    }

    /// Walks along dependencies that were never met until an address comes again.
    fn find_cycle(&self, unmet: &BTreeMap<&Address, usize>) -> Vec<Address> {
        let mut trail: Vec<&Address> = Vec::new();
        let mut at = unmet.keys().next().copied();
        while let Some(address) = at {
            if let Some(start) = trail.iter().position(|seen| *seen == address) {
                let mut cycle: Vec<Address> = trail[start..].iter().map(|&address| address.clone()).collect();
                cycle.push(address.clone());
                return cycle;
            }
            trail.push(address);
            at = self.resources[address].depends_on.iter().find(|to| unmet.contains_key(to));
        }
        trail.into_iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(&str, &[&str])]) -> ResourceGraph {
        let mut graph = ResourceGraph::default();
        for (name, needs) in edges {
            graph
                .insert(Resource {
                    address: Address::new(None, "s", Kind::named("vm"), name),
                    target: "pve".into(),
                    spec: Spec::new(),
                    depends_on: needs
                        .iter()
                        .map(|to| Address::new(None, "s", Kind::named("vm"), to))
                        .collect(),
                    stage: Stage::Compute,
                    protect: false,
                    on_change: RestartPolicy::default(),
                    ignore: Vec::new(),
                    limits: Vec::new(),
                    origin: None,
                })
                .unwrap();
        }
        graph
    }

    #[test]
    fn dependencies_come_first() {
        let order = graph(&[("a", &["c"]), ("b", &[]), ("c", &["b"])]).order().unwrap();
        assert_eq!(order.iter().map(Address::name).collect::<Vec<_>>(), ["b", "c", "a"]);
    }

    #[test]
    fn a_cycle_is_named() {
        let error = graph(&[("a", &["b"]), ("b", &["c"]), ("c", &["b"])]).check().unwrap_err();
        assert_eq!(error.to_string(), "these need each other: `s/vm/b` → `s/vm/c` → `s/vm/b`");
        let error = graph(&[("a", &["zz"])]).check().unwrap_err();
        assert_eq!(error.to_string(), "`s/vm/a` needs `s/vm/zz`, which does not exist");
    }
}
