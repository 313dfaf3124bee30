//! Resources: what a node knows about itself, read one at a time or all of a kind.

use strata_secret::{SecretBytes, SecretString};
use strata_talos::Value;

use crate::client::TalosClient;
use crate::error::{TalosError, TalosReason};
use crate::wire::cosi as wire;

/// A namespace and a type of resources in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceKind {
    pub namespace: &'static str,
    pub name: &'static str,
}

impl ResourceKind {
    const fn new(namespace: &'static str, name: &'static str) -> Self {
        Self { namespace, name }
    }

    /// Another one for each boot; from 1.14 on.
    pub const BOOT_ID: Self = Self::new("runtime", "BootIDs.runtime.talos.dev");
    /// What was built into the image; the schematic of the image factory is one of them.
    pub const EXTENSIONS: Self = Self::new("runtime", "ExtensionStatuses.runtime.talos.dev");
    /// Whether it booted securely.
    pub const SECURITY: Self = Self::new("runtime", "SecurityStates.talos.dev");
    /// The node's member of etcd.
    pub const ETCD_MEMBER: Self = Self::new("etcd", "EtcdMembers.etcd.talos.dev");
    pub const HOSTNAME: Self = Self::new("network", "HostnameStatuses.net.talos.dev");
    /// Only for administrators.
    pub const MACHINE_CONFIG: Self = Self::new("config", "MachineConfigs.config.talos.dev");
    pub const MACHINE_STATUS: Self = Self::new("runtime", "MachineStatuses.runtime.talos.dev");
    /// The manifests that a control plane gives to Kubernetes.
    pub const MANIFESTS: Self = Self::new("controlplane", "Manifests.kubernetes.talos.dev");
    /// The machines that discovery found.
    pub const MEMBERS: Self = Self::new("cluster", "Members.cluster.talos.dev");
    /// The name under which the kubelet registers.
    pub const NODENAME: Self = Self::new("k8s", "Nodenames.kubernetes.talos.dev");
    pub const STATIC_PODS: Self = Self::new("k8s", "StaticPodStatuses.kubernetes.talos.dev");
    pub const VERSION: Self = Self::new("runtime", "Versions.runtime.talos.dev");
}

/// One resource. Its spec may hold secrets.
#[derive(Clone)]
pub struct Resource {
    pub id: String,
    /// Another one after each change.
    pub version: String,
    /// It is about to go.
    pub tearing_down: bool,
    /// The spec in Talos' own YAML.
    pub spec: Value,
    /// The spec as a message.
    pub(crate) proto: SecretBytes,
}

impl Resource {
    /// A text in the spec.
    pub fn text(&self, path: &[&str]) -> Option<String> {
        self.spec.at(path).and_then(Value::as_text).map(str::to_owned)
    }

    pub(crate) fn read(resource: wire::Resource) -> Result<Self, TalosReason> {
        let malformed = |reason: &str| TalosReason::Malformed(reason.to_owned());
        let metadata = resource.metadata.ok_or_else(|| malformed("the resource has no metadata"))?;
        let spec = resource.spec.unwrap_or_default();
        let yaml = SecretString::from(spec.yaml);
        let tree = Value::from_yaml(yaml.expose()).map_err(|error| {
            TalosReason::Malformed(format!("the spec of `{}` is no YAML: {error}", metadata.id))
        })?;
        Ok(Self {
            id: metadata.id,
            version: metadata.version,
            tearing_down: metadata.phase == "tearingDown",
            spec: tree,
            proto: spec.proto.into(),
        })
    }
}

impl TalosClient {
    /// The resource, if there is one of this id. A kind that the node's version does not know is
    /// [`TalosReason::Refused`].
    pub async fn get(&self, kind: ResourceKind, id: &str) -> Result<Option<Resource>, TalosError> {
        let path = "/cosi.resource.State/Get";
        let request = wire::GetRequest {
            namespace: kind.namespace.to_owned(),
            kind: kind.name.to_owned(),
            id: id.to_owned(),
        };
        let answer: Result<wire::ResourceResponse, _> = self.unary(path, &request, self.timeouts.call).await;
        let resource = match answer {
            Ok(answer) => answer.resource,
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        resource.map(Resource::read).transpose().map_err(|reason| self.error(path, reason))
    }

    /// All resources of a kind.
    pub async fn list(&self, kind: ResourceKind) -> Result<Vec<Resource>, TalosError> {
        let path = "/cosi.resource.State/List";
        let request = wire::ListRequest { namespace: kind.namespace.to_owned(), kind: kind.name.to_owned() };
        let mut stream = self.stream::<wire::ResourceResponse>(path, &request, self.timeouts.call).await?;
        let mut resources = Vec::new();
        while let Some(answer) = stream.next().await? {
            let resource = answer.resource.map(Resource::read).transpose();
            resources.extend(resource.map_err(|reason| self.error(path, reason))?);
        }
        Ok(resources)
    }
}
