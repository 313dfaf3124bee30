//! What each stack of a repository is drawn to, with everything that it reads: the truth that change detection is measured by.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use strata_blueprint::{ForeignTemplate, Resolver, Site, draw_cluster, draw_hypervisor, draw_stack};
use strata_diagnostics::Diagnostic;
use strata_resource::{Lineage, Spec, Value};
use strata_review::StackKey;
use strata_secret::SecretString;
use strata_source::world::{Memory, World};
use strata_source::{EffectiveStack, Model, Reference, Repository, Source};

/// Files as they are in a commit. A secret is whatever its encrypted file makes it.
struct Files<'w> {
    world: &'w Memory,
    folder: String,
}

impl Resolver for Files<'_> {
    fn resolve(&self, reference: &Reference) -> Result<SecretString, Box<Diagnostic>> {
        let text = |path: &str| String::from_utf8(self.world.read(path).unwrap_or_default()).unwrap();
        let value = match &reference.source {
            Source::Secret(name) => format!("{name} of {}", text("secrets.sops.yaml")),
            Source::Env(name) => format!("the variable {name}"),
            Source::File(path) => {
                let beside = format!("{}/{path}", self.folder);
                if self.world.read(&beside).is_ok() { text(&beside) } else { text(path) }
            }
        };
        Ok(SecretString::from(value))
    }
}

/// What comes of every stack, in each of its environments.
pub(crate) fn drawn(world: &Memory) -> BTreeMap<StackKey, String> {
    let (repository, diagnostics) = Repository::load(world);
    let errors: Vec<_> = diagnostics.iter().filter(|one| one.is_error()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let key = |stack: &EffectiveStack| StackKey {
        environment: stack.environment.clone(),
        stack: stack.name.clone(),
    };
    repository.effective().map(|stack| (key(stack), draw(&repository, stack, world))).collect()
}

fn draw(repository: &Repository, stack: &EffectiveStack, world: &Memory) -> String {
    let settings = repository.settings(&stack.environment);
    let id = settings.repository.as_ref().unwrap().value.as_str();
    let lineage = Lineage::derive(id, &format!("{}/{}", stack.environment, stack.name));
    let target = repository.target(stack);
    let shared = repository.shared_storages();
    let foreign = foreign_templates(repository, stack);
    let files = Files { world, folder: stack.folder.clone() };
    let origins = BTreeMap::new();
    let site = Site {
        repository: id,
        environment: (!stack.is_default_environment).then_some(stack.environment.as_str()),
        stack: &stack.name,
        lineage: &lineage,
        origins: &origins,
        default_target: target.map(|(name, _)| name),
        homes: &Default::default(),
        shared_storages: &shared,
        foreign_templates: &foreign,
        mirror: &|url| settings.mirrored(url),
        resolver: &files,
        is_secret: &|_| false,
        cluster_secrets: None,
        sources: &repository.sources,
    };
    let mut seen = String::new();
    // Where it is applied to, and where its state is.
    let endpoint =
        target.and_then(|(_, target)| target.proxmox.as_ref()).map(|proxmox| &proxmox.endpoint.value);
    let state = settings.state.is_some();
    let _ = writeln!(seen, "{endpoint:?} {state} {}", repository.source_digest(stack, world));
    let drawn = match &stack.model {
        Model::Machines(machines) => draw_stack(&site, machines),
        Model::Cluster(cluster) => draw_cluster(&site, cluster),
        Model::Hypervisor(hypervisor) => draw_hypervisor(&site, hypervisor),
        Model::Tofu(_) => return seen + &tofu(repository, stack, world),
        Model::Broken | Model::Removed => panic!("{} is broken", stack.name),
    };
    let drawn = drawn.unwrap_or_else(|found| panic!("{found:?}"));
    for resource in drawn.graph.iter() {
        let mut resource = resource.clone();
        resource.origin = None;
        let _ = writeln!(seen, "{resource:?}");
        resource.spec.values().for_each(|value| plain(value, &mut seen));
        // What the provider adds when the stack is complete.
        let source = resource.spec.get("source").and_then(Value::as_text);
        if let Some(path) = source.and_then(|source| source.strip_prefix("file:")) {
            let _ = writeln!(seen, "{:?}", world.read(path).ok());
        }
    }
    let _ = writeln!(seen, "{:?}", drawn.outputs);
    if let Some(keys) = stack.bundle_path(|_| false) {
        let _ = writeln!(seen, "{:?}", world.read(&keys.to_string_lossy()).ok());
    }
    seen
}

/// All that the code of the test's one stack of OpenTofu is run with.
fn tofu(repository: &Repository, stack: &EffectiveStack, world: &Memory) -> String {
    let mut seen = String::new();
    for path in [
        "stacks/hand/main.tf",
        "modules/net/main.tf",
        "shared/names/main.tf",
        "shared/zones.txt",
        "secrets.sops.yaml",
    ] {
        let _ = writeln!(seen, "{path} {:?}", world.read(path).ok());
    }
    let inputs: BTreeSet<&str> = stack
        .tofu()
        .into_iter()
        .flat_map(|tofu| tofu.inputs.values())
        .map(|input| input.stack.as_str())
        .collect();
    for name in inputs {
        let other = repository.stack(name, Some(&stack.environment)).or_else(|| repository.stack(name, None));
        seen.push_str(&draw(repository, other.unwrap(), world));
    }
    seen
}

fn foreign_templates(repository: &Repository, stack: &EffectiveStack) -> BTreeMap<String, ForeignTemplate> {
    let mut found = BTreeMap::new();
    for other in repository.stacks().iter().filter(|other| other.name.value != stack.name) {
        let effective = repository
            .stack(&other.name, Some(&stack.environment))
            .or_else(|| repository.stack(&other.name, None));
        for template in
            effective.and_then(EffectiveStack::machines).iter().flat_map(|own| own.template_instances())
        {
            let node = template.node.as_ref().map(|node| node.value.clone());
            let foreign = ForeignTemplate { vm_id: template.vm_id, node };
            found.insert(format!("{}/{}", other.name, template.key), foreign);
        }
    }
    found
}

/// The secrets of a value in the clear: only here, where a change of one must be seen.
fn plain(value: &Value, into: &mut String) {
    if let Some(secret) = value.as_secret().and_then(|secret| secret.plain()) {
        into.push_str(secret.expose());
    }
    value.as_map().into_iter().flat_map(Spec::values).for_each(|value| plain(value, into));
    value.as_list().into_iter().flatten().for_each(|value| plain(value, into));
}
