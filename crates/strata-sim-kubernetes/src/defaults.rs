//! What the server fills in where a built-in object says nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::cluster::{Cluster, Moment};
use super::object::{default, member, metadata, name, namespace, text};
use super::resource::Resource;

pub fn fill(resource: &Resource, object: &mut Value, moment: &Moment, cluster: &Cluster) {
    if resource.custom {
        return;
    }
    match resource.plural.as_str() {
        "namespaces" => {
            let label = name(object).to_owned();
            let labels = metadata(object).entry("labels").or_insert(json!({}));
            if let Value::Object(labels) = labels {
                labels.insert("kubernetes.io/metadata.name".to_owned(), json!(label));
            }
            default(member(object, "spec"), "finalizers", json!(["kubernetes"]));
            default(member(object, "status"), "phase", json!("Active"));
        }
        "secrets" => secret(object),
        "services" => {
            let address = cluster.service_address(moment, namespace(object), name(object));
            service(member(object, "spec"), &address);
        }
        "deployments" => {
            let spec = member(object, "spec");
            default(spec, "replicas", json!(1));
            default(spec, "revisionHistoryLimit", json!(10));
            default(spec, "progressDeadlineSeconds", json!(600));
            let strategy = spec.entry("strategy").or_insert(json!({ "type": "RollingUpdate" }));
            if strategy["type"] == "RollingUpdate" && strategy.get("rollingUpdate").is_none() {
                strategy["rollingUpdate"] = json!({ "maxUnavailable": "25%", "maxSurge": "25%" });
            }
            template(spec);
        }
        "daemonsets" | "statefulsets" | "replicasets" | "jobs" => {
            let spec = member(object, "spec");
            match resource.plural.as_str() {
                "daemonsets" => {
                    default(spec, "revisionHistoryLimit", json!(10));
                    let update = json!({ "type": "RollingUpdate",
                        "rollingUpdate": { "maxUnavailable": 1, "maxSurge": 0 } });
                    default(spec, "updateStrategy", update);
                }
                "statefulsets" | "replicasets" => default(spec, "replicas", json!(1)),
                _ => default(spec, "backoffLimit", json!(6)),
            }
            template(spec);
        }
        "pods" => {
            pod(member(object, "spec"));
            default(member(object, "status"), "phase", json!("Pending"));
        }
        "customresourcedefinitions" => definition(object),
        "clusterrolebindings" | "rolebindings" => {
            let role = member(object, "roleRef");
            default(role, "apiGroup", json!("rbac.authorization.k8s.io"));
            for subject in object["subjects"].as_array_mut().into_iter().flatten() {
                if subject["kind"] != "ServiceAccount" && subject.get("apiGroup").is_none() {
                    subject["apiGroup"] = json!("rbac.authorization.k8s.io");
                }
            }
        }
        "networkpolicies" => {
            let spec = member(object, "spec");
            let mut types = vec!["Ingress"];
            if spec.contains_key("egress") {
                types.push("Egress");
            }
            default(spec, "policyTypes", json!(types));
        }
        _ => {}
    }
}

fn secret(object: &mut Value) {
    let Value::Object(map) = object else { return };
    default(map, "type", json!("Opaque"));
    let Some(Value::Object(plain)) = map.shift_remove("stringData") else { return };
    let data = map.entry("data").or_insert(json!({}));
    for (key, value) in plain {
        if let (Value::Object(data), Value::String(value)) = (&mut *data, value) {
            data.insert(key, json!(STANDARD.encode(value)));
        }
    }
}

fn service(spec: &mut Map<String, Value>, address: &str) {
    default(spec, "type", json!("ClusterIP"));
    default(spec, "sessionAffinity", json!("None"));
    if spec["type"] != "ExternalName" {
        default(spec, "clusterIP", json!(address));
        let addresses = json!([spec["clusterIP"]]);
        default(spec, "clusterIPs", addresses);
        default(spec, "internalTrafficPolicy", json!("Cluster"));
        default(spec, "ipFamilies", json!(["IPv4"]));
        default(spec, "ipFamilyPolicy", json!("SingleStack"));
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let number = port["port"].clone();
        if let Value::Object(port) = port {
            default(port, "protocol", json!("TCP"));
            default(port, "targetPort", number);
        }
    }
}

fn template(spec: &mut Map<String, Value>) {
    let template = spec.entry("template").or_insert(json!({}));
    pod(member(template, "spec"));
}

fn pod(spec: &mut Map<String, Value>) {
    for (key, value) in [
        ("restartPolicy", json!("Always")),
        ("dnsPolicy", json!("ClusterFirst")),
        ("schedulerName", json!("default-scheduler")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("securityContext", json!({})),
    ] {
        default(spec, key, value);
    }
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let image = text(container, "/image").to_owned();
            let latest = image.ends_with(":latest")
                || !image.rsplit('/').next().unwrap_or_default().contains([':', '@']);
            let Value::Object(container) = container else { continue };
            default(container, "imagePullPolicy", json!(if latest { "Always" } else { "IfNotPresent" }));
            default(container, "terminationMessagePath", json!("/dev/termination-log"));
            default(container, "terminationMessagePolicy", json!("File"));
            default(container, "resources", json!({}));
            for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
                if let Value::Object(port) = port {
                    default(port, "protocol", json!("TCP"));
                }
            }
        }
    }
}

fn definition(object: &mut Value) {
    let kind = text(object, "/spec/names/kind").to_owned();
    let spec = member(object, "spec");
    default(spec, "conversion", json!({ "strategy": "None" }));
    let names = spec.entry("names").or_insert(json!({}));
    if let Value::Object(names) = names {
        default(names, "singular", json!(kind.to_lowercase()));
        default(names, "listKind", json!(format!("{kind}List")));
    }
}
