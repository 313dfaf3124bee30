//! Parts of stacks as they are written.

use serde_json::{Map, Value as Json, json};

use super::tree::Tree;

pub(crate) type Object = Map<String, Json>;

/// The machines of a stack, by kind.
#[derive(Default)]
pub(super) struct Guests {
    pub(super) templates: Object,
    pub(super) vms: Object,
    pub(super) containers: Object,
}

impl Guests {
    pub(super) fn is_empty(&self) -> bool {
        self.templates.is_empty() && self.vms.is_empty() && self.containers.is_empty()
    }

    pub(super) fn put_into(self, stack: &mut Object) {
        for (key, guests) in
            [("templates", self.templates), ("vms", self.vms), ("containers", self.containers)]
        {
            if !guests.is_empty() {
                stack.insert(key.into(), Json::Object(guests));
            }
        }
    }
}

/// Puts values where there are some.
pub(crate) trait Put {
    fn put(&mut self, key: &str, value: Option<impl Into<Json>>);
    /// Not an empty list, mapping or text.
    fn put_full(&mut self, key: &str, value: Json);
}

impl Put for Object {
    fn put(&mut self, key: &str, value: Option<impl Into<Json>>) {
        if let Some(value) = value {
            self.insert(key.to_owned(), value.into());
        }
    }

    fn put_full(&mut self, key: &str, value: Json) {
        let empty = match &value {
            Json::Array(items) => items.is_empty(),
            Json::Object(map) => map.is_empty(),
            Json::String(text) => text.is_empty(),
            Json::Null => true,
            _ => false,
        };
        if !empty {
            self.insert(key.to_owned(), value);
        }
    }
}

/// Tags as Strata takes them.
pub(crate) fn tags(list: &[String]) -> Json {
    let fit = |tag: &String| {
        let tag = tag.to_ascii_lowercase().replace([' ', ',', ';'], "-");
        tag.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_').then_some(tag)
    };
    json!(list.iter().filter_map(fit).collect::<Vec<String>>())
}

/// `dhcp`, or an address with its prefix.
pub(super) fn address(text: Option<String>) -> Option<String> {
    text.filter(|text| text == "dhcp" || text == "auto" || text.contains('/'))
}

/// A VLAN tag; 0 is none.
pub(super) fn vlan(tree: &Tree, key: &str) -> Option<i64> {
    tree.int(key).filter(|vlan| (1..=4094).contains(vlan))
}

/// `algorithm:hex`, where there is a checksum.
pub(crate) fn checksum(hex: Option<String>, algorithm: Option<String>) -> Option<String> {
    let hex = hex.filter(|hex| hex.len() >= 32 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    Some(format!("{}:{}", algorithm.unwrap_or_else(|| "sha256".to_owned()), hex.to_ascii_lowercase()))
}
