//! The version of Kubernetes: one component after the other, one node after the other.
//!
//! The API servers first, because everything else may be older than they are and nothing newer; the kubelets last.

use serde_json::Value as Json;
use strata_engine::{Operation, OperationContext, Outcome, ProviderError};
use strata_kubernetes::{ApplyOptions, Object, ObjectRef};
use strata_resource::Value;
use strata_state::Action;
use strata_talos::{Component, MachineConfig, Version};
use strata_talos_client::{ApplyMode, ImageStore, ResourceKind};

use crate::cluster::{Cluster, NodePlace};
use crate::config_write::ConfigWrite;
use crate::error::{internal, kube, talos};
use crate::machine::no_answer;
use crate::node::{Contact, Registration};
use crate::rolling::Disturbance;
use crate::wait::{Seen, cut, permit, permit_unless_stopped, until};

pub(crate) async fn execute(
    cluster: &Cluster,
    operation: &Operation,
    context: &dyn OperationContext,
) -> Result<Outcome, ProviderError> {
    if operation.action == Action::Delete {
        return Ok(Outcome::default());
    }
    let version = operation.spec.get("version").and_then(Value::as_text).unwrap_or_default();
    if operation.action == Action::Create {
        // Where control planes were away, workers come back when they get their certificates again.
        for node in &cluster.places() {
            answers(cluster, node, context).await?;
        }
    }
    pull(cluster, version, context).await?;
    let mut changed = false;
    for component in Component::ALL {
        // What Talos gives to Kubernetes comes before the kubelets: a run that dies here still finds an old version, and begins again.
        if component == Component::Kubelet && changed {
            manifests(cluster, context).await?;
        }
        let runs_it = |node: &&NodePlace| node.control_plane || component == Component::Kubelet;
        for node in cluster.places().iter().filter(runs_it) {
            changed |= set(cluster, node, component, version, context).await?;
        }
    }
    for node in &cluster.places() {
        cluster.wait_healthy(node, context).await?;
    }
    Ok(Outcome::default())
}

async fn answers(
    cluster: &Cluster,
    node: &NodePlace,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    until(context, &format!("Talos on `{}`", node.name), cluster.options.deadlines.join, || async {
        Ok(match cluster.contact(&node.address).await? {
            Contact::Running(_) => Seen::Done(()),
            Contact::Unreachable(why) => Seen::NotYet(why),
            Contact::Maintenance => Seen::NotYet("it waits for a configuration".to_owned()),
            Contact::Unmanaged(who) => return Err(internal(who)),
        })
    })
    .await
}

/// The version that a cluster has: the oldest of all components of all nodes.
pub(crate) fn version_of<'c>(configs: impl Iterator<Item = &'c MachineConfig>) -> Option<String> {
    let versions = configs.flat_map(|config| {
        let here = Component::ALL.into_iter().filter(|component| config.runs(*component));
        here.filter_map(|component| config.component_version(component))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    });
    // What is no version counts as the oldest: then it is set to one.
    versions
        .min_by_key(|version| version.parse::<Version>().ok())
        .map(|version| format!("v{}", version.trim_start_matches('v')))
}

/// The images are on the nodes before anything stops.
async fn pull(cluster: &Cluster, version: &str, context: &dyn OperationContext) -> Result<(), ProviderError> {
    for node in cluster.places() {
        let Contact::Running(running) = cluster.contact(&node.address).await? else { continue };
        for component in Component::ALL {
            let Some(image) = running.config.component_image(component) else { continue };
            let wanted = with_tag(image, version);
            if wanted == image || (!node.control_plane && component != Component::Kubelet) {
                continue;
            }
            permit_unless_stopped(context, "images")?;
            context.progress(&format!("`{}` pulls {wanted}", node.name));
            let store =
                if component == Component::Kubelet { ImageStore::System } else { ImageStore::Kubernetes };
            // A node that cannot pull it now can later: the component's own start tells.
            let client = cluster.talos(&node.address)?;
            let pulled = cut(context, "an image", async { Ok(client.pull_image(&wanted, store).await) });
            if let Err(error) = pulled.await? {
                context.progress(&format!("`{}`: {error}", node.name));
            }
        }
    }
    Ok(())
}

fn with_tag(image: &str, version: &str) -> String {
    let (name, _) = image.rsplit_once(':').unwrap_or((image, ""));
    format!("{name}:v{}", version.trim_start_matches('v'))
}

/// One component of one node. Says whether there was anything to do.
async fn set(
    cluster: &Cluster,
    node: &NodePlace,
    component: Component,
    version: &str,
    context: &dyn OperationContext,
) -> Result<bool, ProviderError> {
    let Contact::Running(running) = cluster.contact(&node.address).await? else {
        return Err(no_answer(node));
    };
    if !running.config.runs(component) {
        return Ok(false);
    }
    let (config, changes) = with_version(&running.config, component, version)?;
    let wanted = config.component_image(component).unwrap_or_default().to_owned();
    if changes {
        let _slot = cluster.enter_rollout_slot(node, Disturbance::Component, context).await?;
        // What somebody else wrote into it meanwhile stays: nothing but the version is ours to change here.
        let Contact::Running(running) = cluster.contact(&node.address).await? else {
            return Err(no_answer(node));
        };
        let (config, _) = with_version(&running.config, component, version)?;
        context.progress(&format!("{} of `{}` becomes {version}", component.name(), node.name));
        let write = ConfigWrite { name: &node.name, seen: &running.config, wanted: &config };
        write.send(cluster, &node.address, ApplyMode::NoReboot, context).await?.must_be_applied()?;
    }
    runs(cluster, node, component, &wanted, context).await?;
    Ok(changes)
}

