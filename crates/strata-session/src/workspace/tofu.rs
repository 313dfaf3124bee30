//! What OpenTofu needs of a repository: rendered projects, and the secrets that they take by the environment.

use std::collections::{BTreeMap, BTreeSet};

use strata_blueprint::{Blueprint, Resolver, placement};
use strata_diagnostics::Diagnostic;
use strata_engine::{Providers, with_outputs};
use strata_resource::{Address, Value as Output};
use strata_secret::{Redactor, SecretBytes, SecretString};
use strata_secrets::{Access, vault};
use strata_source::settings::state::State;
use strata_source::settings::target::Tls;
use strata_source::stack::tofu::StackOutput;
use strata_source::{EffectiveStack, Model, Reference, Source, Spanned, Value};
use strata_tofu::{Connection, Family, Files, Project};

use super::resolve::Outside;
use super::{Before, OWN_FOLDER, Workspace, digest_key};
use crate::error::SessionError;
use crate::tofu::{Inputs, Program};

/// Resolves everything but secrets: what is rendered holds none, and whoever renders may have no keys.
struct WithoutSecrets<'w>(Outside<'w>);

impl Resolver for WithoutSecrets<'_> {
    fn resolve(&self, reference: &Reference) -> Result<SecretString, Box<Diagnostic>> {
        match reference.source {
            Source::Secret(_) => Ok(SecretString::new("not resolved".to_owned())),
            _ => self.0.resolve(reference),
        }
    }
}

/// Nothing of the machine that asks: whoever lists guests needs neither keys nor variables.
struct WithoutSurroundings<'w>(Outside<'w>);

impl Resolver for WithoutSurroundings<'_> {
    fn resolve(&self, reference: &Reference) -> Result<SecretString, Box<Diagnostic>> {
        let unresolved = || SecretString::new("not resolved".to_owned());
        match reference.source {
            Source::File(_) => Ok(self.0.resolve(reference).unwrap_or_else(|_| unresolved())),
            _ => Ok(unresolved()),
        }
    }
}

impl Workspace {
    /// Everything that is generated for the stacks, in all their environments. Import blocks are for what a state knows.
    pub async fn rendered(&self, stacks: &[String], import_blocks: bool) -> Result<Files, SessionError> {
        let selected = self.select_in(stacks, None)?;
        let names: Vec<&str> = selected.iter().map(|stack| stack.name.as_str()).collect();
        let mut drawn: Vec<(&EffectiveStack, Blueprint, Connection)> = Vec::new();
        for entry in self.repository.stacks().iter().filter(|entry| names.contains(&entry.name.as_str())) {
            for environment in &entry.environments {
                let Some(stack) = self.repository.stack(&entry.name, Some(environment)) else { continue };
                if Family::of(stack).is_some() {
                    let blueprint = self.blueprint_without_secrets(stack)?;
                    if let Some(open) = placement::homeless(&blueprint).first() {
                        let message = format!("`{}` has no node that OpenTofu could be given", open.address);
                        return Err(SessionError::refused(message)
                            .origin(open.origin.clone())
                            .hint("`node: any` is for `strata apply`; name a node to render it"));
                    }
                    drawn.push((stack, blueprint, self.connection(stack)));
                }
            }
        }
        let mut built: BTreeSet<String> = BTreeSet::new();
        for (stack, ..) in drawn.iter().filter(|_| import_blocks) {
            let key = super::key(stack);
            let state = self.store()?.read(&key).await?;
            if state.is_some_and(|state| !state.resources.is_empty()) {
                built.insert(key);
            }
        }
        let state = self.repository.settings.state.as_ref();
        let projects: Vec<Project<'_>> = drawn
            .iter()
            .map(|(stack, blueprint, connection)| Project {
                stack,
                blueprint,
                connection: connection.clone(),
                state,
                world: &self.disk,
                taken_over: built.contains(&super::key(stack)),
            })
            .collect();
        Ok(strata_tofu::render(&projects, import_blocks))
    }

    pub fn blueprint_without_secrets(&self, stack: &EffectiveStack) -> Result<Blueprint, SessionError> {
        let outside = WithoutSecrets(Outside::new(self, &stack.folder));
        self.draw_with(stack, &self.repository.shared_storages(), None, &Before::default(), &outside)
    }

    /// The first fixed address of each machine of a stack, as the source says it. Neither secrets nor variables are read.
    pub fn written_addresses(
        &self,
        stack: &EffectiveStack,
    ) -> Result<BTreeMap<Address, String>, SessionError> {
        let outside = WithoutSurroundings(Outside::new(self, &stack.folder));
        let storages = self.repository.shared_storages();
        Ok(self.draw_with(stack, &storages, None, &Before::default(), &outside)?.addresses)
    }

