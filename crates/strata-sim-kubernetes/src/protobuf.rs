//! Objects in Kubernetes' own protobuf, as far as clients send them that write no manifest: `kubectl create`, `kubectl auth`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost::Message;
use serde_json::{Map, Value, json};

/// Every object begins with this.
const MAGIC: &[u8] = b"k8s\0";

/// What an object is wrapped in.
#[derive(Clone, PartialEq, Message)]
struct Unknown {
    #[prost(message, optional, tag = "1")]
    kind: Option<TypeMeta>,
    #[prost(bytes = "vec", tag = "2")]
    raw: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct TypeMeta {
    #[prost(string, tag = "1")]
    api_version: String,
    #[prost(string, tag = "2")]
    kind: String,
}

/// What a field holds.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Texts,
    Number,
    Flag,
    /// Texts by names.
    Map,
    /// Bytes by names.
    Data,
    One(Fields),
    Many(Fields),
}

type Fields = &'static [(u32, &'static str, Form)];

const META: Fields = &[
    (1, "name", Form::Text),
    (2, "generateName", Form::Text),
    (3, "namespace", Form::Text),
    (5, "uid", Form::Text),
    (6, "resourceVersion", Form::Text),
    (11, "labels", Form::Map),
    (12, "annotations", Form::Map),
];
const CONTAINER: Fields = &[
    (1, "name", Form::Text),
    (2, "image", Form::Text),
    (3, "command", Form::Texts),
    (4, "args", Form::Texts),
    (14, "imagePullPolicy", Form::Text),
    (16, "stdin", Form::Flag),
    (18, "tty", Form::Flag),
];
const POD_SPEC: Fields = &[
    (2, "containers", Form::Many(CONTAINER)),
    (3, "restartPolicy", Form::Text),
    (8, "serviceAccountName", Form::Text),
    (10, "nodeName", Form::Text),
    (11, "hostNetwork", Form::Flag),
    (12, "hostPID", Form::Flag),
];
const TEMPLATE: Fields = &[(1, "metadata", Form::One(META)), (2, "spec", Form::One(POD_SPEC))];
const SELECTOR: Fields = &[(1, "matchLabels", Form::Map)];

/// Kinds that can be read, with their fields.
const KINDS: &[(&str, Fields)] = &[
    ("Namespace", &[(1, "metadata", Form::One(META))]),
    ("ServiceAccount", &[(1, "metadata", Form::One(META))]),
    (
        "ConfigMap",
        &[
            (1, "metadata", Form::One(META)),
            (2, "data", Form::Map),
            (3, "binaryData", Form::Data),
            (4, "immutable", Form::Flag),
        ],
    ),
    (
        "Secret",
        &[
            (1, "metadata", Form::One(META)),
            (2, "data", Form::Data),
            (3, "type", Form::Text),
            (4, "stringData", Form::Map),
            (5, "immutable", Form::Flag),
        ],
    ),
    ("Pod", TEMPLATE),
    (
        "Deployment",
        &[
            (1, "metadata", Form::One(META)),
            (
                2,
                "spec",
                Form::One(&[
                    (1, "replicas", Form::Number),
                    (2, "selector", Form::One(SELECTOR)),
                    (3, "template", Form::One(TEMPLATE)),
                ]),
            ),
        ],
    ),
    (
        "Job",
        &[
            (1, "metadata", Form::One(META)),
            (
                2,
                "spec",
                Form::One(&[
                    (1, "parallelism", Form::Number),
                    (2, "completions", Form::Number),
                    (6, "template", Form::One(TEMPLATE)),
                ]),
            ),
        ],
    ),
    (
        "SelfSubjectAccessReview",
        &[
            (1, "metadata", Form::One(META)),
            (
                2,
                "spec",
                Form::One(&[
                    (
                        1,
                        "resourceAttributes",
                        Form::One(&[
                            (1, "namespace", Form::Text),
                            (2, "verb", Form::Text),
                            (3, "group", Form::Text),
                            (4, "version", Form::Text),
                            (5, "resource", Form::Text),
                            (6, "subresource", Form::Text),
                            (7, "name", Form::Text),
                        ]),
                    ),
                    (
                        2,
                        "nonResourceAttributes",
                        Form::One(&[(1, "path", Form::Text), (2, "verb", Form::Text)]),
                    ),
                ]),
            ),
        ],
    ),
    ("SelfSubjectReview", &[(1, "metadata", Form::One(META))]),
    (
        "DeleteOptions",
        &[
            (1, "gracePeriodSeconds", Form::Number),
            (3, "orphanDependents", Form::Flag),
            (4, "propagationPolicy", Form::Text),
            (5, "dryRun", Form::Texts),
        ],
    ),
    (
        "Eviction",
        &[
            (1, "metadata", Form::One(META)),
            (
                2,
                "deleteOptions",
                Form::One(&[(1, "gracePeriodSeconds", Form::Number), (5, "dryRun", Form::Texts)]),
            ),
        ],
    ),
];

