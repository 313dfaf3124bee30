//! The targets of a run: connected once, shared by all stacks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rand::RngCore;
use strata_engine::Providers;
use strata_net::{DialMap, Exchange, Fingerprint, TlsTrust, TraceSink};
use strata_proxmox::{Login, ProxmoxOptions, ProxmoxProvider};
use strata_secret::SecretString;
use strata_source::settings::target::{ProxmoxTarget, Tls};
use strata_source::{EffectiveStack, Value};

use super::Workspace;
use super::resolve::Outside;
use crate::command_error::CommandError;
use crate::printer::Printer;

#[derive(Clone, Default)]
pub(super) struct Targets {
    providers: Providers,
    connected: BTreeSet<String>,
    shared: BTreeMap<String, BTreeSet<String>>,
}

impl Targets {
    pub(super) fn into_providers(self) -> Providers {
        self.providers
    }

    pub(super) fn shared_storages(&self) -> &BTreeMap<String, BTreeSet<String>> {
        &self.shared
    }

    /// Connects every Proxmox of the stack's environment: a state may name one that the source no longer does.
    pub(super) async fn connect(
        &mut self,
        workspace: &Workspace<'_>,
        stack: &EffectiveStack,
    ) -> Result<(), CommandError> {
        for (name, target) in workspace.repository().settings(&stack.environment).targets.iter() {
            let Some(proxmox) = &target.proxmox else { continue };
            if !self.connected.insert(name.value.clone()) {
                continue;
            }
            let options = options(workspace, proxmox)?;
            let provider = ProxmoxProvider::connect(options)
                .map_err(|error| CommandError::failed(format!("target `{name}`: {error}")))?;
            let shared = provider.shared_storages().await.map_err(|error| {
                let mut own = CommandError::from(error);
                own.message = format!("target `{name}`: {}", own.message);
                own
            })?;
            self.shared.insert(name.value.clone(), shared);
            self.providers.insert(name, Arc::new(provider));
        }
        Ok(())
    }
}

fn options(workspace: &Workspace<'_>, target: &ProxmoxTarget) -> Result<ProxmoxOptions, CommandError> {
    let outside = Outside::new(workspace, "");
    let resolve = |value: &Value<String>| -> Result<SecretString, CommandError> {
        match value {
            Value::Literal(text) => Ok(SecretString::new(text.clone())),
            Value::Reference(reference) => {
                let location = workspace.repository().sources.location(reference.span);
                let origin = format!("{}:{}", location.file, location.line);
                outside
                    .value(&reference.source)
                    .map_err(|message| CommandError::failed(message).origin(Some(origin)))
            }
        }
    };
    let random = Arc::new(|| rand::rng().next_u64());
    let mut options = ProxmoxOptions::new(target.endpoint.value.clone(), random);
    options.token = target.token.as_ref().map(resolve).transpose()?;
    options.login = match &target.login {
        Some(login) => Some(Login {
            user: resolve(&login.user)?.expose().to_owned(),
            password: resolve(&login.password)?,
        }),
        None => None,
    };
    if options.token.is_none() && options.login.is_none() {
        return Err(CommandError::failed("a Proxmox target needs a `token` or a `login`"));
    }
    options.tls = trust(workspace, target.tls.as_ref())?;
    options.dial = dial(workspace)?;
    options.redactor = workspace.redactor.clone();
    let printer = workspace.context.printer;
    if printer.is_verbose() {
        options.trace = Some(Arc::new(Trace(printer)));
    }
    Ok(options)
}

fn trust(workspace: &Workspace<'_>, tls: Option<&Tls>) -> Result<TlsTrust, CommandError> {
    let Some(tls) = tls else { return Ok(TlsTrust::System) };
    if tls.insecure {
        workspace.context.printer.note("warning: `insecure: true`: whoever answers is believed");
        return Ok(TlsTrust::Insecure);
    }
    if let Some(fingerprint) = &tls.fingerprint {
        let fingerprint: Fingerprint = fingerprint.parse().map_err(|error| {
            CommandError::failed(format!("`{}` is no fingerprint: {error}", fingerprint.value))
        })?;
        return Ok(TlsTrust::Fingerprint(fingerprint));
    }
    match &tls.ca {
        Some(path) => {
            let place = workspace.root().join(&path.value);
            let pem = std::fs::read(&place)
                .map_err(|error| CommandError::failed(format!("cannot read `{}`: {error}", path.value)))?;
            Ok(TlsTrust::Ca(pem))
        }
        None => Ok(TlsTrust::System),
    }
}

fn dial(workspace: &Workspace<'_>) -> Result<DialMap, CommandError> {
    let Some(path) = &workspace.context.global.dial else { return Ok(DialMap::new()) };
    let name = path.display();
    let json = std::fs::read_to_string(path)
        .map_err(|error| CommandError::failed(format!("cannot read `{name}`: {error}")))?;
    DialMap::parse(&json).map_err(|error| CommandError::failed(format!("`{name}`: {error}")))
}

/// Every request, for `-v`: never a body, never a header.
struct Trace(Printer);

impl TraceSink for Trace {
    fn exchange(&self, exchange: &Exchange<'_>) {
        let status = exchange.status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
        let ms = exchange.took.as_millis();
        self.0.detail(format!("  {} {} {status} {ms} ms", exchange.method, exchange.path));
    }
}
