//! Which types the API serves: the built-in ones, and those that custom resource definitions add.

use serde_json::{Value, json};

use super::object::{has_condition, list, text};

/// A type that is served under one version.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// Empty for the core group.
    pub group: String,
    pub version: String,
    pub kind: String,
    pub plural: String,
    pub singular: String,
    pub short: Vec<String>,
    pub namespaced: bool,
    pub subresources: Vec<String>,
    /// Defined by a CustomResourceDefinition.
    pub custom: bool,
}

impl Resource {
    /// `deployments.apps`, or `pods`.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    pub fn has_status(&self) -> bool {
        self.subresources.iter().any(|s| s == "status")
    }

    /// Begins the key of each object of this type.
    pub fn prefix(&self) -> String {
        format!("{}/{}/", self.group, self.plural)
    }

    pub fn key(&self, namespace: &str, name: &str) -> String {
        let namespace = if self.namespaced { namespace } else { "" };
        format!("{}{namespace}/{name}", self.prefix())
    }

    /// Only created, never kept.
    pub fn is_review(&self) -> bool {
        REVIEWS.contains(&self.plural.as_str()) && self.group.starts_with("auth")
    }

    /// The entries of this type and its subresources in a list of resources.
    pub fn api_resources(&self) -> Vec<Value> {
        let verbs = if self.is_review() {
            json!(["create"])
        } else {
            json!(["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"])
        };
        let mut main = json!({
            "name": self.plural, "singularName": self.singular, "namespaced": self.namespaced,
            "kind": self.kind, "verbs": verbs,
        });
        if ALL.contains(&self.plural.as_str()) && !self.custom {
            main["categories"] = json!(["all"]);
        }
        if !self.short.is_empty() {
            main["shortNames"] = json!(self.short);
        }
        let mut entries = vec![main];
        for sub in &self.subresources {
            let name = format!("{}/{sub}", self.plural);
            entries.push(match sub.as_str() {
                "eviction" => json!({ "name": name, "singularName": "", "namespaced": true, "group": "policy",
                    "version": "v1", "kind": "Eviction", "verbs": ["create"] }),
                "scale" => json!({ "name": name, "singularName": "", "namespaced": true, "group": "autoscaling",
                    "version": "v1", "kind": "Scale", "verbs": ["get", "patch", "update"] }),
                _ => json!({ "name": name, "singularName": "", "namespaced": self.namespaced, "kind": self.kind,
                    "verbs": ["get", "patch", "update"] }),
            });
        }
        entries
    }
}

pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

const REVIEWS: &[&str] = &["selfsubjectaccessreviews", "selfsubjectreviews"];

/// What `kubectl get all` means.
const ALL: &[&str] = &[
    "pods",
    "services",
    "daemonsets",
    "deployments",
    "replicasets",
    "statefulsets",
    "horizontalpodautoscalers",
    "cronjobs",
    "jobs",
];

/// Group, version, then kind, plural, whether it is in a namespace, short names, subresources.
type Row = (&'static str, &'static str, &'static str, &'static str, bool, &'static str, &'static str);

