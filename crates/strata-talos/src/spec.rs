//! A machine configuration as the fields of a resource: a tree by document, in which every secret is one.
//!
//! What other resources own is left out: which version the components of Kubernetes have, and which image Talos is upgraded with.

use std::collections::BTreeMap;

use strata_resource::{Secret, Spec, Value as Field};
use strata_secret::{REDACTED, SecretString};

use crate::config::MachineConfig;
use crate::document::Document;
use crate::shape::Shape;
use crate::tree::{Map, Value};

/// How much of a configuration may be shown, besides the fields that are secrets by what they are.
#[derive(Clone, Copy)]
pub enum Shown<'c> {
    All,
    /// Only what this one has too, which was made without the secrets of the source. Whatever depends on one is then secret,
    /// however it came there: merged, moved to another document, or built into another text.
    As(&'c MachineConfig),
    Nothing,
}

/// `is_secret` tells of texts that are secret wherever they stand.
pub fn config_spec(config: &MachineConfig, shown: Shown<'_>, is_secret: &dyn Fn(&str) -> bool) -> Spec {
    let mut documents = Spec::new();
    let mut hidden: BTreeMap<&str, usize> = BTreeMap::new();
    let public = match shown {
        Shown::As(public) => Some(public.without_versions()),
        Shown::All | Shown::Nothing => None,
    };
    for document in config.without_versions().documents() {
        let twin = public.as_ref().and_then(|public| find(public, document)).map(Document::to_value);
        let public = match (shown, &twin) {
            (Shown::All, _) => Public::All,
            (_, Some(twin)) => Public::As(twin),
            (_, None) => Public::Nothing,
        };
        let walk = Walk { is_secret };
        let tree = walk.document(document, public);
        let id = match (public, document.name()) {
            (Public::Nothing, Some(_)) => {
                let count = hidden.entry(document.kind()).or_default();
                *count += 1;
                hidden_id(document.kind(), *count)
            }
            _ => document.id().to_string(),
        };
        documents.insert(id, Field::Map(tree));
    }
    documents
}

/// What a document is called whose name is secret.
fn hidden_id(kind: &str, count: usize) -> String {
    match count {
        1 => format!("{kind} {REDACTED}"),
        count => format!("{kind} {REDACTED} {count}"),
    }
}

/// Whether documents of this kind are meant, by a name that is not told.
pub fn is_hidden_id(id: &str, kind: &str) -> bool {
    let rest = id.strip_prefix(kind).and_then(|rest| rest.strip_prefix(' '));
    rest.is_some_and(|rest| rest.starts_with(REDACTED))
}

fn find<'c>(config: &'c MachineConfig, like: &Document) -> Option<&'c Document> {
    config.documents().iter().find(|document| document.id() == like.id())
}

/// What of a value is no secret.
#[derive(Clone, Copy)]
enum Public<'v> {
    All,
    /// As far as it is the same.
    As(&'v Value),
    Nothing,
}

impl<'v> Public<'v> {
    fn of(value: Option<&'v Value>) -> Self {
        value.map_or(Self::Nothing, Self::As)
    }

    fn key(self, key: &str) -> Self {
        match self {
            Self::As(value) => Self::of(value.get(key)),
            other => other,
        }
    }

    /// An item of a list may stand elsewhere in the other.
    fn item(self, index: usize, item: &Value) -> Self {
        match self {
            Self::As(value) => {
                let items = value.as_list().unwrap_or_default();
                if items.contains(item) { Self::All } else { Self::of(items.get(index)) }
            }
            other => other,
        }
    }

    fn hides(self, value: &Value) -> bool {
        match self {
            Self::All => false,
            Self::As(public) => public != value,
            Self::Nothing => true,
        }
    }

    /// Whether the map has a key that is not public itself.
    fn hides_a_key(self, map: &Map) -> bool {
        let set = || map.iter().filter(|(_, value)| !matches!(value, Value::Null));
        match self {
            Self::All => false,
            Self::As(public) => set().any(|(key, _)| public.get(key).is_none()),
            Self::Nothing => set().next().is_some(),
        }
    }
}

struct Walk<'f> {
    is_secret: &'f dyn Fn(&str) -> bool,
}

