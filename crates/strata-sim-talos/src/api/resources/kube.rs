//! What a machine knows of Kubernetes: its own name there, its kubelet, the parts of a control plane, and what Talos gives to a cluster.

use serde_json::{Value, json};

use super::kinds::{
    API_SERVER, CONTROLLER_MANAGER, KUBELET_CONFIG, KUBELET_SPEC, MANIFEST, MANIFESTS_CONFIG, NODE_STATUS,
    NODENAME, SCHEDULER, STATIC_POD, STATIC_POD_STATUS,
};
use super::{kinds, resource, versioned};
use crate::config::MachineConfig;
use crate::machine::Boot;
use crate::wire::cosi::{self, Resource};
use crate::wire::structure::{Item, Items, Structure};
use crate::world::World;
use strata_sim_core::yaml;
use strata_sim_kubernetes::{CONTROL_PLANE_PARTS, config_version};
use strata_sim_kubernetes::{has_condition, manifests};

pub(super) fn all(world: &World, key: &str, boot: &Boot, kind: &'static kinds::Kind) -> Vec<Resource> {
    let Some(config) = &boot.config else { return Vec::new() };
    let hostname = world.talos_hostname(key);
    match kind.name {
        NODENAME => {
            let yaml = yaml::write(&json!({ "nodename": hostname }));
            vec![resource("k8s", NODENAME, "nodename", &cosi::NodenameSpec { nodename: hostname }, yaml)]
        }
        NODE_STATUS => {
            world.kubernetes.node(&hostname).map(|node| node_status(&hostname, node)).into_iter().collect()
        }
        KUBELET_CONFIG | KUBELET_SPEC => {
            let image = config.component_image("kubelet").unwrap_or_default();
            let spec = json!({ "image": image, "expectedNodename": hostname });
            let content = cosi::ImageSpec { image };
            vec![resource("k8s", kind.name, "kubelet", &content, yaml::write(&spec))]
        }
        _ if !config.is_control_plane() => Vec::new(),
        STATIC_POD => pods(config, &hostname)
            .into_iter()
            .map(|(part, pod)| {
                resource(
                    "k8s",
                    STATIC_POD,
                    part,
                    &Item { object: Some(Structure::new(&pod)) },
                    yaml::write(&pod),
                )
            })
            .collect(),
        STATIC_POD_STATUS => {
            let up = world.api_server_up(key);
            let status = json!({ "conditions": [{ "type": "Ready", "status": "True" }], "phase": "Running" });
            let content = Item { object: Some(Structure::new(&status)) };
            let parts = CONTROL_PLANE_PARTS.iter().filter(|_| up);
            parts
                .map(|part| {
                    let id = format!("kube-system/{part}-{hostname}");
                    resource("k8s", STATIC_POD_STATUS, &id, &content, yaml::write(&status))
                })
                .collect()
        }
        API_SERVER => vec![part(config, kind, "kube-apiserver")],
        CONTROLLER_MANAGER => vec![part(config, kind, "kube-controller-manager")],
        SCHEDULER => vec![part(config, kind, "kube-scheduler")],
        MANIFEST => manifests(&config.manifests())
            .into_iter()
            .map(|(id, objects)| {
                let items = objects.iter().map(|object| Item { object: Some(Structure::new(object)) });
                let content = Items { items: items.collect() };
                resource("controlplane", MANIFEST, id, &content, yaml::write(&Value::Array(objects.clone())))
            })
            .collect(),
        MANIFESTS_CONFIG => {
            let wanted = config.manifests();
            let spec = json!({
                "server": config.endpoint(), "clusterDomain": config.dns_domain(), "podCIDRs": config.pod_subnets(),
                "proxyEnabled": wanted.proxy.is_some(), "proxyImage": wanted.proxy, "coreDNSEnabled": true,
                "flannelEnabled": wanted.flannel, "cniName": config.cni(),
            });
            let content = cosi::ManifestsConfigSpec {
                server: config.endpoint().to_owned(),
                cluster_domain: config.dns_domain(),
                pod_cidrs: config.pod_subnets(),
                proxy_enabled: wanted.proxy.is_some(),
                proxy_image: wanted.proxy.unwrap_or_default(),
                dns_enabled: true,
                flannel_enabled: wanted.flannel,
                cni: config.cni().to_owned(),
            };
            vec![resource("controlplane", MANIFESTS_CONFIG, "manifests", &content, yaml::write(&spec))]
        }
        _ => Vec::new(),
    }
}

fn node_status(hostname: &str, node: &Value) -> Resource {
    let ready = has_condition(node, "Ready", "True");
    let unschedulable = node["spec"]["unschedulable"] == true;
    let spec = json!({ "nodename": hostname, "nodeReady": ready, "unschedulable": unschedulable });
    let content = cosi::NodeStatusSpec { nodename: hostname.to_owned(), ready, unschedulable };
    resource("k8s", NODE_STATUS, hostname, &content, yaml::write(&spec))
}

/// The static pods of a control plane.
fn pods(config: &MachineConfig, hostname: &str) -> Vec<(&'static str, Value)> {
    let pod = |part: &'static str| {
        let image = config.component_image(part)?;
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": format!("{part}-{hostname}"), "namespace": "kube-system", "labels": { "k8s-app": part, "tier": "control-plane" } },
            "spec": { "containers": [{ "name": part, "image": image }], "hostNetwork": true },
        });
        Some((part, pod))
    };
    CONTROL_PLANE_PARTS.into_iter().filter_map(pod).collect()
}

/// What a part of the control plane is told. Its pod names the version of this in an annotation.
fn part(config: &MachineConfig, kind: &kinds::Kind, part: &str) -> Resource {
    let image = config.component_image(part).unwrap_or_default();
    let version = config_version(&image);
    let yaml = yaml::write(&json!({ "image": image }));
    let resource = match kind.name {
        API_SERVER => resource(kind.namespace, kind.name, part, &cosi::ImageSpec { image }, yaml),
        _ => resource(kind.namespace, kind.name, part, &cosi::SwitchedSpec { enabled: true, image }, yaml),
    };
    versioned(resource, version)
}
