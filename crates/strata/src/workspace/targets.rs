//! The targets of a run: connected once, shared by all stacks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rand::RngCore;
use strata_diagnostics::{LARGEST_FILE, read_file, read_text_file};
use strata_engine::{Provider, Providers};
use strata_net::{DialMap, Exchange, Fingerprint, TlsTrust, TraceSink};
use strata_proxmox::{Login, ProxmoxOptions, ProxmoxProvider};
use strata_secret::SecretString;
use strata_source::cluster::ClusterProxmox;
use strata_source::cluster::flat::{TOKEN_ID, TOKEN_SECRET};
use strata_source::settings::target::{ProxmoxTarget, Tls, TruenasTarget};
use strata_source::{EffectiveStack, Value};
use strata_truenas::{DatasetProvider, TrueNasClient, TrueNasOptions};

use super::Workspace;
use super::resolve::Outside;
use super::token_keeper::SopsKeeper;
use crate::command_error::CommandError;
use crate::printer::Printer;

#[derive(Clone, Default)]
pub(super) struct Targets {
    providers: Providers,
    connected: BTreeSet<String>,
    shared: BTreeMap<String, BTreeSet<String>>,
    proxmox: BTreeMap<String, Arc<ProxmoxProvider>>,
}

impl Targets {
    pub(super) fn insert(&mut self, target: &str, provider: Arc<dyn Provider>) {
        self.providers.insert(target, provider);
    }

    /// Puts something around a provider.
    pub(super) fn wrap(&mut self, target: &str, around: impl FnOnce(Arc<dyn Provider>) -> Arc<dyn Provider>) {
        if let Ok(inner) = self.providers.get(target).cloned() {
            self.providers.insert(target, around(inner));
        }
    }

    pub(super) fn proxmox(&self, target: &str) -> Option<Arc<ProxmoxProvider>> {
        self.proxmox.get(target).cloned()
    }

    /// Every Proxmox that is connected, by target.
    pub(super) fn all_proxmox(&self) -> BTreeMap<String, Arc<ProxmoxProvider>> {
        self.proxmox.clone()
    }

    pub(super) fn into_providers(self) -> Providers {
        self.providers
    }

    pub(super) fn shared_storages(&self) -> &BTreeMap<String, BTreeSet<String>> {
        &self.shared
    }

    /// Adds what the source says to what there is.
    pub(super) fn expect_shared(&mut self, written: BTreeMap<String, BTreeSet<String>>) {
        for (target, storages) in written {
            self.shared.entry(target).or_default().extend(storages);
        }
    }

    /// Connects every Proxmox of the stack's environment: a state may name one that the source no longer does.
    pub(super) async fn connect(
        &mut self,
        workspace: &Workspace<'_>,
        stack: &EffectiveStack,
    ) -> Result<(), CommandError> {
        for (name, target) in workspace.repository().settings(&stack.environment).targets.iter() {
            if let Some(truenas) = &target.truenas
                && self.connected.insert(name.value.clone())
            {
                self.providers.insert(name, Arc::new(DatasetProvider::new(nas(workspace, truenas)?)));
            }
            let Some(proxmox) = &target.proxmox else { continue };
            if !self.connected.insert(name.value.clone()) {
                continue;
            }
            let endpoint = Some(workspace.origin(proxmox.endpoint.span));
            let added = self.add(name, options(workspace, proxmox)?).await;
            added.map_err(|error| error.origin(endpoint))?;
        }
        // One that a cluster writes down itself.
        if let Some(name) = own_name(stack)
            && workspace.repository().target(stack).is_none()
            && self.connected.insert(name.clone())
            && let Some(options) = own_options(workspace, stack)?
        {
            let endpoint = stack.own_endpoint().map(|endpoint| workspace.origin(endpoint.span));
            self.add(&name, options).await.map_err(|error| error.origin(endpoint))?;
        }
        Ok(())
    }

    async fn add(&mut self, name: &str, options: ProxmoxOptions) -> Result<(), CommandError> {
        let provider = ProxmoxProvider::connect(options)
            .map_err(|error| CommandError::failed(format!("target `{name}`: {error}")))?;
        let shared = provider.shared_storages().await.map_err(|error| {
            let mut own = CommandError::from(error);
            own.message = format!("target `{name}`: {}", own.message);
            own
        })?;
        self.shared.insert(name.to_owned(), shared);
        let provider = Arc::new(provider);
        self.proxmox.insert(name.to_owned(), provider.clone());
        self.providers.insert(name, provider);
        Ok(())
    }
}

