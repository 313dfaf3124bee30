//! What a stack's plan is made from, part by part. Where two versions of a repository differ in a part, the stack may change, and the part says why.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use sha2::{Digest, Sha256};
use strata_yaml::{Node, Source};

use super::code::{self, CodeFiles};
use super::{EffectiveStack, Model, Repository, digest};
use crate::world::{World, find};

/// One part of what a stack is made from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Input {
    /// Its own files with defaults, profiles and the environment laid over them.
    Source,
    /// A key of strata.yaml that counts for every stack.
    Setting(&'static str),
    /// A target, by its name.
    Target(String),
    /// A file that it names.
    File(String),
    /// A file of secrets, which nobody opens: what is encrypted there may be another value.
    Secrets(String),
    /// The file of a cluster's own keys.
    Keys(String),
    /// A file of OpenTofu's code, or one that the code may read.
    Code(String),
    /// Another stack that it takes outputs or templates of.
    Stack(String),
    /// Storages that every node sees the same content of, as `hypervisors/` says.
    SharedStorages,
    /// Guests of other stacks that name its backup jobs.
    BackupMembers,
    /// Objects that get another address here or leave for another stack.
    Moves,
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source => f.write_str("its source"),
            Self::Setting(key) => write!(f, "`{key}` of `strata.yaml`"),
            Self::Target(name) => write!(f, "target `{name}`"),
            Self::File(path) => write!(f, "`{path}`, which it names"),
            Self::Secrets(path) => write!(f, "secrets of `{path}`"),
            Self::Keys(path) => write!(f, "keys of the cluster in `{path}`"),
            Self::Code(path) => write!(f, "code in `{path}`"),
            Self::Stack(name) => write!(f, "outputs or templates of stack `{name}`"),
            Self::SharedStorages => f.write_str("storages that hypervisors share"),
            Self::BackupMembers => f.write_str("guests that its backup jobs are about"),
            Self::Moves => f.write_str("objects that are moved"),
        }
    }
}

/// The digest of each part.
pub type Inputs = BTreeMap<Input, [u8; 32]>;

/// What counts for every stack: who it is, where its state is, where downloads come from.
const SETTINGS: [&str; 3] = ["repository", "state", "mirrors"];

impl Repository {
    /// The parts of what a stack's plan is made from, each with its digest. More than [`Repository::source_digest`] has in it: files of secrets
    /// take part by their encrypted bytes, other stacks by what they are made from.
    pub fn inputs(&self, stack: &EffectiveStack, world: &dyn World) -> Inputs {
        let mut inputs = self.own_inputs(stack, world);
        let mut seen = BTreeSet::from([stack.name.as_str()]);
        let mut next: Vec<&str> = self.taken(stack).collect();
        while let Some(name) = next.pop() {
            if !seen.insert(name) {
                continue;
            }
            let other = self.in_environment(name, &stack.environment);
            let of_other = other.map(|other| of_inputs(&self.own_inputs(other, world)));
            inputs.insert(Input::Stack(name.to_owned()), of_other.unwrap_or_default());
            next.extend(other.into_iter().flat_map(|other| self.taken(other)));
        }
        inputs
    }

    /// The files that the source of a stack is read from.
    pub fn source_files(&self, stack: &EffectiveStack) -> Vec<String> {
        let mut files = vec![stack.path.clone()];
        if stack.cluster().is_some() {
            files.push(crate::world::join(&stack.folder, "nodes.yaml"));
        }
        files.push(format!("environments/{}.yaml", stack.environment));
        files.push("strata.yaml".to_owned());
        files
    }