    /// How the provider reaches the Proxmox of a stack.
    fn connection(&self, stack: &EffectiveStack) -> Connection {
        let own = stack.cluster().and_then(|cluster| cluster.proxmox.as_ref());
        let known = self.repository.proxmox(stack).map(|(_, proxmox)| proxmox);
        let written = own.and_then(|own| own.endpoint.as_ref());
        let endpoint = written.or(known.map(|proxmox| &proxmox.endpoint));
        let tls: Option<&Tls> = match written {
            Some(_) => own.and_then(|own| own.tls.as_ref()),
            None => known.and_then(|proxmox| proxmox.tls.as_ref()),
        };
        let pinned = tls.is_some_and(|tls| tls.fingerprint.is_some());
        let open = tls.is_some_and(|tls| tls.insecure) || own.is_some_and(|own| own.insecure == Some(true));
        Connection {
            endpoint: endpoint.map(|endpoint| base_address(endpoint)).unwrap_or_default(),
            insecure: pinned || open,
            pinned,
        }
    }

    /// The sensitive variables of a rendered project.
    pub fn tofu_variables(
        &self,
        stack: &EffectiveStack,
    ) -> Result<BTreeMap<String, SecretString>, SessionError> {
        let mut variables = BTreeMap::new();
        let Some(family) = Family::of(stack) else { return Ok(variables) };
        if let Some(token) = self.token_of(stack)? {
            match token.expose().split_once('=') {
                Some((id, secret)) if family == Family::Template => {
                    variables.insert("proxmox_api_token_id".to_owned(), SecretString::new(id.to_owned()));
                    variables
                        .insert("proxmox_api_token_secret".to_owned(), SecretString::new(secret.to_owned()));
                }
                _ => {
                    variables.insert("proxmox_api_token".to_owned(), token);
                }
            }
        }
        let blueprint = self.draw(stack, &self.repository.shared_storages(), None, &Before::default())?;
        for (name, json) in strata_tofu::secret_variables(&blueprint) {
            variables.insert(name.to_owned(), SecretString::new(json.to_string()));
        }
        if let Some(passphrase) = self.state_passphrase()? {
            variables.insert("state_encryption_passphrase".to_owned(), passphrase);
        }
        Ok(variables)
    }

    /// What OpenTofu's state is encrypted with, if it is.
    pub fn state_passphrase(&self) -> Result<Option<SecretString>, SessionError> {
        let encryption = self.state_settings().and_then(|state| state.encryption.as_ref());
        encryption
            .and_then(|encryption| encryption.passphrase.as_ref())
            .map(|value| self.value(value))
            .transpose()
    }

    pub fn state_settings(&self) -> Option<&State> {
        self.repository.settings.state.as_ref()
    }

    /// A value of strata.yaml.
    pub fn value(&self, value: &Value<String>) -> Result<SecretString, SessionError> {
        self.resolve("", value)
    }

    /// A secret by its name, if there is one that can be read.
    pub fn secret_if_any(&self, name: &str) -> Result<Option<SecretString>, SessionError> {
        match self.secrets.contains(name) {
            Ok(Some(false)) => Ok(None),
            Ok(_) => Ok(self.secrets.resolve(name).ok()),
            Err(error) => Err(SessionError::failed(error.to_string())),
        }
    }

    /// The variables that a stack written by hand is given by its stack.yaml.
    pub async fn tofu_inputs(
        &self,
        stack: &EffectiveStack,
        inputs: Inputs<'_>,
    ) -> Result<BTreeMap<String, SecretString>, SessionError> {
        let mut variables = BTreeMap::new();
        let Some(given) = stack.tofu() else { return Ok(variables) };
        for (name, value) in given.variables.iter() {
            let resolved = self.resolve(&stack.folder, value)?;
            if value.reference().is_some_and(Reference::is_secret) {
                self.redactor.add(&resolved);
            }
            variables.insert(name.value.clone(), resolved);
        }
        for (name, input) in given.inputs.iter() {
            let known = match inputs {
                Inputs::All(known) => known.get(&input.stack).and_then(|outputs| outputs.get(&input.output)),
                Inputs::Known => None,
            };
            let value = match known {
                Some(value) => value.clone(),
                None => match (self.output_of(stack, input).await, &inputs) {
                    (Err(_), Inputs::Known) => continue,
                    (found, _) => found?,
                },
            };
            variables.insert(name.value.clone(), SecretString::new(as_variable(&value)));
        }
        Ok(variables)
    }

