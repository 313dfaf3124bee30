//! Values of a spec. A secret among them has a digest that may be stored and a text that may not.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use strata_secret::{DigestKey, KeyedDigest, SecretString};

use crate::{Address, FieldPath, KindRules};

/// The fields of an object, by name. Ordered by key, so that equal specs are equal as text.
pub type Spec = BTreeMap<String, Value>;

/// One value of a spec.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Json", into = "Json")]
pub enum Value {
    /// Yes or no.
    Bool(bool),
    /// A whole number; others are texts, so that no digit is lost.
    Int(i64),
    /// A text.
    Text(String),
    /// Values in order.
    List(Vec<Value>),
    /// Fields, or slots.
    Map(Spec),
    /// What must not be shown: its text, or a digest of it.
    Secret(Secret),
    /// An output of another resource, known once that one is applied.
    Input {
        // Boxed, like the digest of a secret: a value is small, and specs hold many.
        /// Whose it is.
        address: Box<Address>,
        /// What that object calls it.
        output: String,
    },
    /// What cannot be read back and was never recorded.
    Unknown,
}

/// A secret: what it is (while a run holds it) and the keyed digest by which a change is seen.
///
/// Serialised, only the digest is left.
#[derive(Clone)]
pub struct Secret {
    plain: Option<Arc<SecretString>>,
    digest: Option<Box<KeyedDigest>>,
}

impl Secret {
    /// Known in full: what is about to be sent.
    pub fn new(plain: SecretString) -> Self {
        Self { plain: Some(Arc::new(plain)), digest: None }
    }

    /// Known by its digest alone: what a state remembers.
    pub fn from_digest(digest: KeyedDigest) -> Self {
        Self { plain: None, digest: Some(Box::new(digest)) }
    }

    /// The text, where it is known.
    pub fn plain(&self) -> Option<&SecretString> {
        self.plain.as_deref()
    }

    /// The digest, where there is one.
    pub fn digest(&self) -> Option<&KeyedDigest> {
        self.digest.as_deref()
    }
}

/// Two secrets are equal if their digests are; one without a digest equals none, not even itself sealed later.
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.digest.is_some() && self.digest == other.digest
    }
}

impl Eq for Secret {}

/// A spec as it is stored: secrets are only their digests.
pub fn stored_spec(spec: &Spec) -> Spec {
    spec.iter().map(|(name, value)| (name.clone(), value.stored())).collect()
}

/// The fields of a live object, secret wherever those of a peer are. A field that no peer has stays as it is.
#[must_use]
pub fn secret_like(spec: Spec, peers: &[&Spec]) -> Spec {
    let like = |(name, value): (String, Value)| {
        let peers: Vec<&Value> = peers.iter().filter_map(|peer| peer.get(&name)).collect();
        let value = value.secret_like(&peers);
        (name, value)
    };
    spec.into_iter().map(like).collect()
}

/// What was applied, and of what was `begun` since then those fields that it did not have: ours, with values nobody knows. What
/// cannot be read back and was to change is not known either.
pub fn claimed_spec(rules: &KindRules, applied: &Spec, begun: &Spec) -> Spec {
    claimed_below(rules, &FieldPath::root(), applied, begun)
}

fn claimed_below(rules: &KindRules, path: &FieldPath, applied: &Spec, begun: &Spec) -> Spec {
    let mut claimed = applied.clone();
    for (name, value) in begun {
        let path = path.child(name);
        match (claimed.get_mut(name), value) {
            (None, value) => {
                claimed.insert(name.clone(), value.unknown());
            }
            (Some(applied), value) if rules.rule(&path).write_only => {
                if applied != value {
                    *applied = applied.unknown();
                }
            }
            (Some(Value::Map(applied)), Value::Map(begun)) => {
                *applied = claimed_below(rules, &path, applied, begun);
            }
            (Some(_), _) => {}
        }
    }
    for (name, value) in claimed.iter_mut().filter(|(name, _)| !begun.contains_key(*name)) {
        // It may have been taken away, and nothing shows that of what cannot be read back.
        let path = path.child(name);
        if rules.rule(&path).write_only {
            *value = value.unknown();
        } else if let Value::Map(applied) = value {
            *applied = claimed_below(rules, &path, applied, &Spec::new());
        }
    }
    claimed
}

