//! Nodes: what they say of themselves, and keeping pods away from them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use strata_net::WritePermit;

use crate::{Deletion, KubeClient, KubeError, Object, ObjectRef, Selector, Until};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub name: String,
    pub uid: String,
    pub ready: bool,
    /// Why it is not ready, in the words of its kubelet.
    pub message: Option<String>,
    /// No new pods.
    pub cordoned: bool,
    pub addresses: Vec<String>,
    /// `v1.36.3`
    pub kubelet_version: Option<String>,
    pub boot_id: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taint {
    pub key: String,
    pub value: Option<String>,
    pub effect: String,
}

pub(crate) fn reference(name: &str) -> ObjectRef {
    ObjectRef::cluster("v1", "Node", name)
}

impl KubeClient {
    pub async fn nodes(&self) -> Result<Vec<Node>, KubeError> {
        let nodes = self.list("v1", "Node", &Selector::all()).await?;
        Ok(nodes.iter().map(Node::read).collect())
    }

    pub async fn node(&self, name: &str) -> Result<Option<Node>, KubeError> {
        Ok(self.get(&reference(name)).await?.as_ref().map(Node::read))
    }

    /// Lets no new pods onto a node.
    pub async fn cordon(&self, permit: &WritePermit<'_>, name: &str) -> Result<(), KubeError> {
        self.patch(permit, &reference(name), &json!({"spec": {"unschedulable": true}})).await.map(|_| ())
    }

    pub async fn uncordon(&self, permit: &WritePermit<'_>, name: &str) -> Result<(), KubeError> {
        self.patch(permit, &reference(name), &json!({"spec": {"unschedulable": null}})).await.map(|_| ())
    }

    /// Takes a node out of the books; with a `uid`, only if it is still that one.
    pub async fn delete_node(
        &self,
        permit: &WritePermit<'_>,
        name: &str,
        uid: Option<&str>,
    ) -> Result<Deletion, KubeError> {
        self.delete(permit, &reference(name), uid).await
    }
}

impl Node {
    pub fn read(object: &Object) -> Self {
        let text = |pointer: &str| object.text(pointer).map(str::to_owned);
        let list = |pointer: &str| object.at(pointer).and_then(Value::as_array).into_iter().flatten();
        let address = |address: &Value| {
            let internal = address.get("type")?.as_str()? == "InternalIP";
            internal.then(|| address.get("address")?.as_str().map(str::to_owned))?
        };
        let taint = |taint: &Value| {
            let field = |key: &str| taint.get(key).and_then(Value::as_str).map(str::to_owned);
            Some(Taint { key: field("key")?, value: field("value"), effect: field("effect")? })
        };
        let labels = object.at("/metadata/labels").and_then(Value::as_object);
        let label = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
        let ready = Until::Ready.is_met(Some(object));
        let message = object.condition("Ready").and_then(|ready| ready.get("message")?.as_str());
        Self {
            name: object.name().to_owned(),
            uid: object.uid().unwrap_or_default().to_owned(),
            ready,
            message: message.filter(|_| !ready).map(str::to_owned),
            cordoned: object.at("/spec/unschedulable").and_then(Value::as_bool).unwrap_or_default(),
            addresses: list("/status/addresses").filter_map(address).collect(),
            kubelet_version: text("/status/nodeInfo/kubeletVersion"),
            boot_id: text("/status/nodeInfo/bootID"),
            labels: labels.into_iter().flatten().filter_map(label).collect(),
            taints: list("/spec/taints").filter_map(taint).collect(),
        }
    }

    pub fn is_control_plane(&self) -> bool {
        self.labels.contains_key("node-role.kubernetes.io/control-plane")
    }
}
