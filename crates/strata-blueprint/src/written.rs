//! Documents that a user writes in a file, in place, or by reference, as text with everything resolved.

use serde_json::{Map, Value as Json};
use strata_secret::{REDACTED, SecretString};
use strata_source::value::document::Document;
use strata_yaml::{Node, Reference, ScalarKind, Source};

use crate::site::Draft;

/// Whether a reference may stand in a document; what forbids it has been reported.
type Allowed<'f> = &'f dyn Fn(&mut Draft<'_>, &Reference) -> Option<()>;

/// A document with everything resolved.
pub(crate) struct Resolution {
    pub(crate) text: SecretString,
    pub(crate) public: Public,
}

/// A document as far as it is no secret.
pub(crate) enum Public {
    /// It holds none.
    All,
    /// With a word in the place of each secret, and with nothing there.
    Part { marked: SecretString, bare: SecretString },
    /// It is one.
    None,
}

/// What is written where a secret stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Secrets {
    Open,
    Marked,
    LeftOut,
}

impl Draft<'_> {
    pub(crate) fn written(&mut self, document: &Document, allowed: Allowed<'_>) -> Option<Resolution> {
        let all = |text: SecretString| Resolution { text, public: Public::All };
        match document {
            Document::Inline(text) => Some(all(SecretString::new(text.value.clone()))),
            Document::File(path) => {
                let resolved = self.resolve(&Reference {
                    source: Source::File(path.value.clone()),
                    span: path.span,
                    sensitive: false,
                    fetched: false,
                })?;
                Some(all(resolved.into_secret()))
            }
            Document::Reference(reference) => {
                allowed(self, reference)?;
                let resolved = self.resolve(reference)?;
                let public = if resolved.is_secret() { Public::None } else { Public::All };
                Some(Resolution { text: resolved.into_secret(), public })
            }
            Document::Mapping(node) => {
                let mut text = |secrets| {
                    // JSON is YAML.
                    let json = self.json(node, allowed, secrets)?;
                    Some(SecretString::new(json.unwrap_or_default().to_string()))
                };
                let open = text(Secrets::Open)?;
                let public = match holds_secret(node) {
                    true => Public::Part { marked: text(Secrets::Marked)?, bare: text(Secrets::LeftOut)? },
                    false => Public::All,
                };
                Some(Resolution { text: open, public })
            }
        }
    }

    /// The inner `None` is a secret that is left out.
    fn json(&mut self, node: &Node, allowed: Allowed<'_>, secrets: Secrets) -> Option<Option<Json>> {
        if let Some(reference) = reference(node) {
            match secrets {
                Secrets::LeftOut if reference.is_secret() => return Some(None),
                Secrets::Marked if reference.is_secret() => return Some(Some(REDACTED.into())),
                _ => {}
            }
            allowed(self, &reference)?;
            let resolved = self.resolve(&reference)?.into_secret();
            return Some(Some(Json::String(resolved.expose().to_owned())));
        }
        if let Some(items) = node.as_list() {
            let mut list = Vec::new();
            for item in items {
                list.extend(self.json(item, allowed, secrets)?);
            }
            return Some(Some(Json::Array(list)));
        }
        if let Some(mapping) = node.as_mapping() {
            let mut object = Map::new();
            for entry in &mapping.entries {
                if let Some(value) = self.json(&entry.value, allowed, secrets)? {
                    object.insert(entry.key.value.clone(), value);
                }
            }
            return Some(Some(Json::Object(object)));
        }
        let scalar = node.as_scalar()?;
        Some(Some(match scalar.kind() {
            ScalarKind::Null => Json::Null,
            ScalarKind::Bool(bool) => Json::Bool(bool),
            ScalarKind::Integer(Some(int)) => Json::from(int),
            _ => Json::String(scalar.text.clone()),
        }))
    }
}

fn holds_secret(node: &Node) -> bool {
    if let Some(reference) = reference(node) {
        return reference.is_secret();
    }
    let entries = node.as_mapping().map(|mapping| mapping.entries.as_slice()).unwrap_or_default();
    node.as_list().unwrap_or_default().iter().any(holds_secret)
        || entries.iter().any(|entry| holds_secret(&entry.value))
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
