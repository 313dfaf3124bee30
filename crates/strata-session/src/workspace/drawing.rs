//! From a stack to its blueprint, with all that the repository knows of its surroundings.

use std::collections::{BTreeMap, BTreeSet};

use strata_blueprint::placement::Homes;
use strata_blueprint::{
    Blueprint, ForeignTemplate, Origin, Resolver, Site, draw_cluster, draw_hypervisor, draw_stack,
};
use strata_diagnostics::Diagnostic;
use strata_resource::Address;
use strata_source::{EffectiveStack, Model};
use strata_talos::SecretsBundle;

use super::resolve::{ByName, Outside};
use super::{Workspace, reach};
use crate::error::{ErrorKind, SessionError};

/// What was made before: it stays what it is, and where it is.
#[derive(Debug, Clone, Default)]
pub struct Before {
    /// Where objects were made that were moved since then.
    pub origins: BTreeMap<Address, Origin>,
    /// Where guests stand whose source leaves it open.
    pub homes: Homes,
}

impl Workspace {
    /// The blueprint of a stack as far as it can be drawn without asking a target.
    pub fn blueprint(&self, stack: &str) -> Result<Blueprint, SessionError> {
        self.blueprint_of(self.one(stack)?)
    }

    pub fn blueprint_of(&self, stack: &EffectiveStack) -> Result<Blueprint, SessionError> {
        self.draw(stack, &BTreeMap::new(), None, &Before::default())
    }

    /// The same without a key and without a connection: of a secret only its name is looked for.
    pub fn blueprint_by_names(&self, stack: &EffectiveStack) -> Result<Blueprint, SessionError> {
        let by_name = ByName(Outside::new(self, &stack.folder));
        self.draw_with(stack, &BTreeMap::new(), None, &Before::default(), &by_name)
    }

    pub fn draw(
        &self,
        stack: &EffectiveStack,
        shared_storages: &BTreeMap<String, BTreeSet<String>>,
        cluster_secrets: Option<&SecretsBundle>,
        before: &Before,
    ) -> Result<Blueprint, SessionError> {
        let outside = Outside::new(self, &stack.folder);
        self.draw_with(stack, shared_storages, cluster_secrets, before, &outside)
    }

    pub(super) fn draw_with(
        &self,
        stack: &EffectiveStack,
        shared_storages: &BTreeMap<String, BTreeSet<String>>,
        cluster_secrets: Option<&SecretsBundle>,
        before: &Before,
        resolver: &dyn Resolver,
    ) -> Result<Blueprint, SessionError> {
        let drawn = self.attempt(stack, shared_storages, cluster_secrets, before, resolver)?;
        let mut drawn = drawn.map_err(|found| {
            let found: Vec<&Diagnostic> = found.iter().collect();
            self.surroundings.observer.diagnostics(&found, &self.repository.sources);
            SessionError::already_shown(ErrorKind::Failed)
        })?;
        self.surroundings.providers.complete(self, &mut drawn);
        Ok(drawn)
    }

    /// What is wrong with a stack that only drawing it shows. Neither secrets nor a target are asked for.
    pub fn drawing_errors(&self, stack: &EffectiveStack) -> Result<Vec<Diagnostic>, SessionError> {
        let by_name = ByName(Outside::new(self, &stack.folder));
        let storages = self.repository.shared_storages();
        Ok(self.attempt(stack, &storages, None, &Before::default(), &by_name)?.err().unwrap_or_default())
    }

    fn attempt(
        &self,
        stack: &EffectiveStack,
        shared_storages: &BTreeMap<String, BTreeSet<String>>,
        cluster_secrets: Option<&SecretsBundle>,
        before: &Before,
        resolver: &dyn Resolver,
    ) -> Result<Result<Blueprint, Vec<Diagnostic>>, SessionError> {
        let settings = self.repository.settings(&stack.environment);
        let lineage = self.lineage(stack)?;
        let own = reach::own_name(stack);
        let known = self.repository.target(stack).map(|(name, _)| name);
        let foreign = self.foreign_templates(stack);
        let site = Site {
            repository: self.repository_id()?,
            environment: (!stack.is_default_environment).then_some(stack.environment.as_str()),
            stack: &stack.name,
            lineage: &lineage,
            origins: &before.origins,
            homes: &before.homes,
            default_target: known.or(own.as_deref()),
            shared_storages,
            foreign_templates: &foreign,
            mirror: &|url| settings.mirrored(url),
            resolver,
            is_secret: &|text| self.redactor.redact(text) != text,
            cluster_secrets,
            sources: &self.repository.sources,
        };
        Ok(match &stack.model {
            Model::Machines(machines) => draw_stack(&site, machines),
            Model::Cluster(cluster) => draw_cluster(&site, cluster),
            Model::Hypervisor(hypervisor) => draw_hypervisor(&site, hypervisor),
            Model::Tofu(_) | Model::Broken | Model::Removed => Ok(Blueprint::default()),
        })
    }

    /// The templates of other stacks, as `stack/template`.
    fn foreign_templates(&self, stack: &EffectiveStack) -> BTreeMap<String, ForeignTemplate> {
        let mut found = BTreeMap::new();
        for other in self.repository.stacks().iter().filter(|other| other.name.value != stack.name) {
            let effective = self
                .repository
                .stack(&other.name, Some(&stack.environment))
                .or_else(|| self.repository.stack(&other.name, None));
            let Some(machines) = effective.and_then(EffectiveStack::machines) else { continue };
            for template in machines.template_instances() {
                let node = template.node.as_ref().map(|node| node.value.clone());
                found
                    .entry(format!("{}/{}", other.name, template.key))
                    .or_insert(ForeignTemplate { vm_id: template.vm_id, node });
            }
        }
        found
    }
}