impl Walk<'_> {
    fn document(&self, document: &Document, public: Public<'_>) -> Spec {
        let (value, shown) = (document.to_value(), document.to_redacted_value());
        let (Some(map), Some(twins)) = (value.as_map(), shown.as_map()) else { return Spec::new() };
        let record = &document.shape().record;
        let fields = map.iter().filter_map(|(key, value)| {
            let twin = twins.get(key).unwrap_or(value);
            // What is no field says which document it is.
            let (shape, public) = match record.field(key) {
                Some(field) => (Some(&field.shape), public.key(key)),
                None => (None, Public::All),
            };
            Some((key.clone(), self.field(value, twin, shape, public)?))
        });
        fields.collect()
    }

    /// The value beside its redacted twin: where the twin hides something, there is a secret. Nothing for what is not set.
    fn field(
        &self,
        value: &Value,
        shown: &Value,
        shape: Option<&Shape>,
        public: Public<'_>,
    ) -> Option<Field> {
        let scalar = |field: Field| if public.hides(value) { field.into_secret() } else { field };
        Some(match value {
            Value::Null => return None,
            // Not set; what was set aside is left as this.
            Value::Text(text) if text.is_empty() => return None,
            Value::Text(text)
                if shown.as_text() == Some(REDACTED) && text.as_str() != REDACTED
                    || (self.is_secret)(text) =>
            {
                Field::Secret(Secret::new(SecretString::from(text.as_str())))
            }
            Value::Text(text) => scalar(Field::text(text.as_str())),
            Value::Bool(bool) => scalar(Field::Bool(*bool)),
            Value::Int(int) => {
                scalar(i64::try_from(*int).map_or_else(|_| Field::Text(int.to_string()), Field::Int))
            }
            Value::Octal(number) => scalar(Field::Text(format!("0{number:o}"))),
            Value::Float(number) => scalar(Field::Text(number.to_string())),
            Value::List(items) => {
                let twins = shown.as_list().unwrap_or_default();
                let shape = match shape {
                    Some(Shape::List { item, .. }) => Some(&**item),
                    _ => None,
                };
                let fields = items.iter().enumerate().filter_map(|(at, item)| {
                    self.field(item, twins.get(at).unwrap_or(item), shape, public.item(at, item))
                });
                Field::List(fields.collect())
            }
            Value::Map(map) => {
                let free = !matches!(shape, Some(Shape::Record(_) | Shape::Leaf(_)));
                // Keys of the user's choice are values, too.
                if free && public.hides_a_key(map) {
                    return self.field(value, shown, shape, Public::All).map(Field::into_secret);
                }
                let fields = map.iter().filter_map(|(key, value)| {
                    let twin = shown.get(key).unwrap_or(value);
                    let shape = match shape {
                        Some(Shape::Record(record)) => record.field(key).map(|field| &field.shape),
                        Some(Shape::Map(item)) => Some(&**item),
                        _ => None,
                    };
                    Some((key.clone(), self.field(value, twin, shape, public.key(key))?))
                });
                Field::Map(fields.collect())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patch::Patch;

    const BASE: &str = "machine:\n  type: worker\n  certSANs: [public.example]\n  sysctls: {a: '1'}\n  nodeLabels: {zone: a}\n  network: {hostname: w1}\ncluster: null\n";

    fn config(patches: &[&str]) -> MachineConfig {
        let base =
            MachineConfig::from_yaml(&SecretString::from(BASE)).unwrap_or_else(|error| panic!("{error}"));
        patches.iter().fold(base, |config, patch| {
            let patch = Patch::parse(&SecretString::from(*patch)).unwrap_or_else(|error| panic!("{error}"));
            patch.apply(config).unwrap_or_else(|error| panic!("{error}"))
        })
    }

    fn shown(patches: &[&str], public: &[&str]) -> String {
        let (config, public) = (config(patches), config(public));
        format!("{:?}", Field::Map(config_spec(&config, Shown::As(&public), &|_| false)))
    }

    #[test]
    fn c1_whatever_a_secret_patch_brings_is_secret() {
        let patch = "machine:\n  certSANs: [mk.example]\n  sysctls: {mk: '2', a: '3'}\n  nodeLabels: {zone: mk}\n  install: {wipe: true, extraKernelArgs: [mk=1]}\n  files: [{path: /mk, permissions: 0o600, op: create, content: mk}]\n---\napiVersion: v1alpha1\nkind: ExtensionServiceConfig\nname: mk\nenvironment: [A=mk]\n";
        let text = shown(&[patch], &[]);
        assert!(!text.contains("mk"), "{text}");
        // Not even a number or a yes is told.
        assert!(text.contains(r#""wipe":{"$secret""#), "{text}");
        // What is the same without it is, and so is where it changes something.
        for public in
            ["public.example", r#""hostname":"w1""#, "extraKernelArgs", "ExtensionServiceConfig <secret>"]
        {
            assert!(text.contains(public), "{public}: {text}");
        }
        let all = format!("{:?}", Field::Map(config_spec(&config(&[patch]), Shown::All, &|_| false)));
        assert!(all.contains("mk"), "{all}");
        let none = format!("{:?}", Field::Map(config_spec(&config(&[]), Shown::Nothing, &|_| false)));
        assert!(!none.contains("public.example") && !none.contains("w1"), "{none}");
    }

    #[test]
    fn c1_a_secret_inside_of_a_patch_leaves_the_rest_of_it_open() {
        let with = |value: &str| {
            format!("machine:\n  nodeLabels: {{own: {value}, open: b}}\n  certSANs: [c.example]\n")
        };
        let text = shown(&[&with("mk")], &[&with("<secret>")]);
        assert!(!text.contains("mk"), "{text}");
        assert!(text.contains(r#""own":{"$secret""#) && text.contains(r#""open":"b""#), "{text}");
        assert!(text.contains("c.example"), "{text}");
    }

    #[test]
    fn c1_the_same_configuration_gives_the_same_secrets() {
        let key = strata_secret::DigestKey::from_bytes(&[3; 32]).unwrap();
        let machine = strata_resource::Kind::named("machine");
        let address = strata_resource::Address::new(None, "lab", machine, "w1");
        let patch = "machine:\n  sysctls: {mk: '2'}\n  install: {wipe: true, extraKernelArgs: [mk=1]}\n  nodeLabels: {zone: mk}\n";
        let (config, public) = (config(&[patch]), config(&[]));
        let wanted = config_spec(&config, Shown::As(&public), &|_| false);
        // Read back from a node, nobody knows where a value came from: what was wanted tells.
        let live = strata_resource::secret_like(config_spec(&config, Shown::All, &|_| false), &[&wanted]);
        let sealed = |spec: Spec| Field::Map(spec).sealed(&key, &address);
        assert_eq!(sealed(wanted), sealed(live));
    }

    #[test]
    fn c1_errors_of_a_secret_patch_quote_nothing_of_it() {
        for text in [
            "machine: {mk: 1}",
            "mk: 1",
            "machine: {sysctls: [mk]}",
            "machine:\n  mk: 1\n  mk: 2\n",
            "apiVersion: v1alpha1\nkind: mk\n",
            "a: [mk",
        ] {
            let error = Patch::parse(&SecretString::from(text)).err().expect("an error").without_names();
            assert!(!error.contains("mk"), "{error}");
        }
    }
}
