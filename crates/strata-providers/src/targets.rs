//! The targets of a run: Proxmox and TrueNAS, as strata.yaml and clusters write them down.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use strata_proxmox::{Login, ProxmoxOptions, ProxmoxProvider};
use strata_secret::SecretString;
use strata_session::{Connections, SessionError, SessionEvent, Workspace, own_name};
use strata_source::settings::target::{ProxmoxTarget, TruenasTarget};
use strata_source::{EffectiveStack, Spanned, Value};
use strata_truenas::{DatasetProvider, TrueNasClient, TrueNasOptions};

use crate::AllProviders;
use crate::token_keeper::SopsKeeper;

impl AllProviders {
    /// Connects every target of the stack's environment: a state may name one that the source no longer does.
    pub(crate) async fn connect_targets(
        &self,
        workspace: &Workspace,
        stack: &EffectiveStack,
        connections: &mut Connections,
    ) {
        for (name, target) in workspace.repository().settings(&stack.environment).targets.iter() {
            if let Some(truenas) = &target.truenas
                && connections.claim(name)
            {
                match nas(workspace, truenas) {
                    Ok(client) => {
                        let provider = Arc::new(DatasetProvider::new(client));
                        self.remember_truenas(name, &provider);
                        connections.insert(name, provider);
                    }
                    Err(error) => connections.fail(name, error),
                }
            }
            let Some(proxmox) = &target.proxmox else { continue };
            if !connections.claim(name) {
                continue;
            }
            let endpoint = Some(workspace.origin(proxmox.endpoint.span));
            let added = match options(workspace, proxmox) {
                Ok(options) => {
                    let added = self.add(workspace, name, options, connections).await;
                    added.map_err(|error| error.origin(endpoint))
                }
                Err(error) => Err(error),
            };
            if let Err(error) = added {
                connections.fail(name, error);
            }
        }
        // One that a cluster writes down itself.
        if let Some(name) = own_name(stack)
            && workspace.repository().target(stack).is_none()
            && connections.claim(&name)
        {
            let added = match own_options(workspace, stack) {
                Ok(Some(options)) => {
                    let endpoint = stack.own_endpoint().map(|endpoint| workspace.origin(endpoint.span));
                    let added = self.add(workspace, &name, options, connections).await;
                    added.map_err(|error| error.origin(endpoint))
                }
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = added {
                connections.fail(&name, error);
            }
        }
    }

    async fn add(
        &self,
        workspace: &Workspace,
        name: &str,
        options: ProxmoxOptions,
        connections: &mut Connections,
    ) -> Result<(), SessionError> {
        let endpoint = options.endpoint.clone();
        let provider = ProxmoxProvider::connect(options)
            .map_err(|error| SessionError::failed(format!("target `{name}`: {error}")))?;
        let shared = visibly(workspace, &endpoint, provider.shared_storages()).await.map_err(|error| {
            let mut own = SessionError::from(error);
            own.message = format!("target `{name}`: {}", own.message);
            own
        })?;
        connections.share(name, shared);
        let provider = Arc::new(provider);
        self.remember(name, &provider);
        connections.insert(name, provider);
        Ok(())
    }
}

/// Waits for the first answer of a target, and lets the observer hear that it takes a while.
async fn visibly<T>(workspace: &Workspace, endpoint: &str, first: impl Future<Output = T>) -> T {
    const SECOND: Duration = Duration::from_secs(1);
    let mut first = std::pin::pin!(first);
    let mut seconds = 0;
    loop {
        tokio::select! {
            answer = &mut first => return answer,
            () = tokio::time::sleep(SECOND) => {
                seconds += 1;
                workspace.surroundings().observer.session_event(SessionEvent::Connecting { endpoint, seconds });
            }
        }
    }
}

/// Everything about the targets of stacks that is known without a connection. Those of an environment are looked at once.
pub(crate) fn check(workspace: &Workspace, stacks: &[&EffectiveStack]) -> Result<(), SessionError> {
    let environments: BTreeSet<&str> = stacks.iter().map(|stack| stack.environment.as_str()).collect();
    for environment in environments {
        for (_, target) in workspace.repository().settings(environment).targets.iter() {
            if let Some(proxmox) = &target.proxmox {
                options(workspace, proxmox)?;
            }
        }
    }
    for stack in stacks {
        if own_name(stack).is_some() && workspace.repository().target(stack).is_none() {
            own_options(workspace, stack)?;
        }
    }
    Ok(())
}

/// A TrueNAS. Nothing is sent before something is asked of it.
fn nas(workspace: &Workspace, target: &TruenasTarget) -> Result<TrueNasClient, SessionError> {
    let key = workspace.resolve("", &target.api_key)?;
    let mut options = TrueNasOptions::new(target.endpoint.value.clone(), key);
    options.tls = workspace.trust(target.tls.as_ref())?;
    options.dial = workspace.dial()?;
    options.redactor = workspace.redactor().clone();
    TrueNasClient::new(options).map_err(|error| SessionError::failed(error.to_string()))
}

/// How the Proxmox of a cluster is reached that names no target.
fn own_options(
    workspace: &Workspace,
    stack: &EffectiveStack,
) -> Result<Option<ProxmoxOptions>, SessionError> {
    let Some(proxmox) = stack.cluster().and_then(|cluster| cluster.proxmox.as_ref()) else { return Ok(None) };
    let Some(endpoint) = &proxmox.endpoint else { return Ok(None) };
    let mut options = base_options(workspace, endpoint)?;
    options.token = Some(workspace.own_token(stack, proxmox)?);
    options.tls = match proxmox.insecure {
        Some(true) => workspace.insecure(),
        _ => workspace.trust(proxmox.tls.as_ref())?,
    };
    Ok(Some(options))
}

/// What is the same for every Proxmox.
fn base_options(workspace: &Workspace, endpoint: &Spanned<String>) -> Result<ProxmoxOptions, SessionError> {
    if let Some(rest) = endpoint.strip_prefix("http://") {
        let message =
            format!("the endpoint `{}` must be https: Proxmox serves its API over TLS alone", endpoint.value);
        let origin = Some(workspace.origin(endpoint.span));
        return Err(SessionError::failed(message).origin(origin).hint(format!("write `https://{rest}`")));
    }
    let mut options = ProxmoxOptions::new(endpoint.value.clone(), workspace.surroundings().jitter());
    options.dial = workspace.dial()?;
    options.redactor = workspace.redactor().clone();
    options.write_timeout = workspace.lease().map(|lease| lease.write_timeout());
    options.keeper = Some(Arc::new(SopsKeeper::new(workspace)));
    options.trace.clone_from(&workspace.surroundings().trace);
    Ok(options)
}

fn options(workspace: &Workspace, target: &ProxmoxTarget) -> Result<ProxmoxOptions, SessionError> {
    let resolve = |value: &Value<String>| workspace.resolve("", value);
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
        return Err(SessionError::failed("a Proxmox target needs a `token` or a `login`"));
    }
    filled_in(workspace, target, options.token.as_ref())?;
    options.tls = workspace.trust(target.tls.as_ref())?;
    Ok(options)
}

/// An import writes something down for what it cannot know; nobody is asked before that is replaced.
fn filled_in(
    workspace: &Workspace,
    target: &ProxmoxTarget,
    token: Option<&SecretString>,
) -> Result<(), SessionError> {
    let endpoint = &target.endpoint;
    let origin = Some(workspace.origin(endpoint.span));
    let host = endpoint.split("://").last().unwrap_or_default().split([':', '/']).next().unwrap_or_default();
    if host.ends_with(".invalid") {
        let message = format!("`{}` stands in for an endpoint that no file said", endpoint.value);
        return Err(SessionError::failed(message).origin(origin).hint("write the real one here"));
    }
    if token.is_some_and(|token| token.expose() == strata_import::NO_TOKEN) {
        let message = format!("the API token of `{}` is not set yet", endpoint.value);
        let hint = "write it as `user@realm!name=secret` with `strata secrets edit secrets.sops.yaml`";
        return Err(SessionError::failed(message).origin(origin).hint(hint));
    }
    Ok(())
}
