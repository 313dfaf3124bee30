//! How values merge: which lists have keys, which are sets, which values are one whole. From a custom resource's schema, or from
//! what is known of the built-in types.

use serde_json::{Map, Value};

use super::fields::Step;

/// How the items of a list are told apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Items<'s> {
    /// Not at all: the list is one value.
    Atomic,
    /// By their value.
    Set,
    /// By these members; `protocol` is `TCP` where it is left out.
    Keyed(Keys<'s>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Keys<'s> {
    Known(&'static [&'static str]),
    Schema(&'s [Value]),
}

impl<'s> Keys<'s> {
    fn names(self) -> Vec<&'s str> {
        match self {
            Self::Known(names) => names.to_vec(),
            Self::Schema(names) => names.iter().filter_map(Value::as_str).collect(),
        }
    }

    /// The step that leads to this item, if it has its keys.
    pub fn step(self, item: &Value) -> Option<Step> {
        let mut key = Map::new();
        for name in self.names() {
            let value = match item.get(name) {
                Some(value) => value.clone(),
                None if name == "protocol" => Value::from("TCP"),
                None => return None,
            };
            key.insert(name.to_owned(), value);
        }
        key.sort_keys();
        Some(Step::Item(Value::Object(key).to_string()))
    }
}

/// Where in an object's type we are.
#[derive(Debug, Clone, Copy)]
pub enum Shape<'s> {
    /// A built-in type: the member we are in, and the one around it.
    Builtin { around: &'s str, member: &'s str },
    /// A custom type: its schema here, if there is one.
    Custom { schema: Option<&'s Value>, root: bool },
}

impl<'s> Shape<'s> {
    pub fn builtin() -> Self {
        Self::Builtin { around: "", member: "" }
    }

    pub fn custom(schema: Option<&'s Value>) -> Self {
        Self::Custom { schema, root: true }
    }

    pub fn member(self, name: &'s str) -> Self {
        match self {
            Self::Builtin { member, .. } => Self::Builtin { around: member, member: name },
            Self::Custom { root: true, .. } if name == "metadata" => {
                Self::Builtin { around: "", member: "metadata" }
            }
            Self::Custom { schema, .. } => {
                let property = schema.and_then(|s| {
                    s.get("properties").and_then(|p| p.get(name)).or_else(|| s.get("additionalProperties"))
                });
                Self::Custom { schema: property, root: false }
            }
        }
    }

    /// The shape of the items of a list.
    pub fn item(self) -> Self {
        match self {
            Self::Builtin { .. } => self,
            Self::Custom { schema, .. } => {
                Self::Custom { schema: schema.and_then(|s| s.get("items")), root: false }
            }
        }
    }

    pub fn items(self) -> Items<'s> {
        match self {
            Self::Builtin { around, member } => known_list(around, member),
            Self::Custom { schema, .. } => {
                let Some(schema) = schema else { return Items::Atomic };
                match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
                    Some("set") => Items::Set,
                    Some("map") => {
                        let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
                        Items::Keyed(Keys::Schema(keys.map_or(&[], Vec::as_slice)))
                    }
                    _ => Items::Atomic,
                }
            }
        }
    }

    /// An object that is owned and replaced as one value.
    pub fn is_whole(self) -> bool {
        match self {
            Self::Builtin { around, member } => WHOLE.contains(&member) && around != "template",
            Self::Custom { schema, .. } => {
                schema.and_then(|s| s.get("x-kubernetes-map-type")).is_some_and(|kind| kind == "atomic")
            }
        }
    }
}

const WHOLE: &[&str] = &[
    "selector",
    "podSelector",
    "namespaceSelector",
    "labelSelector",
    "objectSelector",
    "nodeSelector",
    "roleRef",
    "configMapKeyRef",
    "secretKeyRef",
    "fieldRef",
    "resourceFieldRef",
    "claimRef",
    "targetRef",
    "openAPIV3Schema",
];

fn known_list(around: &str, member: &str) -> Items<'static> {
    let keys: &[&str] = match (around, member) {
        (
            _,
            "containers" | "initContainers" | "ephemeralContainers" | "volumes" | "env" | "imagePullSecrets",
        ) => &["name"],
        ("", "secrets" | "webhooks") => &["name"],
        (_, "volumeMounts") => &["mountPath"],
        (_, "volumeDevices") => &["devicePath"],
        ("containers" | "initContainers", "ports") => &["containerPort", "protocol"],
        ("spec", "ports") => &["port", "protocol"],
        ("status", "conditions") => &["type"],
        ("metadata", "ownerReferences") => &["uid"],
        (_, "hostAliases") => &["ip"],
        (_, "topologySpreadConstraints") => &["topologyKey", "whenUnsatisfiable"],
        ("metadata", "finalizers") => return Items::Set,
        _ => return Items::Atomic,
    };
    Items::Keyed(Keys::Known(keys))
}
