//! From stacks to files: the project of each family, the modules, and the files that users of those families run them by.

pub(crate) mod cluster;
mod hypervisor;
mod imports;
mod root;
mod stack;

use std::collections::BTreeMap;

use serde_json::{Map as JsonMap, Value as Json};
use strata_blueprint::{Blueprint, kinds};
use strata_resource::{Kind, Resource, Spec, Value};
use strata_source::settings::state::State;
use strata_source::world::World;
use strata_source::{EffectiveStack, Model};

use crate::project::Files;
use crate::{module, runner};

/// A stack in one environment, ready to be rendered.
pub struct Project<'a> {
    pub stack: &'a EffectiveStack,
    pub blueprint: &'a Blueprint,
    pub connection: Connection,
    pub state: Option<&'a State>,
    pub world: &'a dyn World,
    /// Strata has built it in this environment.
    pub taken_over: bool,
}

/// How OpenTofu's provider reaches Proxmox.
#[derive(Debug, Clone, Default)]
pub struct Connection {
    pub endpoint: String,
    /// The provider can only trust authorities or everyone.
    pub insecure: bool,
    /// The source pins a certificate, which the provider cannot.
    pub pinned: bool,
}

/// The kinds of project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// `hypervisors/<name>`, with data in `datacenter.tfvars`.
    Hypervisor,
    /// Beside `stack.yaml`, with data in `vms.tfvars`.
    Stack,
    /// `clusters/<name>/terraform`, with `talos/talconfig.yaml` beside it.
    Cluster,
    /// `infrastructure/tofu`, from the flat `cluster.yaml` at the root.
    Template,
}

impl Family {
    pub fn of(stack: &EffectiveStack) -> Option<Self> {
        match stack.model {
            Model::Hypervisor(_) => Some(Self::Hypervisor),
            Model::Machines(_) => Some(Self::Stack),
            Model::Cluster(_) if stack.folder.is_empty() => Some(Self::Template),
            Model::Cluster(_) => Some(Self::Cluster),
            _ => None,
        }
    }

    /// The folder of the project, from the root of the repository.
    pub fn folder(self, stack: &EffectiveStack) -> String {
        match self {
            // The file without its ending.
            Self::Hypervisor => format!("{}/{}", stack.folder, stem(&stack.path)),
            Self::Stack => stack.folder.clone(),
            Self::Cluster => format!("{}/terraform", stack.folder),
            Self::Template => "infrastructure/tofu".to_owned(),
        }
    }

    /// The file of data of an environment; the one of the default environment is known to the users of the family.
    pub(crate) fn data_file(self, stack: &EffectiveStack) -> String {
        let base = match self {
            Self::Hypervisor => "datacenter",
            Self::Stack => "vms",
            Self::Cluster | Self::Template => "terraform",
        };
        if stack.is_default_environment {
            format!("{base}.tfvars")
        } else {
            format!("{base}.{}.tfvars", stack.environment)
        }
    }
}

/// Renders projects, modules and runners; with `import_blocks` also what takes over the machines that are there.
pub fn render(projects: &[Project<'_>], import_blocks: bool) -> Files {
    let mut files = Files::default();
    for project in projects {
        let Some(family) = Family::of(project.stack) else { continue };
        files.set_source(&project.stack.path);
        report_kinds(project.blueprint, &mut files);
        match family {
            Family::Hypervisor => hypervisor::render(project, &mut files),
            Family::Stack => stack::render(project, &mut files),
            Family::Cluster | Family::Template => cluster::render(project, family, &mut files),
        }
        if import_blocks {
            imports::render(project, family, &mut files);
        }
        if project.connection.pinned {
            files
                .gap(&project.stack.name, "the provider cannot pin a certificate: it trusts whoever answers");
        }
    }
    files.set_source("strata.yaml");
    module::render(projects.first().map(|project| project.world), &mut files);
    runner::render(projects, &mut files);
    files
}

/// Objects of a kind that no project has, with the reason that the kind gives.
fn report_kinds(blueprint: &Blueprint, files: &mut Files) {
    let mut by_kind: BTreeMap<Kind, Vec<&Resource>> = BTreeMap::new();
    for resource in blueprint.graph.iter() {
        by_kind.entry(resource.kind()).or_default().push(resource);
    }
    for (kind, resources) in by_kind {
        let Some(reason) = kind.table().no_tofu else { continue };
        let what = match &resources[..] {
            [one] => one.address.to_string(),
            [first, others @ ..] => format!("{} and {} more", first.address, others.len()),
            [] => continue,
        };
        files.gap(what, reason);
    }
    for resource in blueprint.graph.iter().filter(|resource| !resource.ignore.is_empty()) {
        let reason = "`ignore_changes` is the same for all objects of a module: `ignoreChanges` of one guest is left out";
        files.gap(resource.address.to_string(), reason);
    }
}

fn stem(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.rsplit_once('.').map_or(file, |(stem, _)| stem)
}

/// The way from a project's folder to the modules.
fn modules_from(folder: &str) -> String {
    let depth = folder.split('/').filter(|part| !part.is_empty()).count();
    format!("{}{}", "../".repeat(depth), module::FOLDER)
}

fn of_kind(blueprint: &Blueprint, kind: Kind) -> impl Iterator<Item = &Resource> {
    blueprint.graph.iter().filter(move |resource| resource.kind() == kind)
}

/// What a rendered project of the stack needs that must not be in a file: variables and their values as JSON.
pub fn secret_variables(blueprint: &Blueprint) -> BTreeMap<&'static str, Json> {
    secrets_of(blueprint.graph.iter())
}

pub(crate) fn secrets_of<'a>(resources: impl Iterator<Item = &'a Resource>) -> BTreeMap<&'static str, Json> {
    let mut passwords = JsonMap::new();
    let mut documents = JsonMap::new();
    let mut storages = JsonMap::new();
    for resource in resources {
        let name = resource.address.name().to_owned();
        let cloudinit = resource.spec.get("cloudinit").and_then(Value::as_map);
        let password = resource.spec.get("password").or_else(|| cloudinit?.get("password"));
        if let Some(text) = password.and_then(plain_secret) {
            let of = if resource.kind() == kinds::STORAGE { &mut storages } else { &mut passwords };
            of.insert(name.clone(), Json::String(text));
        }
        if resource.kind() == kinds::CIDATA {
            let files = resource.spec.get("files").and_then(Value::as_map);
            for (file, value) in files.into_iter().flat_map(Spec::iter) {
                if let Some(text) = plain_secret(value) {
                    documents.insert(format!("{name}/{file}"), Json::String(text));
                }
            }
        }
    }
    let mut variables = BTreeMap::new();
    if !passwords.is_empty() {
        variables.insert("user_passwords", Json::Object(passwords));
    }
    if !storages.is_empty() {
        variables.insert("storage_passwords", Json::Object(storages));
    }
    if !documents.is_empty() {
        variables.insert("cloud_init", Json::Object(documents));
    }
    variables
}

fn plain_secret(value: &Value) -> Option<String> {
    match value {
        Value::Secret(secret) => secret.plain().map(|plain| plain.expose().to_owned()),
        Value::Text(text) => Some(text.clone()),
        _ => None,
    }
}
