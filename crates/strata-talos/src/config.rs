//! A machine configuration: its documents, the one with `machine` and `cluster` first.

use strata_secret::SecretString;
use zeroize::Zeroizing;

use crate::document::{Document, DocumentError, DocumentId, decode};
use crate::shape::V1ALPHA1;
use crate::tree::Value;
use crate::yaml::{YamlError, read, write_all};

/// The configuration of one machine. It holds secrets: it cannot be printed, only written on purpose.
#[derive(Clone, Default)]
pub struct MachineConfig {
    documents: Vec<Document>,
}

/// What is wrong with a machine configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error(transparent)]
    Yaml(#[from] YamlError),
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error("there are two documents `{0}`")]
    Duplicate(DocumentId),
    #[error("`{0}` and `{1}` cannot be in one configuration")]
    Conflict(DocumentId, DocumentId),
}

/// Documents of these kinds with the same name exclude each other.
const EXCLUSIVE: [[&str; 2]; 2] =
    [["HCloudVIPConfig", "Layer2VIPConfig"], ["ExistingVolumeConfig", "UserVolumeConfig"]];

impl MachineConfig {
    /// A configuration of these documents.
    pub(crate) fn new(documents: Vec<Document>) -> Result<Self, ConfigError> {
        for (index, document) in documents.iter().enumerate() {
            if let [name, peer] = links(document)[..]
                && name == peer
            {
                return Err(ConfigError::Conflict(document.id(), document.id()));
            }
            for earlier in &documents[..index] {
                if earlier.id() == document.id() {
                    return Err(ConfigError::Duplicate(document.id()));
                }
                if excludes(earlier, document) {
                    return Err(ConfigError::Conflict(earlier.id(), document.id()));
                }
            }
        }
        let (first, rest) = documents.into_iter().partition::<Vec<_>, _>(Document::is_v1alpha1);
        Ok(Self { documents: first.into_iter().chain(rest).collect() })
    }

    /// Reads a configuration that Talos or somebody else wrote.
    pub fn from_yaml(text: &SecretString) -> Result<Self, ConfigError> {
        let nodes = read(text.expose())?;
        Self::new(nodes.iter().map(decode).collect::<Result<_, _>>()?)
    }

    pub fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// The document of this kind, for kinds that there is only one of.
    pub fn document(&self, kind: &str) -> Option<&Document> {
        self.documents.iter().find(|document| document.kind() == kind)
    }

    pub fn has(&self, kind: &str) -> bool {
        self.document(kind).is_some()
    }

    /// The document without a kind, with `machine` and `cluster`.
    pub fn v1alpha1(&self) -> Option<&Document> {
        self.document(V1ALPHA1)
    }

    /// Whether it is for a control plane; `None` if it does not say.
    pub fn is_control_plane(&self) -> Option<bool> {
        let kind = self.v1alpha1()?.at(&["machine", "type"])?.as_text()?;
        Some(matches!(kind, "controlplane" | "init"))
    }

    pub(crate) fn document_mut(&mut self, kind: &str) -> Option<&mut Document> {
        self.documents.iter_mut().find(|document| document.kind() == kind)
    }

    pub(crate) fn into_documents(self) -> Vec<Document> {
        self.documents
    }

    /// The file that Talos is given.
    pub fn to_yaml(&self) -> SecretString {
        let values: Vec<Value> = self.documents.iter().map(Document::to_value).collect();
        SecretString::from(write_all(&values))
    }

    /// The same for people: every secret that a document has a field for is replaced.
    pub fn to_redacted_yaml(&self) -> String {
        let values: Vec<Value> = self.documents.iter().map(Document::to_redacted_value).collect();
        let text: Zeroizing<String> = write_all(&values);
        text.to_string()
    }
}

fn excludes(left: &Document, right: &Document) -> bool {
    let pair = [left.kind(), right.kind()];
    let exclusive = EXCLUSIVE.iter().any(|kinds| kinds.iter().all(|kind| pair.contains(kind)));
    exclusive && left.name() == right.name() || links(left).iter().any(|link| links(right).contains(link))
}

/// The links that a document configures: the one that it is named after, and a virtual cable's other end.
fn links(document: &Document) -> Vec<&str> {
    if !document.shape().link {
        return Vec::new();
    }
    let peer = (document.kind() == "VethConfig")
        .then(|| document.at(&["peer", "name"]).and_then(Value::as_text).unwrap_or_default());
    document.name().into_iter().chain(peer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Result<MachineConfig, ConfigError> {
        MachineConfig::from_yaml(&SecretString::from(text))
    }

    #[test]
    fn the_document_without_a_kind_comes_first() {
        let text = "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: a\n---\nmachine: {type: worker}\ncluster: null\n";
        let config = config(text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(config.is_control_plane(), Some(false));
        let kinds: Vec<_> = config.documents().iter().map(Document::kind).collect();
        assert_eq!(kinds, [V1ALPHA1, "HostnameConfig"]);
        let yaml = config.to_yaml();
        assert!(yaml.expose().ends_with("---\napiVersion: v1alpha1\nkind: HostnameConfig\nhostname: a\n"));
    }

    #[test]
    fn documents_that_exclude_each_other_are_refused() {
        let link = |kind: &str| format!("---\napiVersion: v1alpha1\nkind: {kind}\nname: eth0\n");
        let error = |text: &str| config(text).err().expect("an error").to_string();
        let twice = link("LinkConfig") + &link("LinkConfig");
        assert_eq!(error(&twice), "there are two documents `LinkConfig eth0`");
        let both = link("LinkConfig") + &link("DummyLinkConfig");
        assert_eq!(
            error(&both),
            "`LinkConfig eth0` and `DummyLinkConfig eth0` cannot be in one configuration"
        );
        assert!(config(&(link("LinkConfig") + &link("DHCPv4Config"))).is_ok());
    }
}