    /// An output of another stack, of the same environment if it is part of that. What Strata makes itself is known before it is made, but for
    /// what its guests reported when it was applied; of OpenTofu's stacks, what the last apply gave.
    async fn output_of(
        &self,
        stack: &EffectiveStack,
        input: &Spanned<StackOutput>,
    ) -> Result<Output, SessionError> {
        let same = self.repository.stack(&input.stack, Some(&stack.environment));
        let other = same
            .or_else(|| self.repository.stack(&input.stack, None))
            .ok_or_else(|| SessionError::failed(format!("there is no stack `{}`", input.stack)))?;
        let read_state = async || {
            self.run(Providers::default(), other)?
                .read_state(&self.empty_view(other)?)
                .await
                .map_err(SessionError::from)
        };
        let is_driven = matches!(other.model, Model::Tofu(_));
        let known = if is_driven {
            read_state().await?.document.outputs
        } else {
            let drawn = self.blueprint_without_secrets(other)?.outputs;
            match drawn.get(&input.output).and_then(Output::unfilled) {
                Some(_) => with_outputs(&read_state().await?.document, &drawn),
                None => drawn,
            }
        };
        known.get(&input.output).cloned().ok_or_else(|| {
            let name = &other.name;
            let hint = match is_driven {
                true => format!(
                    "outputs appear with an apply: `strata apply {name}`; those that OpenTofu marks as sensitive are not handed on"
                ),
                false => format!("its guest has not reported its address: once it runs, `strata apply {name}` asks for it"),
            };
            SessionError::failed(format!("`{name}` has no output `{}` yet", input.output))
                .origin(Some(self.origin(input.span)))
                .hint(hint)
        })
    }

    /// Takes care that nothing of a file of variables is ever shown.
    pub fn keep_secret(&self, variables: &SecretBytes) {
        let text = std::str::from_utf8(variables.expose()).unwrap_or_default();
        for (_, value) in strata_secrets::tfvars::values(text).unwrap_or_default() {
            self.redactor.add(&value);
        }
    }

    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// What is in a file of ansible-vault.
    pub fn open_vault(&self, content: &[u8]) -> Result<strata_secret::SecretBytes, String> {
        let access: &Access = &self.access;
        vault::open(content, access.passwords())
            .map(|open| open.plaintext().clone())
            .map_err(|error| error.to_string())
    }

    /// The user's own OpenTofu.
    pub fn program(&self) -> Result<&Program, SessionError> {
        if let Some(program) = self.program.get() {
            return Ok(program);
        }
        let found = Program::find(&self.surroundings)?;
        Ok(self.program.get_or_init(|| found))
    }

    /// A passphrase for saved plans where the repository has none: it never leaves this machine.
    pub fn plan_passphrase(&self) -> Result<SecretString, SessionError> {
        let key = digest_key::load_or_make(&self.root.join(OWN_FOLDER), &self.surroundings)?;
        let digest = key.digest("strata tofu", "plan", b"passphrase");
        Ok(SecretString::new(digest.to_string()))
    }

    /// The one stack that a command is about; without a name, the only one that OpenTofu could be run for.
    pub fn tofu_stack(&self, stack: Option<&str>) -> Result<&EffectiveStack, SessionError> {
        if let Some(stack) = stack {
            return self.one(stack);
        }
        let able =
            |stack: &&EffectiveStack| Family::of(stack).is_some() || matches!(stack.model, Model::Tofu(_));
        let found: Vec<&EffectiveStack> = self.select(&[])?.into_iter().filter(able).collect();
        match found.as_slice() {
            [one] => Ok(one),
            [] => Err(SessionError::failed("there is no stack that OpenTofu could be run for")),
            several => {
                let names: Vec<&str> = several.iter().map(|stack| stack.name.as_str()).collect();
                Err(SessionError::failed("more than one stack could be meant")
                    .hint(format!("name one of {}", names.join(", "))))
            }
        }
    }
}

/// As `TF_VAR_…` takes it: text as it is, all else as JSON, which is an expression too.
fn as_variable(value: &Output) -> String {
    match value {
        Output::Text(text) => text.clone(),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}

/// The provider takes the address without the path.
fn base_address(endpoint: &str) -> String {
    let endpoint = endpoint.trim_end_matches('/');
    endpoint.strip_suffix("/api2/json").unwrap_or(endpoint).to_owned()
}
