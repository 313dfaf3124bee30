//! Any object of the API as JSON, and the few fields that all of them have.

use std::fmt;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// An object of the API. `Debug` shows which one it is, never what is in it: it could be a Secret.
#[derive(Clone, PartialEq)]
pub struct Object(Value);

/// Why a value is not an object of the API.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a Kubernetes object: {0}")]
pub struct NotAnObject(&'static str);

impl Object {
    /// Takes a mapping with `apiVersion`, `kind` and `metadata.name`.
    pub fn new(value: Value) -> Result<Self, NotAnObject> {
        let text = |pointer: &str| {
            value.pointer(pointer).and_then(Value::as_str).is_some_and(|text| !text.is_empty())
        };
        if !value.is_object() {
            return Err(NotAnObject("it is not a mapping"));
        }
        for (pointer, problem) in [
            ("/apiVersion", "it has no `apiVersion`"),
            ("/kind", "it has no `kind`"),
            ("/metadata/name", "it has no `metadata.name`"),
        ] {
            if !text(pointer) {
                return Err(NotAnObject(problem));
            }
        }
        Ok(Self(value))
    }

    /// One that this crate builds, and that is therefore right.
    pub(crate) fn built(value: Value) -> Self {
        Self::new(value).expect("built with version, kind and name")
    }

    pub fn value(&self) -> &Value {
        &self.0
    }

    pub fn into_value(self) -> Value {
        self.0
    }

    /// What stands at a JSON pointer, such as `/spec/replicas`.
    pub fn at(&self, pointer: &str) -> Option<&Value> {
        self.0.pointer(pointer)
    }

    /// The text at a JSON pointer.
    pub fn text(&self, pointer: &str) -> Option<&str> {
        self.at(pointer)?.as_str()
    }

    pub fn api_version(&self) -> &str {
        self.text("/apiVersion").unwrap_or_default()
    }

    pub fn kind(&self) -> &str {
        self.text("/kind").unwrap_or_default()
    }

    pub fn name(&self) -> &str {
        self.text("/metadata/name").unwrap_or_default()
    }

    pub fn namespace(&self) -> Option<&str> {
        self.text("/metadata/namespace")
    }

    pub fn uid(&self) -> Option<&str> {
        self.text("/metadata/uid")
    }

    pub fn resource_version(&self) -> Option<&str> {
        self.text("/metadata/resourceVersion")
    }

    pub fn generation(&self) -> Option<i64> {
        self.at("/metadata/generation")?.as_i64()
    }

    pub fn label(&self, name: &str) -> Option<&str> {
        self.at("/metadata/labels")?.get(name)?.as_str()
    }

    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.at("/metadata/annotations")?.get(name)?.as_str()
    }

    /// Who owns fields of it, by the server's own book-keeping.
    pub fn managers(&self) -> impl Iterator<Item = &str> {
        let entries = self.at("/metadata/managedFields").and_then(Value::as_array);
        entries.into_iter().flatten().filter_map(|entry| entry.get("manager")?.as_str())
    }

    /// The status condition of this type.
    pub fn condition(&self, kind: &str) -> Option<&Value> {
        let conditions = self.at("/status/conditions")?.as_array()?;
        conditions.iter().find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))
    }

    pub fn reference(&self) -> ObjectRef {
        ObjectRef {
            api_version: self.api_version().to_owned(),
            kind: self.kind().to_owned(),
            namespace: self.namespace().map(str::to_owned),
            name: self.name().to_owned(),
        }
    }

    pub(crate) fn value_mut(&mut self) -> &mut Value {
        &mut self.0
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.reference(), f)
    }
}

/// Which object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// `v1` or `group/version`.
    pub api_version: String,
    pub kind: String,
    /// None for objects of the whole cluster.
    pub namespace: Option<String>,
    pub name: String,
}

impl ObjectRef {
    pub fn namespaced(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..Self::cluster(api_version, kind, name) }
    }

    pub fn cluster(api_version: &str, kind: &str, name: &str) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: None,
            name: name.to_owned(),
        }
    }
}

/// As messages name it: the kind, then namespace and name in backticks.
impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} `{namespace}/{}`", self.kind, self.name),
            None => write!(f, "{} `{}`", self.kind, self.name),
        }
    }
}

/// SHA-256 over objects in their order, whatever the order of their keys: what state remembers of what was applied.
///
/// Not for Secrets: a digest without a key tells a guesser whether he is right.
pub(crate) fn content_digest<'o>(objects: impl IntoIterator<Item = &'o Object>) -> String {
    let mut hash = Sha256::new();
    for object in objects {
        let text = sorted(&object.0).to_string();
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text.as_bytes());
    }
    format!("sha256:{}", hex::encode(hash.finalize()))
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            Value::Object(keys.into_iter().map(|key| (key.clone(), sorted(&map[key]))).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn says_what_an_object_lacks() {
        for (value, problem) in [
            (json!([]), "not a mapping"),
            (json!({"kind": "A"}), "no `apiVersion`"),
            (json!({"apiVersion": "v1", "kind": ""}), "no `kind`"),
            (json!({"apiVersion": "v1", "kind": "A", "metadata": {}}), "no `metadata.name`"),
        ] {
            assert!(Object::new(value).unwrap_err().to_string().contains(problem));
        }
    }

    #[test]
    fn debug_never_shows_content() {
        let secret = Object::new(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "b"}, "data": {"k": "aHVudGVyMg=="},
        }));
        assert_eq!(format!("{:?}", secret.unwrap()), "Secret `b/a`");
    }

    #[test]
    fn the_digest_knows_content_and_not_the_order_of_keys() {
        let object = |value| [Object::new(value).unwrap()];
        let one = object(
            json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "labels": {"x": "1", "y": "2"}}}),
        );
        let same = object(
            json!({"metadata": {"labels": {"y": "2", "x": "1"}, "name": "a"}, "kind": "A", "apiVersion": "v1"}),
        );
        let other = object(
            json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "labels": {"x": "1", "y": 2}}}),
        );
        assert_eq!(content_digest(&one), content_digest(&same));
        assert_ne!(content_digest(&one), content_digest(&other));
    }
}
