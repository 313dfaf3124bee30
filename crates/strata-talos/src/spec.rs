//! A machine configuration as the fields of a resource: a tree by document, in which every secret is one.
//!
//! What other resources own is left out: which version the components of Kubernetes have, and which image Talos is upgraded with.

use strata_resource::{Secret, Spec, Value as Field};
use strata_secret::{REDACTED, SecretString};

use crate::config::MachineConfig;
use crate::document::Document;
use crate::tree::Value;

/// Images whose version belongs to the cluster, by document and path.
const OWNED_ELSEWHERE: &[(&str, &[&str])] = &[
    ("v1alpha1", &["machine", "install", "image"]),
    ("v1alpha1", &["machine", "kubelet", "image"]),
    ("v1alpha1", &["cluster", "apiServer", "image"]),
    ("v1alpha1", &["cluster", "controllerManager", "image"]),
    ("v1alpha1", &["cluster", "scheduler", "image"]),
    ("v1alpha1", &["cluster", "proxy", "image"]),
];

/// Documents of 1.14 whose `image` it is.
const IMAGE_DOCUMENTS: &[&str] = &[
    "KubeletConfig",
    "KubeAPIServerConfig",
    "KubeControllerManagerConfig",
    "KubeSchedulerConfig",
    "KubeProxyConfig",
];

/// `is_secret` tells of texts that are secret wherever they stand: what a patch of the user took from an encrypted file.
pub fn config_spec(config: &MachineConfig, is_secret: &dyn Fn(&str) -> bool) -> Spec {
    let mut documents = Spec::new();
    for document in config.documents() {
        if let Some(Field::Map(mut tree)) =
            field(&document.to_value(), &document.to_redacted_value(), is_secret)
        {
            set_aside(document, &mut tree);
            documents.insert(document.id().to_string(), Field::Map(tree));
        }
    }
    documents
}

fn set_aside(document: &Document, tree: &mut Spec) {
    if IMAGE_DOCUMENTS.contains(&document.kind()) {
        tree.remove("image");
    }
    for (kind, path) in OWNED_ELSEWHERE {
        if *kind == document.id().to_string() {
            remove(tree, path);
        }
    }
}

fn remove(tree: &mut Spec, path: &[&str]) {
    match path {
        [] => {}
        [last] => {
            tree.remove(*last);
        }
        [first, rest @ ..] => {
            if let Some(Field::Map(inner)) = tree.get_mut(*first) {
                remove(inner, rest);
                if inner.is_empty() {
                    tree.remove(*first);
                }
            }
        }
    }
}

/// The value beside its redacted twin: where the twin hides something, there is a secret. Nothing for what is not set.
fn field(value: &Value, shown: &Value, is_secret: &dyn Fn(&str) -> bool) -> Option<Field> {
    Some(match (value, shown) {
        (Value::Null, _) => return None,
        (Value::Text(text), shown)
            if shown.as_text() == Some(REDACTED) && text.as_str() != REDACTED || is_secret(text) =>
        {
            Field::Secret(Secret::new(SecretString::from(text.as_str())))
        }
        (Value::Text(text), _) => Field::text(text.as_str()),
        (Value::Bool(bool), _) => Field::Bool(*bool),
        (Value::Int(int), _) => i64::try_from(*int).map_or_else(|_| Field::Text(int.to_string()), Field::Int),
        (Value::Octal(number), _) => Field::Text(format!("0{number:o}")),
        (Value::Float(number), _) => Field::Text(number.to_string()),
        (Value::List(items), shown) => {
            let twins = shown.as_list().unwrap_or_default();
            let pairs = items.iter().enumerate();
            Field::List(
                pairs
                    .filter_map(|(at, item)| field(item, twins.get(at).unwrap_or(item), is_secret))
                    .collect(),
            )
        }
        (Value::Map(map), shown) => {
            let twins = shown.as_map();
            let fields = map.iter().filter_map(|(key, value)| {
                let twin = twins.and_then(|twins| twins.get(key)).unwrap_or(value);
                Some((key.clone(), field(value, twin, is_secret)?))
            });
            Field::Map(fields.collect())
        }
    })
}