/// A configuration with another version of one component, and whether that is another one.
fn with_version(
    config: &MachineConfig,
    component: Component,
    version: &str,
) -> Result<(MachineConfig, bool), ProviderError> {
    let mut config = config.clone();
    let changes = config.set_component_version(component, version);
    changes.map(|changes| (config, changes)).map_err(|error| internal(error.to_string()))
}

/// Waits until the component runs in its new version.
async fn runs(
    cluster: &Cluster,
    node: &NodePlace,
    component: Component,
    image: &str,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    let tag = image.rsplit_once(':').map(|(_, tag)| tag).unwrap_or_default().to_owned();
    let what = format!("{} {tag} on `{}`", component.name(), node.name);
    match component {
        // A DaemonSet: its manifest comes at the end.
        Component::Proxy => Ok(()),
        Component::Kubelet => {
            let registration = Registration::default();
            until(context, &what, cluster.options.deadlines.reboot, || async {
                let found = cluster.kube().node(&node.name).await;
                if registration.is_overdue(matches!(found, Ok(None))) {
                    cluster.register_again(node, context).await?;
                }
                Ok(match found {
                    Ok(Some(found)) if found.kubelet_version.as_deref() == Some(tag.as_str()) => {
                        Seen::Done(())
                    }
                    Ok(Some(found)) => {
                        Seen::NotYet(format!("it is {}", found.kubelet_version.unwrap_or_default()))
                    }
                    Ok(None) => Seen::NotYet("Kubernetes does not know the node".to_owned()),
                    Err(error) if error.is_transient() => Seen::NotYet(error.to_string()),
                    Err(error) => return Err(kube(error)),
                })
            })
            .await
        }
        _ => {
            let pod = ObjectRef::namespaced(
                "v1",
                "Pod",
                "kube-system",
                &format!("{}-{}", component.name(), node.name),
            );
            until(context, &what, cluster.options.deadlines.join, || async {
                Ok(match cluster.kube().get(&pod).await {
                    Ok(Some(pod)) if image_of(&pod) == Some(image) && is_ready(&pod) => Seen::Done(()),
                    Ok(Some(pod)) => {
                        Seen::NotYet(format!("its pod runs {}", image_of(&pod).unwrap_or("nothing")))
                    }
                    Ok(None) => Seen::NotYet("it has no pod".to_owned()),
                    Err(error) if error.is_transient() => Seen::NotYet(error.to_string()),
                    Err(error) => return Err(kube(error)),
                })
            })
            .await
        }
    }
}

fn image_of(pod: &Object) -> Option<&str> {
    pod.at("/spec/containers")?.as_array()?.first()?.get("image")?.as_str()
}

fn is_ready(pod: &Object) -> bool {
    pod.condition("Ready").and_then(|condition| condition.get("status")).and_then(Json::as_str)
        == Some("True")
}

/// The objects of one manifest: a list, or one.
fn objects(spec: &strata_talos::Value) -> Vec<Json> {
    match spec {
        strata_talos::Value::List(items) => items.iter().map(json).collect(),
        strata_talos::Value::Map(_) => vec![json(spec)],
        _ => Vec::new(),
    }
}

fn json(value: &strata_talos::Value) -> Json {
    use strata_talos::Value;
    match value {
        Value::Null => Json::Null,
        Value::Bool(bool) => Json::from(*bool),
        Value::Int(int) => i64::try_from(*int).map_or(Json::Null, Json::from),
        Value::Octal(number) => Json::from(*number),
        Value::Float(number) => Json::from(*number),
        Value::Text(text) => Json::from(text.as_str()),
        Value::List(items) => Json::Array(items.iter().map(json).collect()),
        Value::Map(map) => Json::Object(map.iter().map(|(key, value)| (key.clone(), json(value))).collect()),
    }
}

/// What Talos gives to Kubernetes at bootstrap, in its newest form: kube-proxy, the network plug-in, the cluster's DNS.
async fn manifests(cluster: &Cluster, context: &dyn OperationContext) -> Result<(), ProviderError> {
    let Some(node) = cluster.control_planes().into_iter().next() else { return Ok(()) };
    let resources = match cluster.talos(&node.address)?.list(ResourceKind::MANIFESTS).await {
        Ok(resources) => resources,
        // A Talos that gives none.
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(talos(error)),
    };
    for resource in resources {
        for object in objects(&resource.spec) {
            let object = Object::new(object).map_err(|error| internal(error.to_string()))?;
            let permit = permit(context)?;
            context.progress(&format!("applies {}", object.reference()));
            cluster
                .kube()
                .apply(&permit, &object, ApplyOptions { force: true, dry_run: false })
                .await
                .map_err(kube)?;
        }
    }
    Ok(())
}
