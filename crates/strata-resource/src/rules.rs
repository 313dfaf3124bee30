//! Field rules: what a change of each field of a kind means.

use std::collections::BTreeMap;

use crate::{FieldPath, Value};

/// What a change of a field asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeEffect {
    /// Sent to the live object, effective at once.
    InPlace,
    /// Sent to the live object, effective for a running guest after a restart.
    Restart,
    /// Only a new object can have the new value.
    Replace,
    /// Used when the object is made; a later change means nothing to the live object.
    CreateOnly,
    /// A number that may only grow.
    Grow,
    /// The guest moves to another hypervisor.
    Migrate,
    /// Made up by the remote, never compared.
    Computed,
}

/// How a number is shown to people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    None,
    Bytes,
    Mebibytes,
}

impl Unit {
    pub fn show(self, number: i64) -> String {
        const STEPS: [(&str, i64); 4] =
            [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        match self {
            Self::None => number.to_string(),
            Self::Mebibytes => format!("{number} MiB"),
            Self::Bytes => STEPS
                .iter()
                .find(|(_, step)| number != 0 && number % step == 0)
                .map_or_else(|| format!("{number} B"), |(unit, step)| format!("{} {unit}", number / step)),
        }
    }
}

/// The rule for the fields that match `path`, whose keys may be `*`.
#[derive(Debug, Clone, Copy)]
pub struct FieldRule {
    pub path: &'static str,
    pub effect: ChangeEffect,
    pub default: Option<Literal>,
    pub unit: Unit,
    /// The remote takes the value and never gives it back: compared with what was last applied.
    pub write_only: bool,
    /// The field is a slot (`disks.scsi0`): it comes and goes as a whole.
    pub slot: bool,
    /// A list whose order means nothing.
    pub set: bool,
    /// The field holds a document of somebody else's: whatever is in it changes in place.
    pub document: bool,
    /// Why a change means replacement, for people.
    pub reason: &'static str,
}

/// A default value that can stand in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Literal {
    Bool(bool),
    Int(i64),
    Text(&'static str),
}

impl Literal {
    pub fn equals(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Bool(own), Value::Bool(other)) => own == *other,
            (Self::Int(own), Value::Int(other)) => own == *other,
            (Self::Text(own), Value::Text(other)) => own == other,
            _ => false,
        }
    }
}

impl FieldRule {
    pub(crate) const fn new(path: &'static str, effect: ChangeEffect) -> Self {
        Self {
            path,
            effect,
            default: None,
            unit: Unit::None,
            write_only: false,
            slot: false,
            set: false,
            document: false,
            reason: "",
        }
    }

    pub(crate) const fn off_by_default(mut self) -> Self {
        self.default = Some(Literal::Bool(false));
        self
    }

    pub(crate) const fn on_by_default(mut self) -> Self {
        self.default = Some(Literal::Bool(true));
        self
    }

    pub(crate) const fn default_int(mut self, int: i64) -> Self {
        self.default = Some(Literal::Int(int));
        self
    }

    pub(crate) const fn default_text(mut self, text: &'static str) -> Self {
        self.default = Some(Literal::Text(text));
        self
    }

    pub(crate) const fn bytes(mut self) -> Self {
        self.unit = Unit::Bytes;
        self
    }

    pub(crate) const fn mebibytes(mut self) -> Self {
        self.unit = Unit::Mebibytes;
        self
    }

    pub(crate) const fn write_only(mut self) -> Self {
        self.write_only = true;
        self
    }

    pub(crate) const fn slot(mut self) -> Self {
        self.slot = true;
        self
    }

    pub(crate) const fn set(mut self) -> Self {
        self.set = true;
        self
    }

    pub(crate) const fn document(mut self) -> Self {
        self.document = true;
        self
    }

    pub(crate) const fn because(mut self, reason: &'static str) -> Self {
        self.reason = reason;
        self
    }
}

/// All rules of one kind, as a tree by key. A change of a field without a rule is refused: nobody knows what it means.
#[derive(Debug)]
pub struct KindRules {
    root: RuleNode,
}

#[derive(Debug, Default)]
struct RuleNode {
    rule: Option<FieldRule>,
    named: BTreeMap<&'static str, RuleNode>,
    any: Option<Box<RuleNode>>,
}

const IN_PLACE: FieldRule = FieldRule::new("", ChangeEffect::InPlace);

impl KindRules {
    pub(crate) fn new(rules: Vec<FieldRule>) -> Self {
        let mut root = RuleNode::default();
        for rule in rules {
            let mut node = &mut root;
            for key in rule.path.split('.') {
                node = if key == "*" {
                    node.any.get_or_insert_with(Box::default)
                } else {
                    node.named.entry(key).or_default()
                };
            }
            debug_assert!(node.rule.is_none(), "two rules for `{}`", rule.path);
            node.rule = Some(rule);
        }
        Self { root }
    }

    /// Whether a rule says what a change of the field means: its own, or that of the document it is in.
    pub fn knows(&self, path: &FieldPath) -> bool {
        let keys = path.keys();
        self.root.find(keys).is_some()
            || (1..keys.len()).any(|end| self.root.find(&keys[..end]).is_some_and(|rule| rule.document))
    }

    /// The rule of a field. A rule that names a key goes before one that takes any. What is above fields has none, nor has what is in
    /// a document; a change of a field that has none is refused where it is found.
    pub fn rule(&self, path: &FieldPath) -> &FieldRule {
        self.root.find(path.keys()).unwrap_or(&IN_PLACE)
    }
}

impl RuleNode {
    fn find(&self, keys: &[String]) -> Option<&FieldRule> {
        let Some((key, rest)) = keys.split_first() else { return self.rule.as_ref() };
        let named = self.named.get(key.as_str()).and_then(|node| node.find(rest));
        named.or_else(|| self.any.as_ref().and_then(|node| node.find(rest)))
    }
}
