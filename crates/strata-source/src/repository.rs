//! A repository as a whole: its settings, its stacks, and each stack in each of its environments.

mod assemble;
mod backup_members;
mod code;
mod defaults;
mod digest;
mod discover;
mod each;
mod inputs;
mod membership;
mod profiles;
mod select;

use std::collections::{BTreeMap, BTreeSet};

use strata_diagnostics::{Diagnostics, FileId, SourceMap, Span};
use strata_yaml::{Node, Reference, Source, Spanned};

use crate::check;
use crate::cluster::Cluster;
use crate::environment::offsets::Offsets;
use crate::hypervisor::Hypervisor;
use crate::settings::Settings;
use crate::settings::target::{ProxmoxTarget, Target};
use crate::stack::tofu::TofuInputs;
use crate::stack::{Layer, Metadata, Moved, Stack, StackProxmox};
use crate::world::{World, find};

pub use digest::code_digest;
pub use inputs::{Input, Inputs};
pub use select::SelectError;

/// The environment of a stack that names none.
pub const DEFAULT_ENVIRONMENT: &str = "default";

/// What was found in a repository.
pub struct Repository {
    pub sources: SourceMap,
    /// As strata.yaml says, without any environment.
    pub settings: Settings,
    stacks: Vec<StackEntry>,
    /// By stack and environment.
    effective: BTreeMap<(String, String), EffectiveStack>,
    /// The settings of each environment that changes them.
    environments: BTreeMap<String, Settings>,
    settings_tree: BTreeMap<String, Node>,
    /// What the settings refer to.
    references: Vec<Reference>,
    /// What moves with each environment.
    offsets: BTreeMap<String, Offsets>,
    /// Stacks that an environment leaves out, by stack and environment, and where it does.
    left_out: BTreeMap<(String, String), Span>,
}

/// A stack, before an environment is chosen.
#[derive(Debug, Clone)]
pub struct StackEntry {
    pub name: Spanned<String>,
    pub layer: Layer,
    pub kind: StackKind,
    /// The file it is written in, from the root of the repository; the folder where OpenTofu's code has none.
    pub path: String,
    /// The folder that the files it names are looked for in first.
    pub folder: String,
    /// The environment it is in without `-e`.
    pub default_environment: String,
    /// Every environment it is part of, the default one first.
    pub environments: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StackKind {
    Machines,
    Cluster,
    Hypervisor,
    /// Written by hand in OpenTofu: driven, not rendered.
    Tofu,
}

/// A stack in one environment, with every default and overlay applied.
#[derive(Debug, Clone)]
pub struct EffectiveStack {
    pub name: String,
    pub environment: String,
    /// Whether this is what `strata` takes without `-e`.
    pub is_default_environment: bool,
    pub layer: Layer,
    pub path: String,
    pub folder: String,
    pub file: FileId,
    pub model: Model,
    /// Everything that comes from outside the source.
    pub references: Vec<Reference>,
    /// Of the tree that the model was read from; the tree itself would be most of a large repository's memory.
    tree_digest: [u8; 32],
    left_out: Vec<LeftOut>,
}

/// Something of a stack that its environment leaves out with `null`.
#[derive(Debug, Clone)]
pub(crate) struct LeftOut {
    pub(crate) section: String,
    pub(crate) name: String,
    pub(crate) span: Span,
}

/// What a stack is made of.
#[derive(Debug, Clone)]
pub enum Model {
    Machines(Box<Stack>),
    Cluster(Box<Cluster>),
    Hypervisor(Box<Hypervisor>),
    /// Written by hand in OpenTofu; what its stack.yaml says, if it has one.
    Tofu(Box<Stack>),
    /// It could not be read; what is wrong has been reported.
    Broken,
    /// It is not in the source any more: only its state is left of it.
    Removed,
}

impl Repository {
    /// Reads everything and checks it. The repository is as good as its files; errors say what is missing in it.
    pub fn load(world: &dyn World) -> (Self, Diagnostics) {
        let mut diagnostics = Diagnostics::new();
        let found = discover::discover(world, &mut diagnostics);
        let mut repository = assemble::assemble(world, found, &mut diagnostics);
        backup_members::join(&mut repository, &mut diagnostics);
        check::check(&repository, world, &mut diagnostics);
        diagnostics.tidy();
        (repository, diagnostics)
    }

    /// Every stack: lower layers first, and what others depend on before them.
    pub fn stacks(&self) -> &[StackEntry] {
        &self.stacks
    }

    /// The stack in an environment; in its own without one.
    pub fn stack(&self, name: &str, environment: Option<&str>) -> Option<&EffectiveStack> {
        let entry = self.stacks.iter().find(|entry| entry.name.value == name)?;
        let environment = environment.unwrap_or(&entry.default_environment);
        self.effective.get(&(name.to_owned(), environment.to_owned()))
    }

    /// Every stack in every environment that it is part of.
    pub fn effective(&self) -> impl Iterator<Item = &EffectiveStack> {
        self.effective.values()
    }

