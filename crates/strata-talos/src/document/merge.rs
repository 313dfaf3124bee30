//! Strategic merge: a document of a patch into the document of the configuration.

use crate::document::{Document, DocumentError};
use crate::shape::{Field, Leaf, Record, Shape};
use crate::tree::{Map, Value};

/// Merges a patch's document into one of the same kind and name.
pub(crate) fn merge_into(left: &mut Document, right: Document) -> Result<(), DocumentError> {
    let mut merger = Merger { kind: left.kind(), path: Vec::new() };
    let shape = left.shape();
    merger.record(&shape.record, &mut left.body, right.body)
}

struct Merger {
    kind: &'static str,
    path: Vec<String>,
}

impl Merger {
    fn record(&mut self, record: &Record, left: &mut Map, mut right: Map) -> Result<(), DocumentError> {
        for field in &record.fields {
            self.path.push(field.name.to_owned());
            self.field(field, left, right.shift_remove(field.name))?;
            self.path.pop();
        }
        Ok(())
    }

    fn field(&mut self, field: &Field, left: &mut Map, right: Option<Value>) -> Result<(), DocumentError> {
        let Some(right) = right else {
            let replaces = matches!(&field.shape, Shape::Leaf(leaf) if leaf.absent_replaces());
            if replaces && !field.optional {
                left.shift_remove(field.name);
            } else if let (Shape::Record(record), false) = (&field.shape, field.optional)
                && let Some(Value::Map(body)) = left.get_mut(field.name)
            {
                // A part that is always there is merged even if the patch says nothing about it.
                self.record(record, body, Map::new())?;
            }
            return Ok(());
        };
        if let (Shape::List { by: Some(_), .. }, None) = (&field.shape, left.get(field.name)) {
            // Items of the patch with the same name are one item, even if there was no list before.
            left.insert(field.name.to_owned(), Value::List(Vec::new()));
        }
        match left.get_mut(field.name) {
            Some(value) if !(field.replace && is_collection(&field.shape)) => {
                self.value(&field.shape, value, right)
            }
            _ => {
                left.insert(field.name.to_owned(), right);
                Ok(())
            }
        }
    }

    fn value(&mut self, shape: &Shape, left: &mut Value, right: Value) -> Result<(), DocumentError> {
        match (shape, &mut *left, right) {
            (Shape::Leaf(leaf), _, right) => {
                let merged = leaf.merged(left, right);
                *left = merged;
            }
            (Shape::Args, Value::Map(left), Value::Map(right)) => left.extend(right),
            (Shape::Any { .. }, Value::Map(left), Value::Map(right)) => self.any_map(left, right)?,
            (Shape::List { by: Some("image"), .. }, Value::List(left), Value::List(right)) => {
                replace_rules(left, right)
            }
            (Shape::List { item, by: Some(by) }, Value::List(left), Value::List(right)) => {
                for value in right {
                    self.keyed(item, by, left, value)?;
                }
            }
            (Shape::List { .. }, Value::List(left), Value::List(right)) => left.extend(right),
            (Shape::Map(item), Value::Map(left), Value::Map(right)) => {
                for (key, right) in right {
                    self.path.push(key.clone());
                    self.entry(item, left, key, right)?;
                    self.path.pop();
                }
            }
            (Shape::Record(record), Value::Map(left), Value::Map(right)) => {
                self.record(record, left, right)?
            }
            (_, left, right) => *left = right,
        }
        Ok(())
    }

    fn entry(
        &mut self,
        item: &Shape,
        left: &mut Map,
        key: String,
        right: Value,
    ) -> Result<(), DocumentError> {
        match (left.get_mut(&key), item) {
            // An empty text in a patch does not empty the one that is there.
            (Some(_), Shape::Leaf(leaf @ (Leaf::Text | Leaf::Secret))) if leaf.is_zero(&right) => Ok(()),
            (Some(value), item) => self.value(item, value, right),
            (None, _) => {
                left.insert(key, right);
                Ok(())
            }
        }
    }

    /// An item of a list whose items have names.
    fn keyed(
        &mut self,
        item: &Shape,
        by: &str,
        left: &mut Vec<Value>,
        right: Value,
    ) -> Result<(), DocumentError> {
        let same = |left: &Value| match by {
            "interface" => same_interface(left, &right),
            by => left.get(by) == right.get(by),
        };
        match left.iter_mut().find(|value| same(value)) {
            Some(value) => self.value(item, value, right)?,
            None => left.push(right),
        }
        Ok(())
    }

    /// A tree without a shape: mappings are merged, lists appended, and the types must agree.
    fn any_map(&mut self, left: &mut Map, right: Map) -> Result<(), DocumentError> {
        for (key, right) in right {
            self.path.push(key.clone());
            match left.get_mut(&key) {
                None | Some(Value::Null) => {
                    left.insert(key, right);
                }
                Some(value) => self.any(value, right)?,
            }
            self.path.pop();
        }
        Ok(())
    }

