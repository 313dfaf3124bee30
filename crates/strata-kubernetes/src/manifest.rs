//! Manifests: YAML with many documents becomes objects, read as `kubectl` reads it.
//!
//! That is YAML 1.1 where the two versions differ: `defaultMode: 0644` is octal and an unquoted `yes` is true.

mod scalar;
mod tree;

use serde_json::Value;
use strata_yaml::build::Error as YamlError;

use crate::{NotAnObject, Object};

/// Why a manifest cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    #[error("the manifest is not text in UTF-8")]
    NotText,
    #[error(transparent)]
    Yaml(#[from] YamlError),
    #[error("document {document}, line {line}: {problem}")]
    Object { document: usize, line: usize, problem: NotAnObject },
}

/// The objects of a manifest in their order; lists of objects are taken apart, empty documents left out.
pub fn read_manifest(bytes: &[u8]) -> Result<Vec<Object>, ManifestError> {
    let text = std::str::from_utf8(bytes).map_err(|_| ManifestError::NotText)?;
    let mut objects = Vec::new();
    for (index, (line, document)) in tree::read(text)?.into_iter().enumerate() {
        let wrong = |problem| ManifestError::Object { document: index + 1, line, problem };
        for value in members(document) {
            let mut object = Object::new(value).map_err(wrong)?;
            forget_what_the_server_writes(object.value_mut());
            objects.push(object);
        }
    }
    Ok(objects)
}

/// The values of one document.
pub(crate) fn read_values(text: &str) -> Result<Vec<Value>, ManifestError> {
    Ok(tree::read(text)?.into_iter().map(|(_, value)| value).collect())
}

fn members(document: Value) -> Vec<Value> {
    match document {
        Value::Object(mut map) if map.get("kind").and_then(Value::as_str).is_some_and(is_list) => {
            match map.remove("items") {
                Some(Value::Array(items)) => items,
                // A kind of somebody's own whose name ends that way.
                Some(other) => {
                    map.insert("items".to_owned(), other);
                    vec![Value::Object(map)]
                }
                None => vec![Value::Object(map)],
            }
        }
        document => vec![document],
    }
}

fn is_list(kind: &str) -> bool {
    kind.ends_with("List")
}

/// Generators leave empty rests of these in manifests. Applying them would claim fields that are the server's.
fn forget_what_the_server_writes(value: &mut Value) {
    let Some(map) = value.as_object_mut() else { return };
    map.shift_remove("status");
    if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in ["creationTimestamp", "managedFields", "resourceVersion", "uid", "generation", "selfLink"]
        {
            metadata.shift_remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn one(text: &str) -> Value {
        let mut values = read_values(text).unwrap();
        assert_eq!(values.len(), 1, "{values:?}");
        values.remove(0)
    }

    #[test]
    fn reads_scalars_as_kubernetes_does() {
        let text = "
octal: 0644
new: 0o17
hex: 0x1F
big: 18446744073709551615
under: 1_000
yes: yes
off: Off
quoted: \"0644\"
single: 'it''s'
time: 12:30:45
date: 2026-01-02
version: 1.10.0
float: 1.10
exponent: 1e3
none: ~
empty:
word: nope
tilde: \"~\"
string: !!str 12
";
        assert_eq!(
            one(text),
            json!({
                "octal": 420, "new": 15, "hex": 31, "big": 18_446_744_073_709_551_615_u64, "under": 1000, "true": true,
                "false": false, "quoted": "0644", "single": "it's", "time": "12:30:45", "date": "2026-01-02",
                "version": "1.10.0", "float": 1.1, "exponent": 1000.0, "none": null, "empty": null, "word": "nope",
                "tilde": "~", "string": "12",
            })
        );
    }

    #[test]
    fn keeps_block_scalars_to_the_letter() {
        let text = "
a: |
  one
    two

  three
b: >-
  folded
  text

  new
c: |+
  kept

d: \"tab\\tand \\u00fc and \\
  joined\"
e: |2
    two in
  none
";
        assert_eq!(
            one(text),
            json!({
                "a": "one\n  two\n\nthree\n", "b": "folded text\nnew", "c": "kept\n\n", "d": "tab\tand ü and joined",
                "e": "  two in\nnone\n",
            })
        );
    }

    #[test]
    fn writes_out_anchors_and_merge_keys() {
        let text = "
base: &base {a: 1, b: [p, q]}
also: &also {b: 3, c: 4}
use:
  <<: [*base, *also]
  a: 9
list: [*base, {d: *also}]
";
        let value = one(text);
        assert_eq!(value["use"], json!({"a": 9, "b": ["p", "q"], "c": 4}));
        assert_eq!(value["list"], json!([{"a": 1, "b": ["p", "q"]}, {"d": {"b": 3, "c": 4}}]));
    }

    #[test]
    fn takes_documents_and_lists_apart() {
        let text = "# head\n---\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a, creationTimestamp: null}\nstatus: {}\n...\n---\n# nothing\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n";
        let objects = read_manifest(text.as_bytes()).unwrap();
        let names: Vec<_> = objects.iter().map(Object::name).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(
            objects[0].value(),
            &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})
        );
    }

    #[test]
    fn says_where_it_is_wrong() {
        for (text, message) in [
            ("a: 1\na: 2\n", "line 2: the key `a` is there twice"),
            ("a: !!binary aGk=\n", "line 1: the tag `!!binary` has no meaning here"),
            ("a: *x\n", "line 1: "),
            ("a: [1\n", "line "),
            ("---\nkind: A\n", "document 1, line 2: not a Kubernetes object: it has no `apiVersion`"),
            ("hello\n", "document 1, line 1: not a Kubernetes object: it is not a mapping"),
            ("? [a]\n: b\n", "line 1: a key must be text"),
            ("<html>\n<a href=\"x\">not found</a>", "document 1, line 1: "),
        ] {
            let error = read_manifest(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(message), "{text:?}: {error}");
        }
        assert_eq!(read_manifest(b"\xff"), Err(ManifestError::NotText));
    }

    #[test]
    fn hostile_files_end() {
        let nested: String = (0..200).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
        assert!(matches!(
            read_manifest(nested.as_bytes()),
            Err(ManifestError::Yaml(YamlError::TooDeep { .. }))
        ));
        let brackets = format!("a: {}", "[".repeat(50_000));
        assert!(read_manifest(brackets.as_bytes()).is_err());
        let mut laughs = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for n in 1..9 {
            let before = format!("*a{}", n - 1);
            let ten = [before.as_str(); 10].join(", ");
            laughs.push_str(&format!("a{n}: &a{n} [{ten}]\n"));
        }
        assert!(matches!(
            read_manifest(laughs.as_bytes()),
            Err(ManifestError::Yaml(YamlError::TooManyValues { .. }))
        ));
    }
}
