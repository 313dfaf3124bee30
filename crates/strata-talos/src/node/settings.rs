//! What is a machine's own apart from its network.

use super::{Cni, DiskKey, Own};
use crate::document::Document;
use crate::generate::Role;
use crate::shape::V1ALPHA1;
use crate::tree::{Map, Value, tree};

impl Own<'_> {
    /// A patch in the style of the one document. Where a version has a document for something, it ends up there: patches
    /// are translated.
    pub(super) fn legacy_settings(&self) -> Option<Document> {
        let (machine, cluster) = (self.machine(), self.cluster());
        let mut body = Map::new();
        for (name, part) in [("machine", machine), ("cluster", cluster)] {
            if !part.is_empty() {
                body.insert(name.to_owned(), Value::Map(part));
            }
        }
        (!body.is_empty()).then(|| Document::new(V1ALPHA1, Value::Map(body)))
    }

    fn machine(&self) -> Map {
        let node = self.node;
        let mut machine = Map::new();
        let mut set = |key: &str, value: Value| drop(machine.insert(key.to_owned(), value));
        if !node.cert_sans.is_empty() {
            set("certSANs", Value::texts(node.cert_sans.iter().cloned()));
        }
        for (key, entries) in [
            ("nodeLabels", &node.labels),
            ("nodeAnnotations", &node.annotations),
            ("nodeTaints", &node.taints),
        ] {
            if !entries.is_empty() {
                set(key, texts(entries));
            }
        }
        let mut kubelet = Map::new();
        if !node.kubelet_extra_args.is_empty() {
            kubelet.insert("extraArgs".to_owned(), texts(&node.kubelet_extra_args));
        }
        if !node.node_ip_subnets.is_empty() {
            let subnets = Value::texts(node.node_ip_subnets.iter().cloned());
            kubelet.insert("nodeIP".to_owned(), tree! { "validSubnets" => subnets });
        }
        if !kubelet.is_empty() {
            set("kubelet", Value::Map(kubelet));
        }
        if !self.contract.network_documents() {
            let network = self.legacy_network();
            if !network.is_empty() {
                set("network", Value::Map(network));
            }
            if !node.time_servers.is_empty() {
                set("time", tree! { "servers" => Value::texts(node.time_servers.iter().cloned()) });
            }
            if let Some(key) = node.disk_key {
                let encryption = || tree! { "provider" => "luks2", "keys" => vec![disk_key(key)] };
                set("systemDiskEncryption", tree! { "state" => encryption(), "ephemeral" => encryption() });
            }
        }
        if !self.contract.kubernetes_documents() {
            if !node.kernel_modules.is_empty() {
                set("kernel", tree! { "modules" => Value::List(self.kernel_modules()) });
            }
            if !node.sysctls.is_empty() {
                set("sysctls", texts(&node.sysctls));
            }
        }
        machine
    }

    fn cluster(&self) -> Map {
        let node = self.node;
        let mut cluster = Map::new();
        if node.role != Role::ControlPlane {
            return cluster;
        }
        let mut set = |key: &str, value: Value| drop(cluster.insert(key.to_owned(), value));
        match &node.cni {
            Cni::Flannel => {}
            Cni::None => set("network", tree! { "cni" => tree! { "name" => "none" } }),
            Cni::Custom(urls) => {
                let cni = tree! { "name" => "custom", "urls" => Value::texts(urls.iter().cloned()) };
                set("network", tree! { "cni" => cni });
            }
        }
        if !node.kube_proxy {
            set("proxy", tree! { "disabled" => true });
        }
        if node.schedule_on_control_planes {
            set("allowSchedulingOnControlPlanes", true.into());
        }
        if !node.etcd_subnets.is_empty() {
            let subnets = Value::texts(node.etcd_subnets.iter().cloned());
            set("etcd", tree! { "advertisedSubnets" => subnets });
        }
        cluster
    }

    fn kernel_modules(&self) -> Vec<Value> {
        let module = |module: &super::KernelModule| {
            let mut map = Map::new();
            map.insert("name".to_owned(), module.name.as_str().into());
            if !module.parameters.is_empty() {
                map.insert("parameters".to_owned(), Value::texts(module.parameters.iter().cloned()));
            }
            Value::Map(map)
        };
        self.node.kernel_modules.iter().map(module).collect()
    }

    /// Documents of the machine: disk encryption from 1.12 on, modules and sysctls from 1.14 on.
    pub(super) fn machine_settings(&self) -> Vec<Document> {
        let mut documents = Vec::new();
        if let Some(key) = self.node.disk_key.filter(|_| self.contract.network_documents()) {
            for name in ["STATE", "EPHEMERAL"] {
                let encryption = tree! { "provider" => "luks2", "keys" => vec![disk_key(key)] };
                documents.push(Document::new(
                    "VolumeConfig",
                    tree! { "name" => name, "encryption" => encryption },
                ));
            }
        }
        if self.contract.kubernetes_documents() {
            let module = |module| Document::new("KernelModuleConfig", module);
            documents.extend(self.kernel_modules().into_iter().map(module));
            if !self.node.sysctls.is_empty() {
                documents
                    .push(Document::new("SysctlConfig", tree! { "params" => texts(&self.node.sysctls) }));
            }
        }
        documents
    }
}

/// Slot zero is the first, and not written: it is the same as none.
fn disk_key(key: DiskKey) -> Value {
    match key {
        DiskKey::NodeId => tree! { "nodeID" => Map::new() },
        DiskKey::Tpm => tree! { "tpm" => Map::new() },
    }
}

fn texts(entries: &[(String, String)]) -> Value {
    Value::map(entries.iter().map(|(key, value)| (key.clone(), value.as_str().into())))
}
