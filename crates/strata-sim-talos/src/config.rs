//! A machine configuration as a machine reads it: documents in YAML, and the answers that the machine takes from them.

mod validate;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use strata_sim_core::yaml;
use strata_sim_kubernetes::WantedManifests;

/// What a machine is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    ControlPlane,
    Worker,
}

/// A certificate in PEM, and its key where the machine has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    pub certificate: String,
    pub key: Option<String>,
}

/// Where to install, and from which image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Install {
    /// `/dev/sda`; none where an expression chooses.
    pub disk: Option<String>,
    pub image: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MachineConfig {
    text: String,
    documents: Vec<Value>,
}

impl TryFrom<String> for MachineConfig {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let documents = yaml::documents(&text)?;
        Ok(Self { text, documents })
    }
}

impl From<MachineConfig> for String {
    fn from(config: MachineConfig) -> Self {
        config.text
    }
}

/// The components of Kubernetes, with the document and the place in the main one that name their images.
const COMPONENTS: &[(&str, &str, &str)] = &[
    ("kube-apiserver", "KubeAPIServerConfig", "/cluster/apiServer/image"),
    ("kube-controller-manager", "KubeControllerManagerConfig", "/cluster/controllerManager/image"),
    ("kube-scheduler", "KubeSchedulerConfig", "/cluster/scheduler/image"),
    ("kube-proxy", "KubeProxyConfig", "/cluster/proxy/image"),
    ("kubelet", "KubeletConfig", "/machine/kubelet/image"),
];

fn text_at<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let list = value.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

fn text_map(value: Option<&Value>) -> BTreeMap<String, String> {
    let map = value.and_then(Value::as_object).into_iter().flatten();
    map.map(|(k, v)| (k.clone(), v.as_str().map_or_else(|| v.to_string(), str::to_owned))).collect()
}

/// PEM that a v1alpha1 document has in base64.
fn unpack(value: &Value, pointer: &str) -> Option<String> {
    let raw: String = text_at(value, pointer)?.chars().filter(|c| !c.is_whitespace()).collect();
    String::from_utf8(STANDARD.decode(raw).ok()?).ok()
}

fn merge(target: &mut Value, patch: &Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (key, value) in patch {
                match value {
                    Value::Null => drop(target.remove(key)),
                    _ => merge(target.entry(key.clone()).or_insert(Value::Null), value),
                }
            }
        }
        (target, patch) => *target = patch.clone(),
    }
}

/// The version that an image reference ends with.
pub fn image_tag(image: &str) -> Option<&str> {
    let name = image.split('@').next().unwrap_or_default();
    let (_, tag) = name.rsplit_once(':')?;
    (!tag.contains('/')).then_some(tag)
}

impl MachineConfig {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn documents(&self) -> &[Value] {
        &self.documents
    }

    /// With a merge patch over the main document. What it writes is JSON, which is YAML too.
    pub fn patched(&self, patch: &Value) -> Result<Self, String> {
        let is_main = |document: &&mut Value| document.get("kind").is_none();
        let mut documents = self.documents.clone();
        merge(documents.iter_mut().find(is_main).ok_or("it has no main document")?, patch);
        let texts: Vec<String> = documents.iter().map(Value::to_string).collect();
        texts.join("\n---\n").try_into()
    }

    /// The SHA-256 of the text, in hex.
    pub fn digest(&self) -> String {
        hex::encode(Sha256::digest(self.text.as_bytes()))
    }

    /// The document without a kind.
    pub fn main(&self) -> Option<&Value> {
        self.documents.iter().find(|doc| doc.get("kind").is_none() && doc.get("machine").is_some())
    }

    pub fn of_kind<'c>(&'c self, kind: &'c str) -> impl Iterator<Item = &'c Value> {
        self.documents.iter().filter(move |doc| doc.get("kind").and_then(Value::as_str) == Some(kind))
    }

