//! A repository in memory, drawn and rendered.

use std::collections::BTreeMap;

use strata_blueprint::{Blueprint, Resolver, Site, draw_cluster, draw_hypervisor, draw_stack};
use strata_diagnostics::Diagnostic;
use strata_resource::Lineage;
use strata_secret::SecretString;
use strata_source::world::Memory;
use strata_source::{EffectiveStack, Model, Reference, Repository};
use strata_tofu::{Connection, Files, Project, render};

struct NoSecrets;

impl Resolver for NoSecrets {
    fn resolve(&self, _: &Reference) -> Result<SecretString, Box<Diagnostic>> {
        Ok(SecretString::new("secret".to_owned()))
    }
}

/// Everything that `strata sync` would write.
pub(crate) fn rendered(world: &Memory) -> Files {
    let (repository, diagnostics) = Repository::load(world);
    let shown: Vec<String> = diagnostics.iter().map(|found| found.message.clone()).collect();
    assert!(!diagnostics.has_errors(), "{shown:?}");
    let mut drawn: Vec<(&EffectiveStack, Blueprint)> = Vec::new();
    for entry in repository.stacks() {
        for environment in &entry.environments {
            let stack = repository.stack(&entry.name, Some(environment)).unwrap();
            drawn.push((stack, draw(&repository, stack)));
        }
    }
    let projects: Vec<Project<'_>> = drawn
        .iter()
        .map(|(stack, blueprint)| Project {
            stack,
            blueprint,
            connection: Connection { endpoint: "https://192.0.2.10:8006".into(), ..Connection::default() },
            state: repository.settings.state.as_ref(),
            world,
            taken_over: false,
        })
        .collect();
    render(&projects, false)
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