/// The object in a body; nothing if it is none, or of a kind that is not in the table.
pub fn read(body: &[u8]) -> Option<Value> {
    let unknown = Unknown::decode(body.strip_prefix(MAGIC)?).ok()?;
    let kind = unknown.kind?;
    let (_, fields) = KINDS.iter().find(|(name, _)| *name == kind.kind)?;
    let mut object = Map::from_iter([
        ("apiVersion".to_owned(), json!(kind.api_version)),
        ("kind".to_owned(), json!(kind.kind)),
    ]);
    object.extend(message(&unknown.raw, fields)?);
    Some(Value::Object(object))
}

/// One field on the wire.
enum Wire<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

fn next<'b>(bytes: &mut &'b [u8]) -> Option<(u32, Wire<'b>)> {
    let tag = prost::encoding::decode_varint(bytes).ok()?;
    let wire = match tag & 7 {
        0 => Wire::Number(prost::encoding::decode_varint(bytes).ok()?),
        1 => Wire::Bytes(bytes.split_off(..8)?),
        2 => {
            let length = usize::try_from(prost::encoding::decode_varint(bytes).ok()?).ok()?;
            Wire::Bytes(bytes.split_off(..length)?)
        }
        5 => Wire::Bytes(bytes.split_off(..4)?),
        _ => return None,
    };
    Some((u32::try_from(tag >> 3).ok()?, wire))
}

fn message(mut bytes: &[u8], fields: Fields) -> Option<Map<String, Value>> {
    let mut found = Map::new();
    while !bytes.is_empty() {
        let (number, wire) = next(&mut bytes)?;
        let Some((_, name, form)) = fields.iter().find(|(own, ..)| *own == number) else { continue };
        let name = (*name).to_owned();
        match (form, wire) {
            // What is empty was left out by whoever wrote it.
            (Form::Text, Wire::Bytes(text)) if !text.is_empty() => {
                found.insert(name, json!(std::str::from_utf8(text).ok()?));
            }
            (Form::Texts, Wire::Bytes(text)) => {
                let list = found.entry(name).or_insert(json!([]));
                list.as_array_mut()?.push(json!(std::str::from_utf8(text).ok()?));
            }
            (Form::Number, Wire::Number(number)) => {
                found.insert(name, json!(number as i64));
            }
            (Form::Flag, Wire::Number(number)) if number != 0 => {
                found.insert(name, json!(true));
            }
            (Form::Map, Wire::Bytes(entry)) => {
                let (key, value) = pair(entry)?;
                let map = found.entry(name).or_insert(json!({}));
                map.as_object_mut()?.insert(key, json!(std::str::from_utf8(value).ok()?));
            }
            (Form::Data, Wire::Bytes(entry)) => {
                let (key, value) = pair(entry)?;
                let map = found.entry(name).or_insert(json!({}));
                map.as_object_mut()?.insert(key, json!(STANDARD.encode(value)));
            }
            (Form::One(fields), Wire::Bytes(inner)) => {
                found.insert(name, Value::Object(message(inner, fields)?));
            }
            (Form::Many(fields), Wire::Bytes(inner)) => {
                let list = found.entry(name).or_insert(json!([]));
                list.as_array_mut()?.push(Value::Object(message(inner, fields)?));
            }
            _ => {}
        }
    }
    Some(found)
}

/// The key and the value of an entry of a map.
fn pair(mut entry: &[u8]) -> Option<(String, &[u8])> {
    let (mut key, mut value) = (String::new(), &b""[..]);
    while !entry.is_empty() {
        match next(&mut entry)? {
            (1, Wire::Bytes(text)) => key = std::str::from_utf8(text).ok()?.to_owned(),
            (2, Wire::Bytes(bytes)) => value = bytes,
            _ => {}
        }
    }
    Some((key, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, content.len() as u8], content].concat()
    }

    #[test]
    fn a_secret_is_read() {
        let meta = [field(1, b"s1"), field(3, b"foo"), field(11, &[field(1, b"a"), field(2, b"b")].concat())]
            .concat();
        let raw = [
            field(1, &meta),
            field(2, &[field(1, b"k"), field(2, b"\x00\xff")].concat()),
            field(3, b"Opaque"),
        ]
        .concat();
        let kind = [field(1, b"v1"), field(2, b"Secret")].concat();
        let body = [MAGIC.to_vec(), field(1, &kind), field(2, &raw)].concat();
        let expected = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s1", "namespace": "foo", "labels": {"a": "b"}},
            "data": {"k": "AP8="}, "type": "Opaque",
        });
        assert_eq!(read(&body), Some(expected));
        // Cut short anywhere, it is nothing, or less; it is never more.
        for end in 0..body.len() {
            let _ = read(&body[..end]);
        }
        assert_eq!(read(b"{}"), None);
    }
}