    fn document(&self, kind: &str) -> Option<&Value> {
        self.documents.iter().find(|doc| doc.get("kind").and_then(Value::as_str) == Some(kind))
    }

    fn main_text(&self, pointer: &str) -> Option<&str> {
        text_at(self.main()?, pointer)
    }

    pub fn role(&self) -> Option<Role> {
        match self.main_text("/machine/type")? {
            "controlplane" | "init" => Some(Role::ControlPlane),
            "worker" | "join" => Some(Role::Worker),
            _ => None,
        }
    }

    pub fn is_control_plane(&self) -> bool {
        self.role() == Some(Role::ControlPlane)
    }

    /// The authority of the Talos API.
    pub fn os_authority(&self) -> Option<Authority> {
        let main = self.main()?;
        let certificate = unpack(main, "/machine/ca/crt")?;
        Some(Authority { certificate, key: unpack(main, "/machine/ca/key") })
    }

    /// Every authority whose clients the machine accepts.
    pub fn accepted_authorities(&self) -> Vec<String> {
        let more =
            self.main().and_then(|main| main.pointer("/machine/acceptedCAs")).and_then(Value::as_array);
        let more = more.into_iter().flatten().filter_map(|ca| unpack(ca, "/crt"));
        self.os_authority().map(|ca| ca.certificate).into_iter().chain(more).collect()
    }

    /// The token with which machines ask control planes for certificates.
    pub fn token(&self) -> Option<&str> {
        self.main_text("/machine/token")
    }

    pub fn cluster_id(&self) -> Option<&str> {
        self.main_text("/cluster/id")
            .or_else(|| text_at(self.document("DiscoveryIdentityConfig")?, "/clusterID"))
    }

    pub fn cluster_secret(&self) -> Option<&str> {
        self.main_text("/cluster/secret")
            .or_else(|| text_at(self.document("DiscoveryIdentityConfig")?, "/clusterSecret"))
    }

    pub fn etcd_authority(&self) -> Option<String> {
        unpack(self.main()?, "/cluster/etcd/ca/crt")
    }

    pub fn kubernetes_authority(&self) -> Option<Authority> {
        if let Some(doc) = self.document("KubeAPIServerCAConfig")
            && let Some(certificate) = text_at(doc, "/issuingCA/cert")
        {
            let key = text_at(doc, "/issuingCA/key").map(str::to_owned);
            return Some(Authority { certificate: certificate.to_owned(), key });
        }
        let main = self.main()?;
        let certificate = unpack(main, "/cluster/ca/crt")?;
        Some(Authority { certificate, key: unpack(main, "/cluster/ca/key") })
    }

    pub fn service_account_key(&self) -> Option<String> {
        if let Some(doc) = self.document("KubeServiceAccountConfig") {
            return text_at(doc, "/issuer/privateKey").map(str::to_owned);
        }
        unpack(self.main()?, "/cluster/serviceAccount/key")
    }

    pub fn cluster_name(&self) -> &str {
        let own = self.document("KubeClusterConfig").and_then(|doc| text_at(doc, "/clusterName"));
        own.or_else(|| self.main_text("/cluster/clusterName")).unwrap_or_default()
    }

    pub fn endpoint(&self) -> &str {
        let own = self.document("KubeClusterConfig").and_then(|doc| text_at(doc, "/endpoint"));
        own.or_else(|| self.main_text("/cluster/controlPlane/endpoint")).unwrap_or_default()
    }

    pub fn hostname(&self) -> Option<&str> {
        let own = self.document("HostnameConfig").and_then(|doc| text_at(doc, "/hostname"));
        own.or_else(|| self.main_text("/machine/network/hostname"))
    }

    fn interfaces(&self) -> impl Iterator<Item = &Value> {
        let main = self.main().and_then(|main| main.pointer("/machine/network/interfaces"));
        let list = main.and_then(Value::as_array).into_iter().flatten();
        list.flat_map(|card| {
            let vlans = card.get("vlans").and_then(Value::as_array).into_iter().flatten();
            std::iter::once(card).chain(vlans)
        })
    }