/// A spec without the slots that are not `ours`; whatever is in no slot stays.
pub fn with_slots(rules: &KindRules, spec: &Spec, ours: &dyn Fn(&FieldPath) -> bool) -> Spec {
    fn below(rules: &KindRules, path: &FieldPath, spec: &Spec, ours: &dyn Fn(&FieldPath) -> bool) -> Spec {
        let mut kept = Spec::new();
        for (name, value) in spec {
            let path = path.child(name);
            let is_slot = rules.rule(&path).slot;
            if is_slot && !ours(&path) {
                continue;
            }
            let value = match value {
                Value::Map(map) if !is_slot => Value::Map(below(rules, &path, map, ours)),
                other => other.clone(),
            };
            kept.insert(name.clone(), value);
        }
        kept
    }
    below(rules, &FieldPath::root(), spec, ours)
}

impl Value {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if it is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(int) => Some(*int),
            _ => None,
        }
    }

    /// Yes or no, if it is that.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(bool) => Some(*bool),
            _ => None,
        }
    }

    /// The fields, if it has some.
    pub fn as_map(&self) -> Option<&Spec> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The values, if it is a list.
    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    /// The secret, if it is one.
    pub fn as_secret(&self) -> Option<&Secret> {
        match self {
            Self::Secret(secret) => Some(secret),
            _ => None,
        }
    }

    /// The value at a path below this one.
    pub fn at(&self, path: &FieldPath) -> Option<&Value> {
        path.keys().iter().try_fold(self, |value, key| value.as_map()?.get(key))
    }

    /// Gives every secret its digest. After this the value can be compared and stored.
    #[must_use]
    pub fn sealed(self, key: &DigestKey, address: &Address) -> Self {
        self.seal_at(key, &address.to_string(), &FieldPath::root())
    }

    fn seal_at(self, key: &DigestKey, address: &str, path: &FieldPath) -> Self {
        match self {
            Self::Secret(Secret { plain: Some(plain), .. }) => {
                let digest = key.digest(address, &path.to_string(), plain.expose().as_bytes());
                Self::Secret(Secret { plain: Some(plain), digest: Some(Box::new(digest)) })
            }
            Self::Map(map) => Self::Map(
                map.into_iter()
                    .map(|(name, value)| {
                        let value = value.seal_at(key, address, &path.child(&name));
                        (name, value)
                    })
                    .collect(),
            ),
            Self::List(list) => Self::List(
                list.into_iter()
                    .enumerate()
                    .map(|(index, value)| value.seal_at(key, address, &path.child(&index.to_string())))
                    .collect(),
            ),
            other => other,
        }
    }

    /// Puts the outputs of other resources where this value asks for them; an output that is not known yet stays an input.
    #[must_use]
    pub fn with_inputs(self, output: &dyn Fn(&Address, &str) -> Option<Value>) -> Self {
        match self {
            Self::Input { address, output: name } => {
                output(&address, &name).unwrap_or(Self::Input { address, output: name })
            }
            Self::Map(map) => {
                Self::Map(map.into_iter().map(|(name, value)| (name, value.with_inputs(output))).collect())
            }
            Self::List(list) => Self::List(list.into_iter().map(|value| value.with_inputs(output)).collect()),
            other => other,
        }
    }

    /// The same fields, with values that nobody knows.
    fn unknown(&self) -> Self {
        match self {
            Self::Map(map) => {
                Self::Map(map.iter().map(|(name, value)| (name.clone(), value.unknown())).collect())
            }
            _ => Self::Unknown,
        }
    }

    /// The first input that is not filled yet.
    pub fn unfilled(&self) -> Option<(&Address, &str)> {
        match self {
            Self::Input { address, output } => Some((address, output)),
            Self::Map(map) => map.values().find_map(Self::unfilled),
            Self::List(list) => list.iter().find_map(Self::unfilled),
            _ => None,
        }
    }

    /// The value as it is stored: secrets are only their digests.
    #[must_use]
    pub fn stored(&self) -> Self {
        match self {
            Self::Secret(secret) => {
                secret.digest().map_or(Self::Unknown, |digest| Self::Secret(Secret::from_digest(*digest)))
            }
            Self::Map(map) => Self::Map(stored_spec(map)),
            Self::List(list) => Self::List(list.iter().map(Self::stored).collect()),
            other => other.clone(),
        }
    }

    /// The whole value as one secret. What nobody knows stays that.
    #[must_use]
    pub fn into_secret(self) -> Self {
        match self {
            Self::Secret(_) | Self::Input { .. } | Self::Unknown => self,
            other => Self::Secret(Secret::new(other.clear_text())),
        }
    }

    /// The text that stands for the value where it is a secret.
    fn clear_text(&self) -> SecretString {
        SecretString::new(match self.in_the_clear() {
            Json::String(text) => text,
            json => json.to_string(),
        })
    }

    /// Whether two values say the same, though a remote gives one of them back in the clear.
    pub(crate) fn says(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Secret(one), Self::Secret(other)) => one == other,
            (Self::Secret(secret), clear) | (clear, Self::Secret(secret)) => {
                secret.plain().is_some_and(|plain| *plain == clear.clear_text())
            }
            (Self::List(one), Self::List(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.says(other))
            }
            (Self::Map(one), Self::Map(other)) => {
                one.len() == other.len()
                    && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| value.says(other)))
            }
            (one, other) => one == other,
        }
    }

    /// For the text of a secret alone: what is secret inside of it is written out.
    fn in_the_clear(&self) -> Json {
        match self {
            Self::Secret(secret) => match secret.plain() {
                Some(plain) => Json::String(plain.expose().to_owned()),
                None => Json::from(self.clone()),
            },
            Self::List(list) => Json::Array(list.iter().map(Self::in_the_clear).collect()),
            Self::Map(map) => {
                Json::Object(map.iter().map(|(key, value)| (key.clone(), value.in_the_clear())).collect())
            }
            other => Json::from(other.clone()),
        }
    }

    /// The same value, secret wherever one of its peers is: what is read back from a remote is as secret as what was sent there.
    #[must_use]
    pub fn secret_like(self, peers: &[&Value]) -> Self {
        if !peers.iter().any(|peer| peer.has_secret()) {
            return self;
        }
        let maps: Vec<&Spec> = peers.iter().filter_map(|peer| peer.as_map()).collect();
        let lists: Vec<&[Value]> = peers.iter().filter_map(|peer| peer.as_list()).collect();
        match self {
            _ if peers.iter().any(|peer| peer.as_secret().is_some()) => self.into_secret(),
            Self::Map(map) if !maps.is_empty() => Self::Map(secret_like(map, &maps)),
            Self::List(list) if !lists.is_empty() => {
                let items = list.into_iter().enumerate();
                Self::List(items.map(|(index, item)| item.item_like(index, &lists)).collect())
            }
            other => other.into_secret(),
        }
    }

    /// An item of a list with secrets in it: where they stand may have changed, so only what is known to be none is shown.
    fn item_like(self, index: usize, lists: &[&[Value]]) -> Self {
        if lists.iter().any(|list| list.iter().any(|peer| !peer.has_secret() && *peer == self)) {
            return self;
        }
        let peers: Vec<&Value> = lists.iter().filter_map(|list| list.get(index)).collect();
        match self {
            Self::Map(_) if peers.iter().any(|peer| peer.as_map().is_some()) => self.secret_like(&peers),
            other => other.into_secret(),
        }
    }

    /// Whether a secret is in it, however deep.
    pub fn has_secret(&self) -> bool {
        match self {
            Self::Secret(_) => true,
            Self::Map(map) => map.values().any(Self::has_secret),
            Self::List(list) => list.iter().any(Self::has_secret),
            _ => false,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Value {
    fn from(bool: bool) -> Self {
        Self::Bool(bool)
    }
}

impl From<i64> for Value {
    fn from(int: i64) -> Self {
        Self::Int(int)
    }
}

impl From<Spec> for Value {
    fn from(map: Spec) -> Self {
        Self::Map(map)
    }
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Through JSON, where a secret is only a digest.
        write!(f, "{}", Json::from(self.clone()))
    }
}

const SECRET: &str = "$secret";
const INPUT: &str = "$input";
const UNKNOWN: &str = "$unknown";

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        match value {
            Value::Bool(bool) => Self::Bool(bool),
            Value::Int(int) => Self::from(int),
            Value::Text(text) => Self::String(text),
            Value::List(list) => Self::Array(list.into_iter().map(Self::from).collect()),
            Value::Map(map) => {
                Self::Object(map.into_iter().map(|(key, value)| (key, Self::from(value))).collect())
            }
            Value::Secret(secret) => {
                let digest = secret.digest.map_or(Self::Null, |digest| Self::String(digest.to_string()));
                Self::Object([(SECRET.to_owned(), digest)].into_iter().collect())
            }
            Value::Input { address, output } => Self::Object(
                [(INPUT.to_owned(), Self::String(format!("{address}#{output}")))].into_iter().collect(),
            ),
            Value::Unknown => Self::Object([(UNKNOWN.to_owned(), Self::Bool(true))].into_iter().collect()),
        }
    }
}