/// A TrueNAS. Nothing is sent before something is asked of it.
fn nas(workspace: &Workspace<'_>, target: &TruenasTarget) -> Result<TrueNasClient, CommandError> {
    let key = resolve(workspace, "", &target.api_key)?;
    let mut options = TrueNasOptions::new(target.endpoint.value.clone(), key);
    options.tls = trust(workspace, target.tls.as_ref())?;
    options.dial = dial(workspace)?;
    options.redactor = workspace.redactor.clone();
    TrueNasClient::new(options).map_err(|error| CommandError::failed(error.to_string()))
}

/// The name of the target that a cluster writes down itself; none in strata.yaml can have it.
pub(super) fn own_name(stack: &EffectiveStack) -> Option<String> {
    stack.own_endpoint().map(|_| format!("{}/proxmox", stack.name))
}

/// How the Proxmox of a cluster is reached that names no target.
fn own_options(
    workspace: &Workspace<'_>,
    stack: &EffectiveStack,
) -> Result<Option<ProxmoxOptions>, CommandError> {
    let Some(proxmox) = stack.cluster().and_then(|cluster| cluster.proxmox.as_ref()) else { return Ok(None) };
    let Some(endpoint) = &proxmox.endpoint else { return Ok(None) };
    let mut options = base_options(workspace, endpoint)?;
    options.token = Some(own_token(workspace, stack, proxmox)?);
    options.tls = match proxmox.insecure {
        Some(true) => insecure(workspace),
        _ => trust(workspace, proxmox.tls.as_ref())?,
    };
    Ok(Some(options))
}

/// The token in one piece, from the source or else from the encrypted files, where the flat family keeps it.
fn own_token(
    workspace: &Workspace<'_>,
    stack: &EffectiveStack,
    proxmox: &ClusterProxmox,
) -> Result<SecretString, CommandError> {
    let part = |value: &Option<Value<String>>, name: &str| match value {
        Some(value) => resolve(workspace, &stack.folder, value),
        None => workspace.secret(name).map_err(|error| {
            CommandError::failed(format!(
                "the cluster `{}` has no API token of its Proxmox: {error}",
                stack.name
            ))
            .origin(Some(stack.path.clone()))
            .hint(format!(
                "write `{TOKEN_ID}` and `{TOKEN_SECRET}` into it; `strata secrets collect` encrypts them"
            ))
        }),
    };
    let secret = part(&proxmox.token, TOKEN_SECRET)?;
    if secret.expose().contains('!') {
        return Ok(secret);
    }
    let id = part(&proxmox.token_id, TOKEN_ID)?;
    Ok(SecretString::new(format!("{}={}", id.expose(), secret.expose())))
}

/// The API token of the Proxmox that a stack is on, where it has one.
pub(super) fn token_of(
    workspace: &Workspace<'_>,
    stack: &EffectiveStack,
) -> Result<Option<SecretString>, CommandError> {
    if let Some((_, target)) = workspace.repository().proxmox(stack) {
        return target.token.as_ref().map(|token| resolve(workspace, "", token)).transpose();
    }
    match stack.cluster().and_then(|cluster| cluster.proxmox.as_ref()).filter(|own| own.endpoint.is_some()) {
        Some(own) => own_token(workspace, stack, own).map(Some),
        None => Ok(None),
    }
}

/// A value of the source, or what it refers to.
pub(super) fn resolve(
    workspace: &Workspace<'_>,
    folder: &str,
    value: &Value<String>,
) -> Result<SecretString, CommandError> {
    match value {
        Value::Literal(text) => Ok(SecretString::new(text.clone())),
        Value::Reference(reference) => {
            let origin = workspace.origin(reference.span);
            Outside::new(workspace, folder).value(&reference.source).map_err(|message| {
                let hint = super::resolve::hint(&reference.source, &message);
                let error = CommandError::failed(message).origin(Some(origin));
                hint.into_iter().fold(error, CommandError::hint)
            })
        }
    }
}

