//! A repository in memory, drawn.

use std::collections::BTreeMap;

use strata_blueprint::{Blueprint, Resolver, Site, draw_cluster, draw_hypervisor, draw_stack};
use strata_diagnostics::Diagnostic;
use strata_resource::Lineage;
use strata_secret::SecretString;
use strata_source::{EffectiveStack, Model, Reference, Repository};

struct NoSecrets;

impl Resolver for NoSecrets {
    fn resolve(&self, _: &Reference) -> Result<SecretString, Box<Diagnostic>> {
        Ok(SecretString::new("secret".to_owned()))
    }
}

pub(crate) fn draw(repository: &Repository, stack: &EffectiveStack) -> Blueprint {
    let lineage = Lineage::derive("golden", &format!("{}/{}", stack.environment, stack.name));
    let (shared, foreign, origins) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let site = Site {
        repository: "golden",
        environment: (!stack.is_default_environment).then_some(stack.environment.as_str()),
        stack: &stack.name,
        lineage: &lineage,
        origins: &origins,
        default_target: Some("pve"),
        homes: &Default::default(),
        shared_storages: &shared,
        foreign_templates: &foreign,
        mirror: &|url| url.to_owned(),
        resolver: &NoSecrets,
        is_secret: &|_| false,
        cluster_secrets: None,
        sources: &repository.sources,
    };
    let drawn = match &stack.model {
        Model::Machines(machines) => draw_stack(&site, machines),
        Model::Cluster(cluster) => draw_cluster(&site, cluster),
        Model::Hypervisor(hypervisor) => draw_hypervisor(&site, hypervisor),
        _ => Ok(Blueprint::default()),
    };
    drawn.unwrap_or_else(|found| panic!("{:?}", found.iter().map(|found| &found.message).collect::<Vec<_>>()))
}
