//! The controllers of Flux, and what they follow.

use std::time::Duration;

use strata_diagnostics::{LARGEST_FILE, read_file};
use strata_engine::{ErrorClass, Operation, OperationContext, Outcome, ProviderError};
use strata_kubernetes::flux::{FluxInstall, FluxSync, GitRef, LiveFlux, LiveSource, Phase};
use strata_kubernetes::{ApplyOptions, Download, Patience};
use strata_resource::{Spec, Value};
use strata_state::{Action, StateResource};

use crate::cluster::Cluster;
use crate::error::{guarded, kube};
use crate::machine::text;
use crate::wait::{Seen, cut, permit, permit_unless_stopped, until};

/// How long Flux may take to fetch a repository that it can reach.
const FETCH: Duration = Duration::from_secs(120);
const FORCE: ApplyOptions = ApplyOptions { force: true, dry_run: false };

/// Which controllers were installed, in the facts of the state.
const CONTROLLERS: &str = "controllers";

/// What is live of the controllers, and which there should be; nothing if there are none.
pub(crate) fn observed_controllers(
    live: &LiveFlux,
    recorded: Option<&StateResource>,
) -> Option<(Spec, Spec)> {
    if !live.is_installed() {
        return None;
    }
    let mut spec = Spec::from([("flux".to_owned(), "flux-system".into())]);
    if let Some(version) = &live.version {
        spec.insert("version".to_owned(), Value::text(version.as_str()));
    }
    let there: Vec<&str> = live.controllers.iter().map(|controller| controller.name.as_str()).collect();
    // A state that was written before this was known begins with what is there.
    let known = recorded.and_then(|recorded| match recorded.facts.get(CONTROLLERS) {
        Some(Value::List(names)) => Some(names.iter().filter_map(Value::as_text).collect::<Vec<_>>()),
        _ => None,
    });
    let installed = known.unwrap_or_else(|| there.clone());
    let missing = installed.iter().filter(|name| !there.contains(name));
    spec.insert("missing".to_owned(), names(missing.copied()));
    Some((spec, Spec::from([(CONTROLLERS.to_owned(), names(installed.iter().copied()))])))
}

fn names<'n>(names: impl IntoIterator<Item = &'n str>) -> Value {
    Value::List(names.into_iter().map(Value::text).collect())
}

/// What is live of what Flux follows.
pub(crate) fn observed_sync(live: &LiveFlux) -> Option<Spec> {
    let source = live.source.as_ref()?;
    let mut spec = Spec::from([
        ("namespace".to_owned(), "flux-system".into()),
        ("sync".to_owned(), "flux-system".into()),
    ]);
    let mut put = |field: &str, value: Option<&str>| {
        if let Some(value) = value {
            spec.insert(field.to_owned(), Value::text(value));
        }
    };
    put("repository", source.url.as_deref());
    put("branch", source.reference.get("branch").map(String::as_str));
    put("auth", source.secret.as_deref());
    if let Some(kustomization) = &live.kustomization {
        put("path", kustomization.path.as_deref().map(|path| path.trim_start_matches("./")));
        put("interval", kustomization.interval.as_deref());
        put("decryption", kustomization.decryption_secret.as_deref());
    }
    Some(spec)
}

pub(crate) async fn controllers(
    cluster: &Cluster,
    operation: &Operation,
    context: &dyn OperationContext,
) -> Result<Outcome, ProviderError> {
    if operation.action == Action::Delete {
        // Workloads stay as they are; taking the controllers away is `flux uninstall`, by somebody who means it.
        return Ok(Outcome::default());
    }
    let manifests = manifests(cluster, &operation.spec).await?;
    if cluster.options.waits_for_cni {
        pod_network(cluster, context).await?;
    }
    let install = FluxInstall::parse(&manifests)
        .map_err(|error| ProviderError::new(ErrorClass::BadInput, error.to_string()).field("source"))?;
    let before = || permit_unless_stopped(context, "Flux");
    let progress = |progress: &strata_kubernetes::Progress<'_>| {
        context.progress(&format!("waits for {}: {}", progress.waiting_for, progress.seen));
    };
    let patience = Patience::seconds(cluster.options.deadlines.flux.as_secs());
    cluster.kube().install_flux(&install, FORCE, patience, &before, &progress).await.map_err(guarded)?;
    let controllers = async {
        cluster.kube().wait_for_phase(&install, Phase::Rest, patience, &progress).await.map_err(kube)
    };
    cut(context, "the controllers of Flux", controllers).await?;
    let controllers = install.controllers();
    let installed = names(controllers.keys().map(|name| name.as_ref()));
    Ok(Outcome { facts: Spec::from([(CONTROLLERS.to_owned(), installed)]) })
}