impl TryFrom<Json> for Value {
    type Error = String;

    fn try_from(json: Json) -> Result<Self, Self::Error> {
        Ok(match json {
            Json::Bool(bool) => Self::Bool(bool),
            Json::Number(number) => Self::Int(
                number.as_i64().ok_or_else(|| format!("{number} is not a whole number of 64 bits"))?,
            ),
            Json::String(text) => Self::Text(text),
            Json::Array(list) => Self::List(list.into_iter().map(Self::try_from).collect::<Result<_, _>>()?),
            Json::Object(map) if map.len() == 1 && map.contains_key(SECRET) => match &map[SECRET] {
                Json::String(digest) => Self::Secret(Secret::from_digest(
                    digest.parse().map_err(|_| format!("`{digest}` is not a keyed digest"))?,
                )),
                _ => Self::Unknown,
            },
            Json::Object(map) if map.len() == 1 && map.contains_key(INPUT) => {
                let text = map[INPUT].as_str().unwrap_or_default();
                let (address, output) =
                    text.rsplit_once('#').ok_or_else(|| format!("`{text}` is not an input"))?;
                Self::Input {
                    address: Box::new(address.parse().map_err(|error| format!("{error}"))?),
                    output: output.to_owned(),
                }
            }
            Json::Object(map) if map.len() == 1 && map.contains_key(UNKNOWN) => Self::Unknown,
            Json::Object(map) => Self::Map(
                map.into_iter()
                    .map(|(key, value)| Ok((key, Self::try_from(value)?)))
                    .collect::<Result<_, String>>()?,
            ),
            Json::Null => return Err("a spec holds no null".to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    static INPUT_KIND: crate::KindTable = crate::KindTable::new("input-kind", "", &[]);

    fn address() -> Address {
        Address::new(None, "web", Kind::named("vm"), "web-1")
    }

    #[test]
    fn a_stored_secret_is_only_a_digest_and_still_compares() {
        let key = DigestKey::from_bytes(&[7; 32]).unwrap();
        let address = address();
        let spec = |password: &str| {
            Value::Map(
                [(
                    "password".to_owned(),
                    Value::Secret(Secret::new(SecretString::from(password.to_owned()))),
                )]
                .into(),
            )
            .sealed(&key, &address)
        };
        let stored = serde_json::to_string(&spec("hunter2")).unwrap();
        assert!(!stored.contains("hunter2"));
        let read: Value = serde_json::from_str(&stored).unwrap();
        assert_eq!(read, spec("hunter2"));
        assert_ne!(read, spec("hunter3"));
        assert!(!format!("{:?}", spec("hunter2")).contains("hunter2"));
    }

    #[test]
    fn what_is_read_back_is_as_secret_as_what_was_sent() {
        let key = DigestKey::from_bytes(&[7; 32]).unwrap();
        let address = address();
        let secret = |text: &str| Value::Secret(Secret::new(SecretString::from(text.to_owned())));
        let spec = |fields: Vec<(&str, Value)>| -> Spec {
            fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
        };
        let wanted = spec(vec![
            ("user", secret("root")),
            ("count", secret("3")),
            ("keys", Value::List(vec!["public".into(), secret("private")])),
            ("labels", secret(r#"{"a":"b"}"#)),
            ("name", "web".into()),
        ]);
        let live = spec(vec![
            ("user", "root".into()),
            ("count", Value::Int(3)),
            ("keys", Value::List(vec!["public".into(), "private".into(), "more".into()])),
            ("labels", Value::Map(spec(vec![("a", "b".into())]))),
            ("name", "other".into()),
        ]);
        let sealed = |spec: Spec| match Value::Map(spec).sealed(&key, &address) {
            Value::Map(spec) => spec,
            _ => unreachable!(),
        };
        let (wanted, seen) = (sealed(wanted.clone()), sealed(secret_like(live, &[&wanted])));
        for field in ["user", "count", "labels"] {
            assert_eq!(seen[field], wanted[field], "{field}");
        }
        let keys = seen["keys"].as_list().unwrap();
        assert_eq!(keys[..2], *wanted["keys"].as_list().unwrap());
        assert!(keys[2].as_secret().is_some(), "who knows what it is");
        assert_eq!(seen["name"], "other".into());
        let shown = format!("{:?}", Value::Map(seen));
        assert!(!["root", "private", "more"].iter().any(|text| shown.contains(text)), "{shown}");
    }

    #[test]
    fn inputs_are_filled_from_outputs() {
        crate::register_kinds(&[&INPUT_KIND]);
        let address = Address::new(None, "web", INPUT_KIND.kind(), "web-1");
        let value =
            Value::List(vec![Value::Input { address: Box::new(address.clone()), output: "ip".into() }]);
        let text = serde_json::to_string(&value).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert_eq!(value.clone().with_inputs(&|_, _| None), value);
        assert_eq!(value.unfilled(), Some((&address, "ip")));
        assert_eq!(
            value.with_inputs(&|_, _| Some("192.0.2.1".into())),
            Value::List(vec!["192.0.2.1".into()])
        );
    }
}
