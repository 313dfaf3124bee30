//! Where a stack is built: who it is, what it may ask of the outside, and what is gathered on the way.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};
use strata_diagnostics::{Diagnostic, SourceMap, Span};
use strata_resource::{Address, Kind, Lineage, Mark, Resource, ResourceGraph};
use strata_secret::SecretString;
use strata_talos::SecretsBundle;
use strata_yaml::{Reference, Value as Written};

use crate::cluster::ClusterPlan;
use crate::placement::Homes;
use crate::resolved::Resolved;

/// Resolves what comes from outside the file.
pub trait Resolver {
    /// The value, or what is wrong and where.
    fn resolve(&self, reference: &Reference) -> Result<SecretString, Box<Diagnostic>>;

    /// Whether what it gives for a secret is that secret, and not something in its place.
    fn opens_secrets(&self) -> bool {
        true
    }
}

/// A template of another stack.
#[derive(Debug, Clone)]
pub struct ForeignTemplate {
    /// Its VMID.
    pub vm_id: u32,
    /// The hypervisor that it is on, where its stack says it.
    pub node: Option<String>,
}

/// Where an object was made that was moved since then, or that is not the first one of its address.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The address that it had.
    pub address: Address,
    /// The lineage of the state that it was in.
    pub lineage: Lineage,
    /// How many objects that still live somewhere were made under this address before it.
    pub again: u32,
}

/// What a blueprint is drawn for.
pub struct Site<'a> {
    /// The repository's id; hardware addresses derive from it.
    pub repository: &'a str,
    /// Named in addresses where it is not the stack's own.
    pub environment: Option<&'a str>,
    /// The stack that is drawn.
    pub stack: &'a str,
    /// The lineage of its state, for ownership marks.
    pub lineage: &'a Lineage,
    /// What was made under another address: what derives from an address stays as it was made.
    pub origins: &'a BTreeMap<Address, Origin>,
    /// Where guests stand whose source leaves it open.
    pub homes: &'a Homes,
    /// The target of stacks that name none.
    pub default_target: Option<&'a str>,
    /// Storages that every node sees the same content of, by target.
    pub shared_storages: &'a BTreeMap<String, BTreeSet<String>>,
    /// `stack/template`.
    pub foreign_templates: &'a BTreeMap<String, ForeignTemplate>,
    /// Where a URL is fetched from.
    pub mirror: &'a dyn Fn(&str) -> String,
    /// Resolves what comes from outside of the source.
    pub resolver: &'a dyn Resolver,
    /// Whether a text is, or holds, a secret that was resolved.
    pub is_secret: &'a dyn Fn(&str) -> bool,
    /// The keys of a cluster. Without them its machines have no configuration, and only what is below that can be planned.
    pub cluster_secrets: Option<&'a SecretsBundle>,
    /// The texts of the source, for origins.
    pub sources: &'a SourceMap,
}

/// What a stack becomes.
#[derive(Debug, Clone, Default)]
pub struct Blueprint {
    /// Everything that there should be.
    pub graph: ResourceGraph,
    /// The first fixed address of each machine that has one.
    pub addresses: BTreeMap<Address, String>,
    /// Guests whose place is open, each with the name of those that it is kept apart from.
    pub groups: BTreeMap<Address, String>,
    /// The nodes that guests whose place is open can be cloned on, where that is not everywhere.
    pub templates_on: BTreeMap<Address, BTreeSet<String>>,
    /// Guests that no record knows and that are spread over nodes, each with those that it may be put on.
    pub spread: BTreeMap<Address, BTreeSet<String>>,
    /// What the stack tells others.
    pub outputs: BTreeMap<String, strata_resource::Value>,
    /// For a cluster, what its provider works with besides.
    pub cluster: Option<ClusterPlan>,
}

/// A blueprint while it is drawn.
pub(crate) struct Draft<'a> {
    pub(crate) site: &'a Site<'a>,
    pub(crate) target: String,
    pub(crate) blueprint: Blueprint,
    pub(crate) found: Vec<Diagnostic>,
    /// Image volumes by storage, node and name: one download however many use it.
    pub(crate) images: BTreeMap<(String, String, String), Address>,
    /// The nodes of guests that are spread over several.
    pub(crate) seats: BTreeMap<Address, String>,
    /// In the place of a cluster's secrets, where only mistakes are looked for.
    pub(crate) stand_in: Option<SecretsBundle>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(site: &'a Site<'a>, target: String) -> Self {
        Self {
            site,
            target,
            blueprint: Blueprint::default(),
            found: Vec::new(),
            images: BTreeMap::new(),
            seats: BTreeMap::new(),
            stand_in: None,
        }
    }

    pub(crate) fn address(&self, kind: Kind, name: &str) -> Address {
        Address::new(self.site.environment, self.site.stack, kind, name)
    }

    pub(crate) fn mark(&self, address: &Address, vmid: u32) -> String {
        Mark::new(self.site.lineage, address, vmid).to_string()
    }

    /// `file:line`, for messages about the resource.
    pub(crate) fn origin(&self, span: Span) -> Option<String> {
        let location = self.site.sources.location(span);
        Some(format!("{}:{}", location.file, location.line))
    }

    pub(crate) fn is_shared(&self, storage: &str) -> bool {
        self.site.shared_storages.get(&self.target).is_some_and(|shared| shared.contains(storage))
    }

    pub(crate) fn resolve(&mut self, reference: &Reference) -> Option<Resolved> {
        let plain = self.site.resolver.resolve(reference).map_err(|diagnostic| self.found.push(*diagnostic));
        plain.ok().map(|plain| Resolved::new(reference, plain))
    }

    pub(crate) fn resolve_written(&mut self, written: &Written<String>) -> Option<Resolved> {
        match written {
            Written::Literal(text) => Some(Resolved::literal(text)),
            Written::Reference(reference) => self.resolve(reference),
        }
    }

    pub(crate) fn refuse(&mut self, code: &'static str, message: impl Into<String>, span: Span) {
        let problem = Diagnostic::error(code, message.into()).at(span);
        // Every machine of a cluster may find the same.
        if !self.found.contains(&problem) {
            self.found.push(problem);
        }
    }

    pub(crate) fn insert(&mut self, resource: Resource) {
        // Two entries of one kind with one name were refused when the source was read.
        let _ = self.blueprint.graph.insert(resource);
    }

    /// The address that an object was made under.
    pub(crate) fn made_as<'s>(&'s self, address: &'s Address) -> &'s Address {
        self.site.origins.get(address).map_or(address, |origin| &origin.address)
    }

    /// A name of a volume that holds the lineage, as it is if the volume was made by another stack.
    pub(crate) fn as_made(&self, address: &Address, name: &str) -> String {
        match self.site.origins.get(address) {
            Some(origin) => self.site.lineage.replaced_in(name, &origin.lineage.short_of(origin.again)),
            None => name.to_owned(),
        }
    }

    /// A hardware address that stays the same as long as repository, address and slot do.
    pub(crate) fn derived_mac(&self, address: &Address, slot: &str) -> String {
        let again = self.site.origins.get(address).map_or(0, |origin| origin.again);
        let (address, again) = (self.made_as(address).to_string(), again.to_string());
        let mut parts = vec!["strata mac 1", self.site.repository, &address, slot];
        parts.extend((again != "0").then_some(again.as_str()));
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let hash = hash.finalize();
        format!("BC:24:11:{:02X}:{:02X}:{:02X}", hash[0], hash[1], hash[2])
    }
}