/// What is the same for every Proxmox.
fn base_options(workspace: &Workspace<'_>, endpoint: &str) -> Result<ProxmoxOptions, CommandError> {
    let mut options = ProxmoxOptions::new(endpoint.to_owned(), random());
    options.dial = dial(workspace)?;
    options.redactor = workspace.redactor.clone();
    options.write_timeout = workspace.lease().map(|lease| lease.write_timeout());
    options.keeper = Some(Arc::new(SopsKeeper::new(workspace)));
    options.trace = trace(workspace);
    Ok(options)
}

/// For jitter between attempts.
pub(super) fn random() -> strata_net::Random {
    Arc::new(|| rand::rng().next_u64())
}

/// Who is told of every request, for `-v`.
pub(super) fn trace(workspace: &Workspace<'_>) -> Option<Arc<dyn TraceSink>> {
    let printer = workspace.context.printer;
    printer.is_verbose().then(|| -> Arc<dyn TraceSink> { Arc::new(Trace(printer)) })
}

fn options(workspace: &Workspace<'_>, target: &ProxmoxTarget) -> Result<ProxmoxOptions, CommandError> {
    let resolve = |value: &Value<String>| resolve(workspace, "", value);
    let mut options = base_options(workspace, &target.endpoint)?;
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
    filled_in(workspace, target, options.token.as_ref())?;
    options.tls = trust(workspace, target.tls.as_ref())?;
    Ok(options)
}

/// An import writes something down for what it cannot know; nobody is asked before that is replaced.
fn filled_in(
    workspace: &Workspace<'_>,
    target: &ProxmoxTarget,
    token: Option<&SecretString>,
) -> Result<(), CommandError> {
    let endpoint = &target.endpoint;
    let origin = Some(workspace.origin(endpoint.span));
    let host = endpoint.split("://").last().unwrap_or_default().split([':', '/']).next().unwrap_or_default();
    if host.ends_with(".invalid") {
        let message = format!("`{}` stands in for an endpoint that no file said", endpoint.value);
        return Err(CommandError::failed(message).origin(origin).hint("write the real one here"));
    }
    if token.is_some_and(|token| token.expose() == strata_import::NO_TOKEN) {
        let message = format!("the API token of `{}` is not set yet", endpoint.value);
        let hint = "write it as `user@realm!name=secret` with `strata secrets edit secrets.sops.yaml`";
        return Err(CommandError::failed(message).origin(origin).hint(hint));
    }
    Ok(())
}

fn insecure(workspace: &Workspace<'_>) -> TlsTrust {
    workspace.context.printer.note("warning: `insecure: true`: whoever answers is believed");
    TlsTrust::Insecure
}

pub(super) fn trust(workspace: &Workspace<'_>, tls: Option<&Tls>) -> Result<TlsTrust, CommandError> {
    let Some(tls) = tls else { return Ok(TlsTrust::System) };
    if tls.insecure {
        return Ok(insecure(workspace));
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
            let pem = read_file(&place, LARGEST_FILE)
                .map_err(|error| CommandError::failed(format!("cannot read `{}`: {error}", path.value)))?;
            Ok(TlsTrust::Ca(pem))
        }
        None => Ok(TlsTrust::System),
    }
}

pub(super) fn dial(workspace: &Workspace<'_>) -> Result<DialMap, CommandError> {
    let mut map = DialMap::new();
    if let Some(proxy) = &workspace.repository().settings.proxy {
        let place = proxy.trim_end_matches('/').trim_start_matches("http://");
        if place.contains("://") {
            return Err(CommandError::failed(format!(
                "the proxy `{}` is not of the form `http://host:port`",
                proxy.value
            )));
        }
        map.through(place);
    }
    let Some(path) = &workspace.context.global.dial else { return Ok(map) };
    let name = path.display();
    let json = read_text_file(path, LARGEST_FILE)
        .map_err(|error| CommandError::failed(format!("cannot read `{name}`: {error}")))?;
    let own = DialMap::parse(&json).map_err(|error| CommandError::failed(format!("`{name}`: {error}")))?;
    Ok(map.with(own))
}

/// Every request, for `-v`: never a body, never a header.
pub(super) struct Trace(pub(super) Printer);

impl TraceSink for Trace {
    fn exchange(&self, exchange: &Exchange<'_>) {
        let status = exchange.status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
        let ms = exchange.took.as_millis();
        self.0.detail(format!("  {} {} {status} {ms} ms", exchange.method, exchange.path));
    }
}