    fn any(&mut self, left: &mut Value, right: Value) -> Result<(), DocumentError> {
        match (left, right) {
            (Value::Map(left), Value::Map(right)) => self.any_map(left, right)?,
            (Value::List(left), Value::List(right)) => left.extend(right),
            (Value::Text(left), Value::Text(right)) => {
                if !right.is_empty() {
                    *left = right;
                }
            }
            (Value::Int(left), Value::Int(right)) => {
                if right != 0 {
                    *left = right;
                }
            }
            (Value::Float(left), Value::Float(right)) => {
                if right != 0.0 {
                    *left = right;
                }
            }
            (Value::Bool(left), Value::Bool(right)) => *left = right,
            _ => return Err(DocumentError::TypesDiffer { kind: self.kind, path: self.path.join(".") }),
        }
        Ok(())
    }
}

/// A rule of image verification takes the place of the one that was there for the same images.
fn replace_rules(left: &mut Vec<Value>, right: Vec<Value>) {
    let before = left.len();
    for rule in right {
        match left[..before].iter().rposition(|known| known.get("image") == rule.get("image")) {
            Some(index) => left[index] = rule,
            None => left.push(rule),
        }
    }
}

fn is_collection(shape: &Shape) -> bool {
    !matches!(shape, Shape::Leaf(_) | Shape::Record(_))
}

/// Interfaces are the same by name, or, if the patch's has none, by selector.
fn same_interface(left: &Value, right: &Value) -> bool {
    let name = |value: &Value| value.get("interface").cloned();
    match (name(right), right.get("deviceSelector")) {
        (Some(right), _) => name(left) == Some(right),
        (None, Some(selector)) => left.get("deviceSelector") == Some(selector),
        (None, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::decode;
    use crate::yaml::read;

    fn merged(left: &str, right: &str) -> Result<String, DocumentError> {
        let decode = |text: &str| decode(&read(text).unwrap()[0]);
        let mut left = decode(left)?;
        merge_into(&mut left, decode(right)?)?;
        Ok(left.to_yaml().expose().to_owned())
    }

    fn kubelet(fields: &str) -> String {
        format!("apiVersion: v1alpha1\nkind: KubeletConfig\n{fields}")
    }

    #[test]
    fn fields_are_merged_by_their_shapes() {
        let left = "machine:\n  certSANs: [a]\n  sysctls: {a: '1', b: '2'}\n  network:\n    interfaces:\n    - {interface: eth0, mtu: 1500, dhcp: true}\n\
                    cluster:\n  network: {podSubnets: [10.0.0.0/16]}\n  apiServer: {auditPolicy: {a: 1}, extraArgs: {x: '1', y: '2'}}\n";
        let right = "machine:\n  certSANs: [b]\n  sysctls: {a: '', c: '3'}\n  network:\n    interfaces:\n    - {interface: eth0, dhcp: false}\n    - {interface: eth1}\n\
                     cluster:\n  network: {podSubnets: [10.1.0.0/16]}\n  apiServer: {auditPolicy: {b: 2}, extraArgs: {x: [z]}}\n";
        let expected = "version: \"\"\nmachine:\n    type: \"\"\n    token: \"\"\n    certSANs:\n        - a\n        - b\n    network:\n        interfaces:\n            \
                        - interface: eth0\n              mtu: 1500\n              dhcp: false\n            - interface: eth1\n    sysctls:\n        a: \"1\"\n        b: \"2\"\n        c: \"3\"\n\
                        cluster:\n    network:\n        dnsDomain: \"\"\n        podSubnets:\n            - 10.1.0.0/16\n        serviceSubnets: []\n    apiServer:\n        extraArgs:\n            \
                        x:\n                - z\n            'y': \"2\"\n        auditPolicy:\n            b: 2\n";
        assert_eq!(merged(left, right).unwrap(), expected);
    }

    #[test]
    fn trees_without_a_shape_must_agree_on_types() {
        let left = kubelet("config: {a: {b: 1}, list: [1]}\n");
        let both = merged(&left, &kubelet("config: {a: {b: 2, c: x}, list: [2]}\n")).unwrap();
        assert!(both.contains("b: 2\n        c: x\n    list:\n        - 1\n        - 2\n"), "{both}");
        let error = merged(&left, &kubelet("config: {a: [1]}\n")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`config.a` of `KubeletConfig` is of another type in the patch than in the configuration"
        );
    }

    #[test]
    fn an_expression_is_replaced_even_by_none() {
        let left = "apiVersion: v1alpha1\nkind: UnattendedInstallConfig\nprovisioning: {diskSelector: {match: a}, wipe: false}\n";
        let right = "apiVersion: v1alpha1\nkind: UnattendedInstallConfig\ninstaller: {image: x}\n";
        let expected = "apiVersion: v1alpha1\nkind: UnattendedInstallConfig\ninstaller:\n    image: x\nprovisioning:\n    wipe: false\n";
        assert_eq!(merged(left, right).unwrap(), expected);
    }
}