const BUILTIN: &[Row] = &[
    ("", "v1", "ConfigMap", "configmaps", true, "cm", ""),
    ("", "v1", "Endpoints", "endpoints", true, "ep", ""),
    ("", "v1", "Event", "events", true, "ev", ""),
    ("", "v1", "LimitRange", "limitranges", true, "limits", ""),
    ("", "v1", "Namespace", "namespaces", false, "ns", "finalize status"),
    ("", "v1", "Node", "nodes", false, "no", "status"),
    ("", "v1", "PersistentVolume", "persistentvolumes", false, "pv", "status"),
    ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", true, "pvc", "status"),
    ("", "v1", "Pod", "pods", true, "po", "eviction log status"),
    ("", "v1", "ResourceQuota", "resourcequotas", true, "quota", "status"),
    ("", "v1", "Secret", "secrets", true, "", ""),
    ("", "v1", "Service", "services", true, "svc", "status"),
    ("", "v1", "ServiceAccount", "serviceaccounts", true, "sa", ""),
    (
        "admissionregistration.k8s.io",
        "v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        false,
        "",
        "",
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        false,
        "",
        "status",
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        false,
        "",
        "",
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        false,
        "",
        "",
    ),
    (
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        false,
        "crd crds",
        "status",
    ),
    ("apiregistration.k8s.io", "v1", "APIService", "apiservices", false, "", "status"),
    ("apps", "v1", "ControllerRevision", "controllerrevisions", true, "", ""),
    ("apps", "v1", "DaemonSet", "daemonsets", true, "ds", "status"),
    ("apps", "v1", "Deployment", "deployments", true, "deploy", "scale status"),
    ("apps", "v1", "ReplicaSet", "replicasets", true, "rs", "scale status"),
    ("apps", "v1", "StatefulSet", "statefulsets", true, "sts", "scale status"),
    ("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", false, "", ""),
    ("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", false, "", ""),
    ("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true, "hpa", "status"),
    ("batch", "v1", "CronJob", "cronjobs", true, "cj", "status"),
    ("batch", "v1", "Job", "jobs", true, "", "status"),
    (
        "certificates.k8s.io",
        "v1",
        "CertificateSigningRequest",
        "certificatesigningrequests",
        false,
        "csr",
        "status",
    ),
    ("coordination.k8s.io", "v1", "Lease", "leases", true, "", ""),
    ("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", true, "", ""),
    ("events.k8s.io", "v1", "Event", "events", true, "ev", ""),
    ("networking.k8s.io", "v1", "Ingress", "ingresses", true, "ing", "status"),
    ("networking.k8s.io", "v1", "IngressClass", "ingressclasses", false, "", ""),
    ("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", true, "netpol", ""),
    ("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", false, "", ""),
    ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", true, "pdb", "status"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", false, "", ""),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", false, "", ""),
    ("rbac.authorization.k8s.io", "v1", "Role", "roles", true, "", ""),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", true, "", ""),
    ("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", false, "pc", ""),
    ("storage.k8s.io", "v1", "CSIDriver", "csidrivers", false, "", ""),
    ("storage.k8s.io", "v1", "CSINode", "csinodes", false, "", ""),
    ("storage.k8s.io", "v1", "StorageClass", "storageclasses", false, "sc", ""),
    ("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", false, "", "status"),
];

fn from_row(row: &Row) -> Resource {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    Resource {
        group: row.0.to_owned(),
        version: row.1.to_owned(),
        kind: row.2.to_owned(),
        plural: row.3.to_owned(),
        singular: row.2.to_lowercase(),
        short: words(row.5),
        namespaced: row.4,
        subresources: words(row.6),
        custom: false,
    }
}

/// Every built-in type.
pub fn builtin() -> impl Iterator<Item = Resource> {
    BUILTIN.iter().map(from_row)
}

/// A built-in type that this crate itself makes objects of.
pub fn of(plural: &str) -> Resource {
    let row = BUILTIN.iter().find(|row| row.3 == plural);
    from_row(row.expect("the caller names a type of the table"))
}

pub fn find_builtin(group: &str, version: &str, plural: &str) -> Option<Resource> {
    BUILTIN.iter().find(|r| r.0 == group && r.1 == version && r.3 == plural).map(from_row)
}

/// The types that a definition adds, once it is established: one for each version that is served.
pub fn defined_by(definition: &Value) -> Vec<Resource> {
    if !has_condition(definition, "Established", "True") {
        return Vec::new();
    }
    let served = list(definition, "/spec/versions").iter().filter(|v| v["served"] == true);
    served
        .map(|version| {
            let sub = |name: &str| version["subresources"].get(name).is_some().then(|| name.to_owned());
            Resource {
                group: text(definition, "/spec/group").to_owned(),
                version: text(version, "/name").to_owned(),
                kind: text(definition, "/spec/names/kind").to_owned(),
                plural: text(definition, "/spec/names/plural").to_owned(),
                singular: text(definition, "/spec/names/singular").to_owned(),
                short: list(definition, "/spec/names/shortNames")
                    .iter()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect(),
                namespaced: text(definition, "/spec/scope") == "Namespaced",
                subresources: [sub("status"), sub("scale")].into_iter().flatten().collect(),
                custom: true,
            }
        })
        .collect()
}
