//! Documents of their own that have nothing to do with Kubernetes.

use super::Generator;
use crate::document::Document;
use crate::patch::disk_expression;
use crate::tree::{Value, tree};

impl Generator<'_> {
    /// Discovery, installation, host DNS, volumes, security: from 1.14 on.
    pub(super) fn machine_documents(&self) -> Vec<Document> {
        if !self.input.contract.kubernetes_documents() {
            return Vec::new();
        }
        let mut documents = Vec::new();
        if self.input.cluster_discovery {
            let service = tree! { "name" => "default", "endpoint" => "https://discovery.talos.dev/" };
            documents.push(Document::new("DiscoveryServiceConfig", service));
        }
        let identity = tree! {
            "clusterID" => self.secrets.cluster_id.as_str(),
            "clusterSecret" => self.secrets.cluster_secret.expose(),
        };
        documents.push(Document::new("DiscoveryIdentityConfig", identity));
        documents.extend(self.unattended_install());
        let host_dns = tree! { "enabled" => true, "forwardKubeDNSToHost" => true };
        documents.push(Document::new("ResolverConfig", tree! { "hostDNS" => host_dns }));
        let ephemeral = tree! { "name" => "EPHEMERAL", "mount" => tree! { "secure" => true } };
        documents.push(Document::new("VolumeConfig", ephemeral));
        documents.push(Document::new("FilesystemTrimConfig", tree! { "interval" => "168h0m0s" }));
        documents.push(Document::new("SecurityProfileConfig", tree! { "workloadIsolation" => true }));
        documents
    }

    /// It needs a disk, so there is none without.
    fn unattended_install(&self) -> Option<Document> {
        let disk = self.input.install_disk.as_ref().filter(|disk| !disk.is_empty())?;
        let image = self.input.install_image.as_deref().unwrap_or_default();
        let installer = if image.is_empty() {
            tree! {}
        } else {
            tree! { "image" => image }
        };
        let provisioning = tree! {
            "diskSelector" => tree! { "match" => disk_expression(disk) },
            "wipe" => false,
        };
        let body = tree! { "installer" => installer, "provisioning" => provisioning };
        Some(Document::new("UnattendedInstallConfig", body))
    }

    /// Mirrors of registries, sorted by host: from 1.12 on.
    pub(super) fn registry_documents(&self) -> Vec<Document> {
        if !self.input.contract.network_documents() {
            return Vec::new();
        }
        let mut mirrors: Vec<_> = self.input.registry_mirrors.iter().collect();
        mirrors.sort_by(|left, right| left.host.cmp(&right.host));
        let document = |mirror: &&super::RegistryMirror| {
            let endpoints = mirror.endpoints.iter().map(|url| tree! { "url" => url.as_str() }).collect();
            let body = tree! { "name" => mirror.host.as_str(), "endpoints" => Value::List(endpoints) };
            Document::new("RegistryMirrorConfig", body)
        };
        mirrors.iter().map(document).collect()
    }

    /// The host name from 1.12 on, KubeSpan from 1.13 on.
    pub(super) fn network_documents(&self) -> Vec<Document> {
        let mut documents = Vec::new();
        if self.input.contract.network_documents() {
            documents.push(Document::new("HostnameConfig", tree! { "auto" => "stable" }));
        }
        if self.input.contract.kubespan_document() && self.input.kubespan {
            documents.push(Document::new("KubeSpanConfig", tree! { "enabled" => true }));
        }
        documents
    }
}
