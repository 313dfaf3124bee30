//! The machines that the result describes, drawn as `strata validate` draws them: what cannot be drawn is told.

use std::collections::BTreeMap;

use jiff::Timestamp;
use strata_blueprint::{ForeignTemplate, Resolver, Site, draw_cluster, draw_hypervisor, draw_stack};
use strata_diagnostics::Diagnostic;
use strata_resource::Lineage;
use strata_secret::{RandomSource, SecretString};
use strata_source::world::join;
use strata_source::{EffectiveStack, Model, Reference, Repository, Source};
use strata_talos::{SecretsBundle, ServiceAccountKey};

/// Nothing is decrypted to see whether something can be drawn; files that were brought along are read.
struct Hidden<'f> {
    files: &'f BTreeMap<String, String>,
    folder: &'f str,
}

impl Resolver for Hidden<'_> {
    fn resolve(&self, reference: &Reference) -> Result<SecretString, Box<Diagnostic>> {
        let known = match &reference.source {
            Source::File(path) => self.files.get(&join(self.folder, path)).cloned(),
            _ => None,
        };
        Ok(SecretString::new(known.unwrap_or_else(|| "hidden".to_owned())))
    }
}

pub(super) fn problems(repository: &Repository, files: &BTreeMap<String, String>) -> Vec<Diagnostic> {
    let foreign = templates(repository);
    repository.effective().flat_map(|stack| of_stack(repository, stack, &foreign, files, None)).collect()
}

/// What is wrong with the configurations of machines with Talos, which are made of secrets: any will do to see it.
pub(super) fn configurations(
    repository: &Repository,
    files: &BTreeMap<String, String>,
) -> Vec<(String, Diagnostic)> {
    let foreign = templates(repository);
    let clusters: Vec<&EffectiveStack> =
        repository.effective().filter(|stack| stack.cluster().is_some()).collect();
    if clusters.is_empty() {
        return Vec::new();
    }
    let made = SecretsBundle::generate(Timestamp::UNIX_EPOCH, ServiceAccountKey::Ecdsa, &mut Fixed(1));
    let Ok(secrets) = made else { return Vec::new() };
    let of = |stack: &EffectiveStack| -> Vec<(String, Diagnostic)> {
        let found = of_stack(repository, stack, &foreign, files, Some(&secrets));
        found.into_iter().map(|problem| (stack.name.clone(), problem)).collect()
    };
    clusters.into_iter().flat_map(of).collect()
}

/// Nothing hangs on these secrets: they are thrown away.
struct Fixed(u8);

impl RandomSource for Fixed {
    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.0 = self.0.wrapping_mul(167).wrapping_add(13);
            *byte = self.0;
        }
    }
}

fn of_stack(
    repository: &Repository,
    stack: &EffectiveStack,
    foreign: &BTreeMap<String, ForeignTemplate>,
    files: &BTreeMap<String, String>,
    secrets: Option<&SecretsBundle>,
) -> Vec<Diagnostic> {
    let id = repository.settings.repository.as_ref().map(|id| id.value.as_str()).unwrap_or_default();
    let lineage = Lineage::derive(id, &format!("{}/{}", stack.environment, stack.name));
    let (shared, origins) = (BTreeMap::new(), BTreeMap::new());
    let known = repository.target(stack).map(|(name, _)| name);
    let site = Site {
        repository: id,
        environment: None,
        stack: &stack.name,
        lineage: &lineage,
        origins: &origins,
        // A cluster that writes its Proxmox down itself is a target of its own.
        default_target: known.or(Some("own")),
        homes: &Default::default(),
        shared_storages: &shared,
        foreign_templates: foreign,
        mirror: &|url| url.to_owned(),
        resolver: &Hidden { files, folder: &stack.folder },
        is_secret: &|_| false,
        cluster_secrets: secrets,
        sources: &repository.sources,
    };
    let drawn = match &stack.model {
        Model::Machines(machines) => draw_stack(&site, machines),
        Model::Cluster(cluster) => draw_cluster(&site, cluster),
        Model::Hypervisor(hypervisor) => draw_hypervisor(&site, hypervisor),
        _ => return Vec::new(),
    };
    drawn.err().unwrap_or_default().into_iter().filter(Diagnostic::is_error).collect()
}

/// The templates of all stacks, as `stack/template`.
fn templates(repository: &Repository) -> BTreeMap<String, ForeignTemplate> {
    let mut found = BTreeMap::new();
    for stack in repository.effective() {
        let Some(machines) = stack.machines() else { continue };
        for template in machines.template_instances() {
            let node = template.node.as_ref().map(|node| node.value.clone());
            let own = format!("{}/{}", stack.name, template.key);
            found.entry(own).or_insert(ForeignTemplate { vm_id: template.vm_id, node });
        }
    }
    found
}