    /// The settings of an environment.
    pub fn settings(&self, environment: &str) -> &Settings {
        self.environments.get(environment).unwrap_or(&self.settings)
    }

    /// The content of what a reference of the settings names; `None` for a secret.
    pub fn fetch(&self, source: &Source, world: &dyn World) -> Result<Option<String>, String> {
        fetch("", source, world)
    }

    /// Everything that the settings take from outside the source.
    pub fn references(&self) -> &[Reference] {
        &self.references
    }

    /// A stack that left the source, as what its state says of it.
    pub fn removed(
        &self,
        name: &str,
        environment: &str,
        is_default_environment: bool,
        layer: Layer,
    ) -> EffectiveStack {
        let settings = self.settings_tree.get("").map(|tree| tree.span.file);
        let file = settings.or_else(|| Some(self.stacks.first()?.name.span.file));
        EffectiveStack {
            name: name.to_owned(),
            environment: environment.to_owned(),
            is_default_environment,
            layer,
            path: String::new(),
            folder: String::new(),
            file: file.expect("the settings are always read, from an empty file if there is none"),
            model: Model::Removed,
            references: Vec::new(),
            tree_digest: [0; 32],
            left_out: Vec::new(),
        }
    }

    /// Every environment that some stack is part of.
    pub fn environments(&self) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.effective.keys().map(|(_, environment)| environment.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// What moves with an environment.
    pub(crate) fn offsets(&self, environment: &str) -> Option<&Offsets> {
        self.offsets.get(environment)
    }

    /// Where an environment leaves a stack out.
    pub(crate) fn left_out(&self, stack: &str, environment: &str) -> Option<Span> {
        self.left_out.get(&(stack.to_owned(), environment.to_owned())).copied()
    }

    /// The target that a stack is applied to, with its name: the one it names, or the only Proxmox there is.
    pub fn target<'a>(&'a self, stack: &'a EffectiveStack) -> Option<(&'a str, &'a Target)> {
        let targets = &self.settings(&stack.environment).targets;
        if let Some(name) = stack.target_name() {
            return targets.get(name).map(|target| (name.value.as_str(), target));
        }
        let mut proxmox = targets.iter().filter(|(_, target)| target.proxmox.is_some());
        if let Some(own) = stack.own_endpoint() {
            // A target with the same address says more of the place: its certificate, and how much it bears.
            let is_same = |target: &Target| {
                target.proxmox.as_ref().is_some_and(|proxmox| place(&proxmox.endpoint) == place(own))
            };
            return proxmox
                .find(|(_, target)| is_same(target))
                .map(|(name, target)| (name.value.as_str(), target));
        }
        match (proxmox.next(), proxmox.next()) {
            (Some((name, target)), None) => Some((name.value.as_str(), target)),
            _ => None,
        }
    }

    /// What tells one Proxmox from another: two targets with one endpoint are one place.
    pub fn proxmox_endpoint(&self, stack: &EffectiveStack) -> Option<String> {
        let endpoint =
            stack.own_endpoint().or_else(|| self.proxmox(stack).map(|(_, proxmox)| &proxmox.endpoint))?;
        Some(place(endpoint))
    }

    /// Storages that every node sees the same content of, by target, where `hypervisors/` says so.
    pub fn shared_storages(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut shared: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for stack in self.effective() {
            let (Some(hypervisor), Some((target, _))) = (stack.hypervisor(), self.target(stack)) else {
                continue;
            };
            let storages = hypervisor.storages.iter().filter(|(_, storage)| storage.is_shared());
            shared.entry(target.to_owned()).or_default().extend(storages.map(|(name, _)| name.value.clone()));
        }
        shared
    }

    /// The Proxmox that a stack is applied to, with the target's name.
    pub fn proxmox<'a>(&'a self, stack: &'a EffectiveStack) -> Option<(&'a str, &'a ProxmoxTarget)> {
        let (name, target) = self.target(stack)?;
        target.proxmox.as_ref().map(|proxmox| (name, proxmox))
    }
}

impl EffectiveStack {
    pub fn machines(&self) -> Option<&Stack> {
        match &self.model {
            Model::Machines(stack) => Some(stack),
            _ => None,
        }
    }

    pub fn cluster(&self) -> Option<&Cluster> {
        match &self.model {
            Model::Cluster(cluster) => Some(cluster),
            _ => None,
        }
    }

    pub fn hypervisor(&self) -> Option<&Hypervisor> {
        match &self.model {
            Model::Hypervisor(hypervisor) => Some(hypervisor),
            _ => None,
        }
    }

    /// What is handed to OpenTofu, for a stack that was written by hand.
    pub fn tofu(&self) -> Option<&TofuInputs> {
        match &self.model {
            Model::Tofu(stack) => stack.tofu.as_ref(),
            _ => None,
        }
    }