    /// The stacks that one takes something of. That a native stack is only applied after another changes nothing in its plan; code of OpenTofu
    /// may look at whatever it was told to wait for.
    fn taken<'s>(&self, stack: &'s EffectiveStack) -> impl Iterator<Item = &'s str> {
        let is_code = matches!(stack.model, Model::Tofu(_));
        let order_only: BTreeSet<_> = stack.depends_on().iter().map(|name| name.span).collect();
        stack.needs().filter(move |(_, span)| is_code || !order_only.contains(span)).map(|(name, _)| name)
    }

    fn in_environment(&self, name: &str, environment: &str) -> Option<&EffectiveStack> {
        self.stack(name, Some(environment)).or_else(|| self.stack(name, None))
    }

    fn own_inputs(&self, stack: &EffectiveStack, world: &dyn World) -> Inputs {
        let mut inputs = Inputs::from([(Input::Source, self.own_source(stack))]);
        let settings = self.settings_tree.get(&stack.environment).or_else(|| self.settings_tree.get(""));
        for key in SETTINGS {
            inputs.insert(Input::Setting(key), of_tree(settings.and_then(|tree| tree.get(key))));
        }
        let target = |name: &str| of_tree(settings.and_then(|tree| tree.at(&["targets", name])));
        if let Some((name, _)) = self.target(stack) {
            inputs.insert(Input::Target(name.to_owned()), target(name));
        }
        // What is no Proxmox serves any stack that names it, or that there is one of.
        for (name, other) in self.settings(&stack.environment).targets.iter() {
            if other.proxmox.is_none() {
                inputs.insert(Input::Target(name.value.clone()), target(name));
            }
        }
        self.add_files(stack, world, &mut inputs);
        inputs.insert(Input::SharedStorages, self.shared_with(stack));
        if let Some(datacenter) = stack.hypervisor() {
            let members = datacenter.backup_jobs.iter().map(|(name, job)| (&name.value, &job.guests));
            let digest = of_bytes(format!("{:?}", members.collect::<Vec<_>>()).as_bytes());
            inputs.insert(Input::BackupMembers, digest);
        }
        inputs.insert(Input::Moves, self.moves_of(stack));
        inputs
    }

    fn own_source(&self, stack: &EffectiveStack) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(stack.tree_digest);
        hash.update([u8::from(stack.is_default_environment)]);
        hash.finalize().into()
    }

    fn add_files(&self, stack: &EffectiveStack, world: &dyn World, inputs: &mut Inputs) {
        let mut secret = matches!(stack.model, Model::Tofu(_));
        for reference in &stack.references {
            match &reference.source {
                Source::File(path) => {
                    let (place, content) = match find(world, &stack.folder, path) {
                        Ok((place, content)) => (place, of_bytes(&content)),
                        Err(_) => (path.clone(), [0; 32]),
                    };
                    inputs.insert(Input::File(place), content);
                }
                Source::Secret(_) => secret = true,
                // The same for both sides: it is not part of a commit.
                Source::Env(_) => {}
            }
        }
        let content = |path: &str| world.read(path).map_or([0; 32], |content| of_bytes(&content));
        if let Some(file) = stack.cluster().and_then(|cluster| {
            let manifests = cluster.gitops.as_ref()?.flux.as_ref()?.manifests.as_ref()?;
            manifests.file.as_ref()
        }) {
            inputs.insert(Input::File(file.value.clone()), content(file));
        }
        let own = self.settings(&stack.environment);
        for source in self.settings.secrets.iter().chain(&own.secrets).filter(|_| secret) {
            let path = source.path().value.clone();
            let digest = content(&path);
            inputs.insert(Input::Secrets(path), digest);
        }
        let keys = stack.bundle_path(|path| path.to_str().is_some_and(|path| world.read(path).is_ok()));
        for path in keys.into_iter().chain(stack.former_bundle_paths()) {
            let path = path.to_string_lossy().into_owned();
            let digest = content(&path);
            inputs.insert(Input::Keys(path), digest);
        }
        if matches!(stack.model, Model::Tofu(_)) {
            let CodeFiles(files) = code::read_by(&stack.folder, world);
            inputs.extend(files.into_iter().map(|(path, digest)| (Input::Code(path), digest)));
        }
    }

    fn shared_with(&self, stack: &EffectiveStack) -> [u8; 32] {
        let mut shared = self.shared_storages();
        if let Some((target, _)) = self.target(stack) {
            shared.retain(|name, _| name == target);
        }
        // A target without any is a target that nobody wrote of.
        shared.retain(|_, storages| !storages.is_empty());
        of_bytes(format!("{shared:?}").as_bytes())
    }

    /// What is moved within a stack, out of it or into it, whichever file says so.
    fn moves_of(&self, stack: &EffectiveStack) -> [u8; 32] {
        let names = |place: &str| {
            let place = place.split_once(':').map_or(place, |(_, rest)| rest);
            place.split('/').next() == Some(stack.name.as_str())
        };
        let mut moves: BTreeSet<(&str, &str)> = BTreeSet::new();
        for other in self.effective().filter(|other| other.environment == stack.environment) {
            let about = other.moved().iter().map(|moved| (moved.from.as_str(), moved.to.as_str()));
            moves.extend(about.filter(|(from, to)| names(from) || names(to)));
        }
        of_bytes(format!("{moves:?}").as_bytes())
    }
}

fn of_tree(tree: Option<&Node>) -> [u8; 32] {
    tree.map_or([0; 32], digest::of_tree)
}

pub(super) fn of_bytes(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

fn of_inputs(inputs: &Inputs) -> [u8; 32] {
    of_bytes(format!("{inputs:?}").as_bytes())
}