    /// Addresses that the configuration fixes, without their prefix length.
    pub fn addresses(&self) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for card in self.interfaces() {
            found.extend(text_at(card, "/cidr").map(str::to_owned));
            found.extend(texts(card.get("addresses")));
        }
        for doc in self.documents.iter().filter(|doc| doc.get("kind").is_some()) {
            let list = doc.get("addresses").and_then(Value::as_array).into_iter().flatten();
            found.extend(list.filter_map(|entry| text_at(entry, "/address").map(str::to_owned)));
        }
        found.iter().map(|cidr| cidr.split('/').next().unwrap_or_default().to_owned()).collect()
    }

    /// Whether the machine asks DHCP: it is told to, or nothing is said about its addresses.
    pub fn asks_dhcp(&self) -> bool {
        let told = self.interfaces().any(|card| card.get("dhcp").and_then(Value::as_bool) == Some(true));
        told || self.document("DHCPv4Config").is_some() || self.addresses().is_empty()
    }

    /// The address that control planes share.
    pub fn vip(&self) -> Option<&str> {
        let old = self.interfaces().find_map(|card| text_at(card, "/vip/ip"));
        old.or_else(|| text_at(self.document("Layer2VIPConfig")?, "/name"))
    }

    pub fn install(&self) -> Option<Install> {
        if let Some(doc) = self.document("UnattendedInstallConfig") {
            let expression = text_at(doc, "/provisioning/diskSelector/match").unwrap_or_default();
            let disk = expression.split_once("disk.dev_path == ").and_then(|(_, rest)| {
                let quoted = rest.trim_start_matches(['"', '\'']);
                quoted.split(['"', '\'']).next().map(str::to_owned)
            });
            return Some(Install { disk, image: text_at(doc, "/installer/image").map(str::to_owned) });
        }
        let install = self.main()?.pointer("/machine/install").filter(|value| value.is_object())?;
        Some(Install {
            disk: text_at(install, "/disk").map(str::to_owned),
            image: text_at(install, "/image").map(str::to_owned),
        })
    }

    /// The machine reboots into what it installed. From 1.14 on only if it is told to, or installs another image than it runs.
    pub fn reboots_after_install(&self) -> bool {
        let Some(doc) = self.document("UnattendedInstallConfig") else { return true };
        let told = doc.get("reboot").and_then(Value::as_bool);
        told.unwrap_or_else(|| text_at(doc, "/installer/image").is_some())
    }

    /// Names and addresses that the certificate of the Talos API has besides the machine's own.
    pub fn cert_sans(&self) -> Vec<String> {
        texts(self.main().and_then(|main| main.pointer("/machine/certSANs")))
    }

    pub fn api_server_sans(&self) -> Vec<String> {
        let own = self.document("KubeAPIServerConfig").map(|doc| texts(doc.get("certExtraSANs")));
        own.unwrap_or_else(|| texts(self.main().and_then(|main| main.pointer("/cluster/apiServer/certSANs"))))
    }

    /// The image of a component of Kubernetes that a document of its own or the main one names.
    pub fn component_image(&self, component: &str) -> Option<String> {
        let (_, kind, pointer) = COMPONENTS.iter().find(|(name, ..)| *name == component)?;
        let own = self.document(kind).and_then(|doc| text_at(doc, "/image"));
        own.or_else(|| self.main_text(pointer)).map(str::to_owned)
    }

    pub fn component_images(&self) -> BTreeMap<String, String> {
        let names = COMPONENTS.iter().map(|(name, ..)| *name);
        names.filter_map(|name| Some((name.to_owned(), self.component_image(name)?))).collect()
    }

    fn component_version(&self, component: &str) -> Option<String> {
        image_tag(&self.component_image(component)?).map(str::to_owned)
    }

    pub fn kubelet_version(&self) -> Option<String> {
        self.component_version("kubelet")
    }

    pub fn api_server_version(&self) -> Option<String> {
        self.component_version("kube-apiserver")
    }

    /// What Talos gives to a new cluster.
    pub fn manifests(&self) -> WantedManifests {
        let proxy = self.component_image("kube-proxy");
        let usual =
            || format!("registry.k8s.io/kube-proxy:{}", self.api_server_version().unwrap_or_default());
        WantedManifests {
            proxy: self.has_proxy().then(|| proxy.unwrap_or_else(usual)),
            flannel: self.cni() == "flannel",
        }
    }

    pub fn node_labels(&self) -> BTreeMap<String, String> {
        match self.document("KubeNodeConfig") {
            Some(doc) => text_map(doc.get("labels")),
            None => {
                let mut labels = text_map(self.main().and_then(|m| m.pointer("/machine/nodeLabels")));
                if self.is_control_plane() {
                    labels.entry("node-role.kubernetes.io/control-plane".to_owned()).or_default();
                }
                labels
            }
        }
    }

    pub fn node_annotations(&self) -> BTreeMap<String, String> {
        match self.document("KubeNodeConfig") {
            Some(doc) => text_map(doc.get("annotations")),
            None => text_map(self.main().and_then(|main| main.pointer("/machine/nodeAnnotations"))),
        }
    }

    pub fn node_taints(&self) -> BTreeMap<String, String> {
        if let Some(doc) = self.document("KubeNodeConfig") {
            return text_map(doc.get("taints"));
        }
        let Some(main) = self.main() else { return BTreeMap::new() };
        let mut taints = text_map(main.pointer("/machine/nodeTaints"));
        let open = ["/cluster/allowSchedulingOnControlPlanes", "/cluster/allowSchedulingOnMasters"];
        let schedulable = open.iter().any(|p| main.pointer(p).and_then(Value::as_bool) == Some(true));
        if self.is_control_plane() && !schedulable {
            taints
                .entry("node-role.kubernetes.io/control-plane".to_owned())
                .or_insert_with(|| "NoSchedule".to_owned());
        }
        taints
    }

    /// `flannel`, `none` or `custom`.
    pub fn cni(&self) -> &str {
        if self.document("KubeFlannelCNIConfig").is_some() {
            return "flannel";
        }
        let named = self.main_text("/cluster/network/cni/name");
        // From 1.14 on a cluster without the document has no network of its own.
        let split = self.document("KubeNetworkConfig").is_some();
        named.unwrap_or(if split { "none" } else { "flannel" })
    }

    pub fn has_proxy(&self) -> bool {
        if let Some(doc) = self.document("KubeProxyConfig") {
            return doc.get("enabled").and_then(Value::as_bool) != Some(false);
        }
        let disabled = self.main().and_then(|main| main.pointer("/cluster/proxy/disabled"));
        disabled.and_then(Value::as_bool) != Some(true) && self.document("KubeNetworkConfig").is_none()
    }

    fn network_texts(&self, name: &str) -> Vec<String> {
        let own = self.document("KubeNetworkConfig").map(|doc| texts(doc.get(name)));
        own.unwrap_or_else(|| texts(self.main().and_then(|m| m.pointer(&format!("/cluster/network/{name}")))))
    }

    pub fn pod_subnets(&self) -> Vec<String> {
        self.network_texts("podSubnets")
    }

    pub fn service_subnets(&self) -> Vec<String> {
        self.network_texts("serviceSubnets")
    }

    pub fn dns_domain(&self) -> String {
        let own = self.document("KubeNetworkConfig").and_then(|doc| text_at(doc, "/dnsDomain"));
        own.or_else(|| self.main_text("/cluster/network/dnsDomain")).unwrap_or("cluster.local").to_owned()
    }
}
