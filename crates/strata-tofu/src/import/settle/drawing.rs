//! The machines that the result describes, drawn as `strata validate` draws them: what cannot be drawn is told.

use std::collections::BTreeMap;

use strata_blueprint::{ForeignTemplate, Resolver, Site, draw_cluster, draw_stack};
use strata_diagnostics::Diagnostic;
use strata_resource::Lineage;
use strata_secret::SecretString;
use strata_source::{EffectiveStack, Model, Reference, Repository};

/// Nothing is decrypted to see whether something can be drawn.
struct Hidden;

impl Resolver for Hidden {
    fn resolve(&self, _: &Reference) -> Result<SecretString, Box<Diagnostic>> {
        Ok(SecretString::new("hidden".to_owned()))
    }
}

pub(super) fn problems(repository: &Repository) -> Vec<Diagnostic> {
    let foreign = templates(repository);
    repository.effective().flat_map(|stack| of_stack(repository, stack, &foreign)).collect()
}

fn of_stack(
    repository: &Repository,
    stack: &EffectiveStack,
    foreign: &BTreeMap<String, ForeignTemplate>,
) -> Vec<Diagnostic> {
    let id = repository.settings.repository.as_ref().map(|id| id.value.as_str()).unwrap_or_default();
    let lineage = Lineage::derive(id, &format!("{}/{}", stack.environment, stack.name));
    let shared = BTreeMap::new();
    let known = repository.target(stack).map(|(name, _)| name);
    let site = Site {
        repository: id,
        environment: None,
        stack: &stack.name,
        lineage: &lineage,
        // A cluster that writes its Proxmox down itself is a target of its own.
        default_target: known.or(Some("own")),
        shared_storages: &shared,
        foreign_templates: foreign,
        mirror: &|url| url.to_owned(),
        resolver: &Hidden,
        is_secret: &|_| false,
        cluster_secrets: None,
        sources: &repository.sources,
    };
    let drawn = match &stack.model {
        Model::Machines(machines) => draw_stack(&site, machines),
        Model::Cluster(cluster) => draw_cluster(&site, cluster),
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