    /// The name of the target, where the stack says one.
    pub fn target_name(&self) -> Option<&Spanned<String>> {
        match &self.model {
            Model::Machines(stack) => stack.proxmox.as_ref()?.target.as_ref(),
            Model::Cluster(cluster) => cluster.proxmox.as_ref()?.target.as_ref(),
            Model::Hypervisor(hypervisor) => hypervisor.proxmox.as_ref()?.target.as_ref(),
            Model::Tofu(_) | Model::Broken | Model::Removed => None,
        }
    }

    /// The address of the Proxmox that a cluster writes down itself instead of naming a target.
    pub fn own_endpoint(&self) -> Option<&Spanned<String>> {
        self.cluster()?.proxmox.as_ref()?.endpoint.as_ref()
    }

    /// The stack's `proxmox` section, for a stack of machines.
    pub fn placement(&self) -> Option<&StackProxmox> {
        self.machines()?.proxmox.as_ref()
    }

    fn metadata(&self) -> Option<&Metadata> {
        match &self.model {
            Model::Machines(stack) | Model::Tofu(stack) => stack.metadata.as_ref(),
            Model::Cluster(cluster) => cluster.metadata.as_ref(),
            Model::Hypervisor(hypervisor) => hypervisor.metadata.as_ref(),
            Model::Broken | Model::Removed => None,
        }
    }

    /// What has another address now, as this file says.
    pub fn moved(&self) -> &[Moved] {
        match &self.model {
            Model::Machines(stack) | Model::Tofu(stack) => &stack.moved,
            Model::Cluster(cluster) => &cluster.moved,
            Model::Hypervisor(hypervisor) => &hypervisor.moved,
            Model::Broken | Model::Removed => &[],
        }
    }

    /// Whether its objects can get another address: those of a cluster know each other by theirs, and OpenTofu has addresses of its own.
    pub fn is_movable(&self) -> bool {
        !matches!(self.model, Model::Cluster(_) | Model::Tofu(_))
    }

    /// What the stack is for, in the user's words.
    pub fn description(&self) -> Option<&str> {
        self.metadata()?.description.as_deref()
    }

    /// Where the environment leaves an entry of a section out.
    pub(crate) fn left_out(&self, section: &str, name: &str) -> Option<Span> {
        self.left_out.iter().find(|out| out.section == section && out.name == name).map(|out| out.span)
    }

    /// The stacks that are applied before this one.
    pub fn depends_on(&self) -> &[Spanned<String>] {
        self.metadata().map(|metadata| metadata.depends_on.as_slice()).unwrap_or_default()
    }

    /// The same, with those that it takes outputs or templates of, and where it says so.
    pub fn needs(&self) -> impl Iterator<Item = (&str, Span)> {
        let written = self.depends_on().iter().map(|name| (name.as_str(), name.span));
        let inputs = self.tofu().into_iter().flat_map(|tofu| tofu.inputs.values());
        let inputs = inputs.map(|input| (input.stack.as_str(), input.span));
        let vms = self.machines().into_iter().flat_map(|machines| machines.vms.values());
        let templates = vms.filter_map(|vm| {
            let template = vm.template.as_ref()?;
            let (stack, _) = template.split_once('/')?;
            (stack != self.name).then_some((stack, template.span))
        });
        written.chain(inputs).chain(templates)
    }

    /// The names alone.
    pub fn needed(&self) -> impl Iterator<Item = &str> {
        self.needs().map(|(name, _)| name)
    }

    /// The content of what a reference of this stack names; `None` for a secret, which is not ours to open.
    ///
    /// A file is looked for beside the stack first, then at the root of the repository. One line break at the end of
    /// a variable or file is not part of the value; a document is read with [`EffectiveStack::read`].
    pub fn fetch(&self, source: &Source, world: &dyn World) -> Result<Option<String>, String> {
        fetch(&self.folder, source, world)
    }

    /// Whether two readings of a stack say the same, comments and places aside.
    pub fn says_the_same(&self, other: &Self) -> bool {
        self.tree_digest == other.tree_digest
    }

    /// The content of a file that the stack names.
    pub fn read(&self, path: &str, world: &dyn World) -> Result<Vec<u8>, String> {
        find(world, &self.folder, path).map(|(_, content)| content)
    }
}

/// An address as it is compared.
fn place(endpoint: &str) -> String {
    let endpoint = endpoint.trim_end_matches('/');
    endpoint.strip_suffix("/api2/json").unwrap_or(endpoint).to_ascii_lowercase()
}

fn fetch(folder: &str, source: &Source, world: &dyn World) -> Result<Option<String>, String> {
    let text = match source {
        Source::Secret(_) => return Ok(None),
        Source::Env(name) => world.env(name).ok_or_else(|| format!("the variable `{name}` is not set"))?,
        Source::File(path) => {
            let (place, content) = find(world, folder, path)?;
            String::from_utf8(content).map_err(|_| format!("`{place}` is not UTF-8 text"))?
        }
    };
    Ok(Some(strata_yaml::without_final_break(&text).to_owned()))
}
