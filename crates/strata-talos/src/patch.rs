//! Patches of a machine configuration: strategic merge, and JSON patches where there is one document.

mod between;
mod delete;
mod json;
mod moved;

use strata_secret::SecretString;

use crate::config::{ConfigError, MachineConfig};
use crate::document::{Document, DocumentError, DocumentId, decode, merge_into};
use crate::yaml::{Node, YamlError, read};

pub use between::PatchesBetween;
use delete::Deletion;
use json::Operation;
pub(crate) use moved::disk_expression;

/// A patch that was read and fits the shapes of what it changes.
#[derive(Clone)]
pub struct Patch(Kind);

#[derive(Clone)]
enum Kind {
    /// Documents that are merged or added, and deletions, in their order.
    Merge(Vec<Part>),
    /// Operations of RFC 6902.
    Json(Vec<Operation>),
}

#[derive(Clone)]
enum Part {
    Document(Document),
    Deletion(Deletion),
}

/// Why a patch cannot be read or applied. Values are never quoted: they may be secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    #[error(transparent)]
    Yaml(#[from] YamlError),
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("the patch is empty")]
    Empty,
    #[error("line {line}: {reason}")]
    Syntax { line: usize, reason: &'static str },
    #[error("`{path}` is not in the document `{document}`, so it cannot be deleted")]
    NothingToDelete { path: String, document: String },
    #[error(
        "a JSON patch cannot change a configuration of {documents} documents; write `{path}` as a strategic merge patch \
         of the document `{kind}`"
    )]
    JsonOnSeveral { documents: usize, path: String, kind: &'static str },
    #[error("operation {number} of the JSON patch, `{path}`: {reason}")]
    Json { number: usize, path: String, reason: &'static str },
    #[error(
        "`{path}` cannot be patched: in this configuration it is part of the document `{kind}`; patch that document instead"
    )]
    Moved { path: String, kind: &'static str },
}

impl PatchError {
    /// What is wrong, without a word of the patch: one that is a secret is not quoted, not even its keys.
    pub fn without_names(&self) -> String {
        let at = |line: usize, what: &str| format!("line {line}: {what}");
        match self {
            Self::Yaml(YamlError::DuplicateKey { line, .. }) => at(*line, "a key is there twice"),
            Self::Yaml(YamlError::Syntax { line, .. }) => at(*line, "this is no YAML"),
            Self::Yaml(error) => error.to_string(),
            Self::Document(error) => match error {
                DocumentError::NoApiVersion { line, .. } => {
                    at(*line, "the document has no `apiVersion: v1alpha1`")
                }
                DocumentError::UnknownKind { line, .. } => at(*line, "Talos knows no document of this kind"),
                DocumentError::UnknownField { line, .. } => at(*line, "the document has no such field"),
                DocumentError::WrongType { line, .. } => at(*line, "the value is of a wrong type"),
                DocumentError::TypesDiffer { .. } => {
                    "a value is of another type in the patch than in the configuration".to_owned()
                }
                DocumentError::NotMapping { .. }
                | DocumentError::NoKind { .. }
                | DocumentError::NoName { .. } => error.to_string(),
            },
            Self::Config(ConfigError::Duplicate(_)) => "there are two documents of one name".to_owned(),
            Self::Config(_) => "two of its documents cannot be in one configuration".to_owned(),
            Self::NothingToDelete { .. } => "what it deletes is not there".to_owned(),
            Self::JsonOnSeveral { documents, .. } => {
                format!("a JSON patch cannot change a configuration of {documents} documents")
            }
            Self::Json { number, reason, .. } => format!("operation {number} of the JSON patch: {reason}"),
            Self::Moved { kind, .. } => {
                format!("a part of it belongs to the document `{kind}` in this configuration")
            }
            Self::Empty | Self::Syntax { .. } => self.to_string(),
        }
    }
}

impl Patch {
    /// Reads a patch: documents to merge, with `$patch: delete` where something goes, or a list of JSON patch operations.
    pub fn parse(text: &SecretString) -> Result<Self, PatchError> {
        let mut nodes = read(text.expose())?;
        if let [node] = nodes.as_slice()
            && let Some(operations) = node.as_list()
        {
            return Ok(Self(Kind::Json(json::parse(operations)?)));
        }
        if nodes.is_empty() {
            return Err(PatchError::Empty);
        }
        let mut parts = Vec::new();
        for node in &mut nodes {
            let (deletions, rest) = delete::split(node)?;
            parts.extend(deletions.into_iter().map(Part::Deletion));
            if rest {
                parts.push(Part::Document(decode(node)?));
            }
        }
        Ok(Self(Kind::Merge(parts)))
    }

    /// A patch that merges these documents, if their values are what their shapes say. It may be empty.
    pub(crate) fn of_documents(documents: &[Document]) -> Result<Self, PatchError> {
        let read = |document: &Document| {
            let nodes = read(&document.to_bare_yaml())?;
            let node = nodes.first().ok_or(PatchError::Empty)?;
            Ok(Part::Document(decode(node)?))
        };
        Ok(Self(Kind::Merge(documents.iter().map(read).collect::<Result<_, PatchError>>()?)))
    }

    /// Whether this is a JSON patch, which works on configurations of one document alone.
    pub fn is_json(&self) -> bool {
        matches!(self.0, Kind::Json(_))
    }

    /// The documents that the patch merges or adds.
    pub fn documents(&self) -> impl Iterator<Item = DocumentId> {
        let parts = match &self.0 {
            Kind::Merge(parts) => parts.as_slice(),
            Kind::Json(_) => &[],
        };
        parts.iter().filter_map(|part| match part {
            Part::Document(document) => Some(document.id()),
            Part::Deletion(_) => None,
        })
    }

    /// The configuration with the patch applied.
    pub fn apply(&self, config: MachineConfig) -> Result<MachineConfig, PatchError> {
        match &self.0 {
            Kind::Json(operations) => json::apply(config, operations),
            Kind::Merge(parts) => {
                let mut config = config;
                for part in parts {
                    config = match part {
                        Part::Document(document) => merge(config, document.clone())?,
                        Part::Deletion(deletion) => deletion.apply(config)?,
                    };
                }
                Ok(config)
            }
        }
    }
}

/// Merges one document of a patch, or adds it.
fn merge(config: MachineConfig, mut document: Document) -> Result<MachineConfig, PatchError> {
    let mut changes = Vec::new();
    if document.is_v1alpha1() {
        changes = moved::translate(&config, document.body_mut())?;
    }
    let mut documents = config.into_documents();
    changes.push(moved::Change::Merge(document));
    for change in changes {
        match change {
            moved::Change::Merge(document) => {
                match documents.iter_mut().find(|known| known.id() == document.id()) {
                    Some(known) => merge_into(known, document)?,
                    None => documents.push(document),
                }
            }
            moved::Change::Edit(id, edit) => {
                if let Some(known) = documents.iter_mut().find(|known| known.id() == id) {
                    edit(known.body_mut());
                }
            }
            moved::Change::Remove(kind) => documents.retain(|document| document.kind() != kind),
        }
    }
    Ok(MachineConfig::new(documents)?)
}

/// A path as people write it.
fn dotted(path: &[impl AsRef<str>]) -> String {
    path.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(".")
}

/// The text of a scalar, where there is one.
fn text(node: &Node) -> Option<&str> {
    node.as_scalar().map(|scalar| scalar.text.as_str())
}