/// With `cni: none` somebody else installs the network plug-in. Until it is there no pod of Flux can start.
async fn pod_network(cluster: &Cluster, context: &dyn OperationContext) -> Result<(), ProviderError> {
    let within = cluster.options.deadlines.flux;
    let waited = until(context, "the network plug-in that you install (`cni: none`)", within, || async {
        Ok(match cluster.kube().nodes().await {
            Ok(nodes) => match nodes.into_iter().find(|node| !node.ready) {
                None => Seen::Done(()),
                Some(node) => {
                    let why = node.message.unwrap_or_else(|| "its kubelet is not ready".to_owned());
                    Seen::NotYet(format!("`{}` is not ready: {why}", node.name))
                }
            },
            Err(error) if error.is_transient() => Seen::NotYet(error.to_string()),
            Err(error) => return Err(kube(error)),
        })
    });
    waited.await.map_err(|error| match error.class {
        ErrorClass::Unreachable => error.hint(format!(
            "`strata talos kubeconfig {}` gives you access: install it, then `strata apply` goes on from here",
            cluster.options.stack
        )),
        _ => error,
    })
}

async fn manifests(cluster: &Cluster, spec: &Spec) -> Result<Vec<u8>, ProviderError> {
    let source = text(spec, "source").unwrap_or_default();
    let bad = |message: String| ProviderError::new(ErrorClass::BadInput, message);
    if let Some(path) = source.strip_prefix("file:") {
        let content = read_file(&cluster.options.root.join(path), LARGEST_FILE)
            .map_err(|error| bad(format!("the manifests of Flux, `{path}`, cannot be read: {error}")))?;
        if let Some(sum) = text(spec, "checksum") {
            let sum = sum.trim_start_matches("sha256:");
            FluxInstall::parse_pinned(path, &content, sum).map_err(|error| bad(error.to_string()))?;
        }
        return Ok(content);
    }
    let sum = text(spec, "checksum").ok_or_else(|| {
        bad(format!("the manifests of Flux from `{source}` have no checksum"))
            .hint("set `manifests: {checksum: \"sha256:…\"}`: what runs in your cluster should be what you looked at")
    })?;
    let download = Download {
        url: source.to_owned(),
        sha256: sum.to_owned(),
        tls: cluster.options.outside_tls.clone(),
        dial: cluster.options.dial.clone(),
        mirror: cluster.options.mirror.as_ref(),
    };
    download.fetch().await.map_err(|error| {
        let mut own = ProviderError::new(ErrorClass::BadInput, error.to_string());
        own.hint = error.hint().map(str::to_owned);
        own.nothing_done = true;
        own
    })
}

pub(crate) async fn sync(
    cluster: &Cluster,
    operation: &Operation,
    context: &dyn OperationContext,
) -> Result<Outcome, ProviderError> {
    let spec = &operation.spec;
    if operation.action == Action::Delete {
        if !cluster.options.ending {
            release(cluster, context).await?;
        }
        return Ok(Outcome::default());
    }
    let reference = GitRef::Branch(text(spec, "branch").unwrap_or("main").to_owned());
    let mut sync = FluxSync::new(
        text(spec, "repository").unwrap_or_default(),
        reference,
        text(spec, "path").unwrap_or_default(),
    );
    sync.interval = text(spec, "interval").unwrap_or("600s").to_owned();
    sync.authenticated = spec.contains_key("auth");
    sync.decryption = spec.contains_key("decryption");
    for object in sync.objects() {
        cluster.kube().apply(&permit(context)?, &object, FORCE).await.map_err(kube)?;
    }
    fetched(cluster, context).await?;
    Ok(Outcome::default())
}

/// Flux has fetched the repository: until then nothing of it runs, and wrong credentials would go unnoticed. A failure counts when it
/// stays, as Flux tries again by itself.
async fn fetched(cluster: &Cluster, context: &dyn OperationContext) -> Result<(), ProviderError> {
    let reference = FluxSync::source_reference();
    let within = cluster.options.deadlines.flux.min(FETCH);
    let waited = until(context, "Flux to fetch the repository", within, || async {
        Ok(match cluster.kube().get(&reference).await {
            Ok(Some(object)) => match LiveSource::read(&object) {
                source if source.ready || source.suspended => Seen::Done(()),
                source => Seen::NotYet(source.message.unwrap_or_else(|| "it has not tried yet".to_owned())),
            },
            Ok(None) => Seen::NotYet("it is not there".to_owned()),
            Err(error) if error.is_transient() => Seen::NotYet(error.to_string()),
            Err(error) => return Err(kube(error)),
        })
    });
    waited.await.map_err(|error| match error.class {
        ErrorClass::Unreachable => ProviderError { class: ErrorClass::TaskFailed, ..error }.hint(
            "look at `repository`, `branch` and the credentials in `gitops.flux`; `strata apply` tries again",
        ),
        _ => error,
    })
}

/// Flux is removed without taking anything down: suspended first, so that nothing is pruned.
async fn release(cluster: &Cluster, context: &dyn OperationContext) -> Result<(), ProviderError> {
    let kustomization = FluxSync::kustomization_reference();
    if cluster.kube().get(&kustomization).await.map_err(kube)?.is_some() {
        let suspend = serde_json::json!({"spec": {"suspend": true, "prune": false}});
        cluster.kube().patch(&permit(context)?, &kustomization, &suspend).await.map_err(kube)?;
    }
    for what in [kustomization, FluxSync::source_reference()] {
        cluster.kube().delete(&permit(context)?, &what, None).await.map_err(kube)?;
    }
    Ok(())
}
