//! From a stack to its blueprint, with all that the repository knows of its surroundings.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use strata_blueprint::{
    Blueprint, ForeignTemplate, Resolver, Site, draw_cluster, draw_hypervisor, draw_stack, kinds,
};
use strata_diagnostics::{Diagnostic, LARGEST_FILE, read_file};
use strata_resource::{Spec, Value};
use strata_source::{EffectiveStack, Model};
use strata_talos::SecretsBundle;

use super::resolve::Outside;
use super::{Workspace, show, targets};
use crate::command_error::{CommandError, ErrorKind};

impl Workspace<'_> {
    /// The blueprint of a stack as far as it can be drawn without asking a target.
    pub(crate) fn blueprint(&self, stack: &str) -> Result<Blueprint, CommandError> {
        self.blueprint_of(self.one(stack)?)
    }

    pub(crate) fn blueprint_of(&self, stack: &EffectiveStack) -> Result<Blueprint, CommandError> {
        self.draw(stack, &BTreeMap::new(), None)
    }

    pub(super) fn draw(
        &self,
        stack: &EffectiveStack,
        shared_storages: &BTreeMap<String, BTreeSet<String>>,
        cluster_secrets: Option<&SecretsBundle>,
    ) -> Result<Blueprint, CommandError> {
        self.draw_with(stack, shared_storages, cluster_secrets, &Outside::new(self, &stack.folder))
    }

    pub(super) fn draw_with(
        &self,
        stack: &EffectiveStack,
        shared_storages: &BTreeMap<String, BTreeSet<String>>,
        cluster_secrets: Option<&SecretsBundle>,
        resolver: &dyn Resolver,
    ) -> Result<Blueprint, CommandError> {
        let settings = self.repository.settings(&stack.environment);
        let lineage = self.lineage(stack)?;
        let own = targets::own_name(stack);
        let known = self.repository.target(stack).map(|(name, _)| name);
        let foreign = self.foreign_templates(stack);
        let site = Site {
            repository: self.repository_id()?,
            environment: (!stack.is_default_environment).then_some(stack.environment.as_str()),
            stack: &stack.name,
            lineage: &lineage,
            default_target: known.or(own.as_deref()),
            shared_storages,
            foreign_templates: &foreign,
            mirror: &|url| settings.mirrored(url),
            resolver,
            is_secret: &|text| self.redactor.redact(text) != text,
            cluster_secrets,
            sources: &self.repository.sources,
        };
        let drawn = match &stack.model {
            Model::Machines(machines) => draw_stack(&site, machines),
            Model::Cluster(cluster) => draw_cluster(&site, cluster),
            Model::Hypervisor(hypervisor) => draw_hypervisor(&site, hypervisor),
            Model::Tofu(_) | Model::Broken | Model::Removed => Ok(Blueprint::default()),
        };
        if let Ok(blueprint) = &drawn {
            let machines = blueprint.graph.iter().filter(|resource| resource.kind() == kinds::MACHINE);
            machines.flat_map(|machine| machine.spec.values()).for_each(|value| self.learn(value));
        }
        let mut drawn = drawn.map_err(|found| {
            let found: Vec<&Diagnostic> = found.iter().collect();
            show(self.context.printer, &found, &self.repository.sources);
            CommandError::silent(ErrorKind::Failed)
        })?;
        self.digest_manifests(&mut drawn);
        Ok(drawn)
    }

    /// What a file of manifests says is part of what is wanted: with another content it is applied again. One that cannot be read is told
    /// when it is needed.
    fn digest_manifests(&self, drawn: &mut Blueprint) {
        for resource in drawn.graph.iter_mut().filter(|resource| resource.kind() == kinds::FLUX) {
            let file = resource
                .spec
                .get("source")
                .and_then(Value::as_text)
                .and_then(|source| source.strip_prefix("file:"));
            if let Some(content) = file.and_then(|file| read_file(&self.root().join(file), LARGEST_FILE).ok())
            {
                let digest = format!("sha256:{}", hex::encode(Sha256::digest(&content)));
                resource.spec.insert("manifests".to_owned(), Value::Text(digest));
            }
        }
    }

    /// Has the parts of a secret scrubbed from whatever others say, too: a server quotes the value that it does not like, not the whole
    /// document that it came in.
    fn learn(&self, value: &Value) {
        if let Some(plain) = value.as_secret().and_then(|secret| secret.plain()) {
            match serde_json::from_str::<Json>(plain.expose()) {
                Ok(parts @ (Json::Object(_) | Json::Array(_))) => self.learn_parts(&parts),
                _ => self.learn_text(plain.expose()),
            }
        }
        value.as_map().into_iter().flat_map(Spec::values).for_each(|value| self.learn(value));
        value.as_list().into_iter().flatten().for_each(|value| self.learn(value));
    }

    fn learn_parts(&self, parts: &Json) {
        match parts {
            Json::String(text) => self.learn_text(text),
            Json::Array(items) => items.iter().for_each(|item| self.learn_parts(item)),
            Json::Object(map) => {
                for (key, value) in map {
                    self.learn_text(key);
                    self.learn_parts(value);
                }
            }
            _ => {}
        }
    }

    /// Short words and numbers are in every text.
    fn learn_text(&self, text: &str) {
        const SHORTEST: usize = 8;
        if text.len() >= SHORTEST && !text.bytes().all(|byte| byte.is_ascii_digit()) {
            self.redactor.add_text(text);
        }
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
