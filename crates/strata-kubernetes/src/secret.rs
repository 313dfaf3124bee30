//! Secrets that are put straight into the cluster: built at the last moment, never written down.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use strata_secret::{Redactor, SecretBytes};

use crate::{Object, ObjectRef};

/// A Secret to be applied. It has no `Debug`.
#[derive(Clone)]
pub struct BootstrapSecret {
    pub namespace: String,
    pub name: String,
    pub data: BTreeMap<String, SecretBytes>,
    /// Entries that stand in the Secret and are none: user names, host keys. They may be shown.
    pub public: BTreeSet<String>,
}

impl BootstrapSecret {
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            data: BTreeMap::new(),
            public: BTreeSet::new(),
        }
    }

    pub fn with(mut self, key: &str, value: impl Into<SecretBytes>) -> Self {
        self.data.insert(key.to_owned(), value.into());
        self
    }

    /// As [`Self::with`], for what is no secret.
    pub(crate) fn with_public(mut self, key: &str, value: &str) -> Self {
        self.public.insert(key.to_owned());
        self.with(key, value.as_bytes())
    }

    pub fn reference(&self) -> ObjectRef {
        ObjectRef::namespaced("v1", "Secret", &self.namespace, &self.name)
    }

    /// The object to apply. What it holds is in the clear but for base64: make it where it is sent.
    pub fn object(&self) -> Object {
        let data: Map<String, Value> = self
            .data
            .iter()
            .map(|(key, value)| (key.clone(), Value::from(STANDARD.encode(value.expose()))))
            .collect();
        Object::built(json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": self.name,
                "namespace": self.namespace,
                "labels": {"app.kubernetes.io/managed-by": "strata"},
            },
            "type": "Opaque",
            "data": data,
        }))
    }

    /// Makes sure that nothing which a server says shows these.
    pub fn tell(&self, redactor: &Redactor) {
        for (_, value) in self.data.iter().filter(|(key, _)| !self.public.contains(*key)) {
            if let Ok(text) = std::str::from_utf8(value.expose()) {
                redactor.add_text(text);
            }
        }
    }

    /// Whether a live Secret holds these entries with these values; it may have others.
    pub fn is_in(&self, live: &Object) -> bool {
        self.data.iter().all(|(name, value)| {
            let live = live.at("/data").and_then(|data| data.get(name)?.as_str());
            let live = live.and_then(|text| STANDARD.decode(text).ok());
            live.is_some_and(|live| SecretBytes::new(live) == *value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_live_secret_holds_the_wanted_one_only_with_the_same_values() {
        let secret =
            BootstrapSecret::new("ns", "a").with("k", b"value".as_slice()).with("l", b"\xff\x00".as_slice());
        let live = secret.object();
        assert!(secret.is_in(&live));
        let other = secret.clone().with("k", b"other".as_slice());
        assert!(!other.is_in(&live));
        assert!(!secret.with("more", b"1".as_slice()).is_in(&live));
    }
}
