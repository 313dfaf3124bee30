//! Documents that a user writes in a file, in place, or by reference, as text with everything resolved.

use serde_json::{Map, Value as Json};
use strata_secret::SecretString;
use strata_source::value::document::Document;
use strata_yaml::{Node, Reference, ScalarKind, Source};

use crate::site::Draft;

/// Whether a reference may stand in a document; what forbids it has been reported.
type Allowed<'f> = &'f dyn Fn(&mut Draft<'_>, &Reference) -> Option<()>;

impl Draft<'_> {
    pub(crate) fn written(&mut self, document: &Document, allowed: Allowed<'_>) -> Option<SecretString> {
        match document {
            Document::Inline(text) => Some(SecretString::new(text.value.clone())),
            Document::File(path) => self.resolve(&Reference {
                source: Source::File(path.value.clone()),
                span: path.span,
                sensitive: false,
                fetched: false,
            }),
            Document::Reference(reference) => {
                allowed(self, reference)?;
                self.resolve(reference)
            }
            // JSON is YAML.
            Document::Mapping(node) => Some(SecretString::new(self.json(node, allowed)?.to_string())),
        }
    }

    fn json(&mut self, node: &Node, allowed: Allowed<'_>) -> Option<Json> {
        if let Some(reference) = reference(node) {
            allowed(self, &reference)?;
            return self.resolve(&reference).map(|plain| Json::String(plain.expose().to_owned()));
        }
        if let Some(items) = node.as_list() {
            let items = items.iter().map(|item| self.json(item, allowed)).collect::<Option<Vec<_>>>();
            return items.map(Json::Array);
        }
        if let Some(mapping) = node.as_mapping() {
            let mut object = Map::new();
            for entry in &mapping.entries {
                object.insert(entry.key.value.clone(), self.json(&entry.value, allowed)?);
            }
            return Some(Json::Object(object));
        }
        let scalar = node.as_scalar()?;
        Some(match scalar.kind() {
            ScalarKind::Null => Json::Null,
            ScalarKind::Bool(bool) => Json::Bool(bool),
            ScalarKind::Integer(Some(int)) => Json::from(int),
            _ => Json::String(scalar.text.clone()),
        })
    }
}

/// The reference that a node spells.
fn reference(node: &Node) -> Option<Reference> {
    let [entry] = node.as_mapping()?.entries.as_slice() else { return None };
    let name = entry.value.as_scalar()?.text.clone();
    let source = match entry.key.value.as_str() {
        "secret" => Source::Secret(name),
        "env" => Source::Env(name),
        "file" => Source::File(name),
        _ => return None,
    };
    Some(Reference { source, span: node.span, sensitive: false, fetched: false })
}
