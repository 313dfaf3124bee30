//! Field rules: what a change of each field of a kind means.

use std::collections::BTreeMap;

use crate::{FieldPath, Spec, Value};

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
    /// A plain number.
    None,
    /// Shown in the largest unit that divides it.
    Bytes,
    /// As Proxmox counts memory.
    Mebibytes,
}

impl Unit {
    /// With its unit, for people.
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

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    /// Yes or no.
    Bool,
    /// A whole number.
    Int,
    /// A text, or a number that must keep its digits.
    Text,
    /// Values in order, unless the rule says that it is a set.
    List,
    /// Named fields, or slots.
    Map,
    /// Whatever the remote takes there.
    Any,
}

impl FieldType {
    /// For the reference.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bool => "yes or no",
            Self::Int => "number",
            Self::Text => "text",
            Self::List => "list",
            Self::Map => "fields",
            Self::Any => "any",
        }
    }

    /// Whether a value can stand there. A secret and an output of another object stand for any value.
    pub fn takes(self, value: &Value) -> bool {
        match value {
            Value::Secret(_) | Value::Input { .. } | Value::Unknown => true,
            Value::Bool(_) => matches!(self, Self::Bool | Self::Any),
            Value::Int(_) => matches!(self, Self::Int | Self::Any),
            Value::Text(_) => matches!(self, Self::Text | Self::Any),
            Value::List(_) => matches!(self, Self::List | Self::Any),
            Value::Map(_) => matches!(self, Self::Map | Self::Any),
        }
    }
}

/// What the engine needs a field for, whatever the kind calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The ownership mark.
    Mark,
    /// The source says that what is there already is taken over.
    Adopt,
    /// Whether the object runs.
    Power,
    /// The remote's own flag against removal.
    Protection,
    /// What people call it: not worth a word where the address says the same.
    Name,
}

/// The rule for the fields that match `path`, whose keys may be `*`.
#[derive(Debug, Clone, Copy)]
pub struct FieldRule {
    /// Dotted, with `*` for any key.
    pub path: &'static str,
    /// What it takes.
    pub kind: FieldType,
    /// What a change of it asks for.
    pub effect: ChangeEffect,
    /// What it is, in a line.
    pub help: &'static str,
    /// What the engine needs it for.
    pub purpose: Option<Purpose>,
    /// Read by a guest only while it boots; with all that is below it.
    pub read_at_boot: bool,
    /// A change only concerns the remote and people. Of any other field a running object may feel a change, even if it needs no restart: its
    /// network is unplugged for a moment, its disk or the whole guest moves, a firewall closes. With all that is below it.
    pub unfelt: bool,
    /// A disk: when its slot goes the volume is kept.
    pub volume: bool,
    /// What the remote has where nothing is said: saying it is no change.
    pub default: Option<Literal>,
    /// How a number is shown.
    pub unit: Unit,
    /// The remote takes the value and never gives it back: compared with what was last applied.
    pub write_only: bool,
    /// The field is a slot (`disks.scsi0`): it comes and goes as a whole.
    pub slot: bool,
    /// A list whose order means nothing.
    pub set: bool,
    /// Why a change means replacement, for people.
    pub reason: &'static str,
    /// What the remote calls it, where it is one key there; otherwise empty.
    pub remote: &'static str,
    /// The remote's word is the opposite: `disable` for `enabled`.
    pub inverted: bool,
    /// Every change of the object must bring it along.
    pub always_sent: bool,
    /// Why OpenTofu's provider cannot say it; empty where `strata sync` renders it.
    pub no_tofu: &'static str,
}

/// A default value that can stand in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Literal {
    /// For a field of yes or no.
    Bool(bool),
    /// For a number.
    Int(i64),
    /// For a text; empty where the remote has an empty one.
    Text(&'static str),
}

impl Literal {
    /// Whether a value is this one.
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
    /// A field that is told by name, changes as `effect` says, and has no other property.
    pub const fn new(path: &'static str, kind: FieldType, effect: ChangeEffect, help: &'static str) -> Self {
        Self {
            path,
            kind,
            effect,
            help,
            purpose: None,
            read_at_boot: false,
            unfelt: false,
            volume: false,
            default: None,
            unit: Unit::None,
            write_only: false,
            slot: false,
            set: false,
            reason: "",
            remote: "",
            inverted: false,
            always_sent: false,
            no_tofu: "",
        }
    }

    /// What the remote calls it.
    #[must_use]
    pub const fn remote(mut self, key: &'static str) -> Self {
        self.remote = key;
        self
    }

    /// What the remote calls the opposite of it.
    #[must_use]
    pub const fn inverted(mut self, key: &'static str) -> Self {
        self.inverted = true;
        self.remote(key)
    }

    /// Goes along with every change of the object.
    #[must_use]
    pub const fn always_sent(mut self) -> Self {
        self.always_sent = true;
        self
    }

    /// Why `strata sync` does not render it; the sentence is shown to users.
    #[must_use]
    pub const fn no_tofu(mut self, reason: &'static str) -> Self {
        self.no_tofu = reason;
        self
    }

    /// Only the request that makes the object takes it.
    pub const fn is_fixed(&self) -> bool {
        matches!(self.effect, ChangeEffect::Replace | ChangeEffect::CreateOnly)
    }

    /// Off where nothing is said.
    #[must_use]
    pub const fn off_by_default(mut self) -> Self {
        self.default = Some(Literal::Bool(false));
        self
    }

    /// On where nothing is said.
    #[must_use]
    pub const fn on_by_default(mut self) -> Self {
        self.default = Some(Literal::Bool(true));
        self
    }

    /// This number where nothing is said.
    #[must_use]
    pub const fn default_int(mut self, int: i64) -> Self {
        self.default = Some(Literal::Int(int));
        self
    }

    /// This text where nothing is said.
    #[must_use]
    pub const fn default_text(mut self, text: &'static str) -> Self {
        self.default = Some(Literal::Text(text));
        self
    }

    /// Counted in bytes.
    #[must_use]
    pub const fn bytes(mut self) -> Self {
        self.unit = Unit::Bytes;
        self
    }

    /// Counted in MiB.
    #[must_use]
    pub const fn mebibytes(mut self) -> Self {
        self.unit = Unit::Mebibytes;
        self
    }

    /// Cannot be read back.
    #[must_use]
    pub const fn write_only(mut self) -> Self {
        self.write_only = true;
        self
    }

    /// Comes and goes as a whole.
    #[must_use]
    pub const fn slot(mut self) -> Self {
        self.slot = true;
        self
    }

    /// A list whose order means nothing.
    #[must_use]
    pub const fn set(mut self) -> Self {
        self.set = true;
        self
    }

    /// What the engine needs it for.
    #[must_use]
    pub const fn purpose(mut self, purpose: Purpose) -> Self {
        self.purpose = Some(purpose);
        self
    }

    /// Takes effect when the guest boots.
    #[must_use]
    pub const fn read_at_boot(mut self) -> Self {
        self.read_at_boot = true;
        self
    }

    /// No running object feels a change.
    #[must_use]
    pub const fn unfelt(mut self) -> Self {
        self.unfelt = true;
        self
    }

    /// A slot whose volume outlives it.
    #[must_use]
    pub const fn volume(mut self) -> Self {
        self.volume = true;
        self
    }

    /// Why a change of it replaces the object.
    #[must_use]
    pub const fn because(mut self, reason: &'static str) -> Self {
        self.reason = reason;
        self
    }
}

/// All rules of one kind, as a tree by key.
#[derive(Debug)]
pub struct KindRules {
    root: RuleNode,
}

#[derive(Debug, Default)]
struct RuleNode {
    rule: Option<FieldRule>,
    /// The same for all that is below it, where the remote takes whatever there is.
    below: Option<FieldRule>,
    named: BTreeMap<&'static str, RuleNode>,
    any: Option<Box<RuleNode>>,
}

/// Stands for the rule of a field that the kind does not have: nothing can be said of a change, so only a new object has it. Tests and
/// [`KindRules::unknown_in`] see to it that no spec comes this far with such a field.
const NOT_A_FIELD: FieldRule =
    FieldRule::new("", FieldType::Any, ChangeEffect::Replace, "").because("the kind has no such field");

impl KindRules {
    pub(crate) const fn none() -> Self {
        Self { root: RuleNode { rule: None, below: None, named: BTreeMap::new(), any: None } }
    }

    pub(crate) fn new(rules: impl IntoIterator<Item = &'static FieldRule>) -> Self {
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
            node.rule = Some(*rule);
            if rule.kind == FieldType::Any {
                node.below = Some(FieldRule { slot: false, ..*rule });
            }
        }
        Self { root }
    }

    /// Whether a rule says what a change of the field means.
    pub fn knows(&self, path: &FieldPath) -> bool {
        self.root.find(path.keys()).is_some()
    }

    /// The rule of a field. A rule that names a key goes before one that takes any.
    pub fn rule(&self, path: &FieldPath) -> &FieldRule {
        self.root.find(path.keys()).unwrap_or(&NOT_A_FIELD)
    }

    /// Whether a rule on the way to a field says something of all that is below it.
    pub fn is_below(&self, path: &FieldPath, says: impl Fn(&FieldRule) -> bool) -> bool {
        let keys = path.keys();
        (1..=keys.len()).any(|length| self.root.find(&keys[..length]).is_some_and(&says))
    }

    /// Whether a running object may feel a change of a field.
    pub fn is_felt(&self, path: &FieldPath) -> bool {
        !self.is_below(path, |rule| rule.unfelt)
    }

    /// What a spec says that the kind has no field for, or that cannot stand there; for people.
    pub fn unknown_in(&self, spec: &Spec) -> Vec<String> {
        let mut found = Vec::new();
        self.walk(&mut Vec::new(), spec, &mut found);
        found
    }

    fn walk<'s>(&self, path: &mut Vec<&'s str>, spec: &'s Spec, found: &mut Vec<String>) {
        for (key, value) in spec {
            path.push(key);
            match (self.root.find(path), value) {
                (Some(rule), _) if !rule.kind.takes(value) => {
                    found.push(format!("`{}` takes {}", path.join("."), rule.kind.as_str()));
                }
                (_, Value::Map(below)) if self.root.has_below(path) => self.walk(path, below, found),
                (Some(_), _) => {}
                (None, _) => found.push(format!("there is no field `{}`", path.join("."))),
            }
            path.pop();
        }
    }
}

impl RuleNode {
    fn find<K: AsRef<str>>(&self, keys: &[K]) -> Option<&FieldRule> {
        let Some((key, rest)) = keys.split_first() else { return self.rule.as_ref() };
        let named = self.named.get(key.as_ref()).and_then(|node| node.find(rest));
        named.or_else(|| self.any.as_ref().and_then(|node| node.find(rest))).or(self.below.as_ref())
    }

    /// Whether fields are declared below one.
    fn has_below<K: AsRef<str>>(&self, keys: &[K]) -> bool {
        let Some((key, rest)) = keys.split_first() else {
            return !self.named.is_empty() || self.any.is_some();
        };
        self.named.get(key.as_ref()).is_some_and(|node| node.has_below(rest))
            || self.any.as_ref().is_some_and(|node| node.has_below(rest))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{KindTable, fields, register_kinds};

    static TABLE: KindTable = KindTable::new(
        "ruled",
        "",
        fields! {
            /// .
            "size": Int => Grow [bytes];
            /// .
            "nets.*": Map => InPlace [slot];
            /// .
            "nets.*.vlan": Int => InPlace;
            /// .
            "startup": Map => InPlace [unfelt];
            /// .
            "startup.*": Int => InPlace;
            /// .
            "config.*": Any => InPlace [slot];
        },
    );

    fn rules() -> &'static KindRules {
        register_kinds(&[&TABLE]);
        TABLE.kind().rules()
    }

    #[test]
    fn a15_a_field_that_a_kind_does_not_have_is_found_and_never_changed_in_place() {
        let spec: Spec = serde_json::from_value(json!({
            "size": "large", "sizes": 1, "nets": {"a": {"vlan": 3, "mtu": 4}}, "startup": {"order": 1},
            "config": {"doc": {"deep": {"er": [1]}}},
        }))
        .unwrap();
        assert_eq!(
            rules().unknown_in(&spec),
            ["there is no field `nets.a.mtu`", "`size` takes number", "there is no field `sizes`"]
        );
        assert_eq!(rules().rule(&FieldPath::dotted("sizes")).effect, ChangeEffect::Replace);
    }

    #[test]
    fn whatever_a_remote_takes_has_the_rule_of_what_it_is_part_of() {
        let deep = rules().rule(&FieldPath::dotted("config.doc.deep.er"));
        assert_eq!((deep.effect, deep.slot), (ChangeEffect::InPlace, false));
        assert!(rules().rule(&FieldPath::dotted("config.doc")).slot);
        assert!(
            !rules().is_felt(&FieldPath::dotted("startup.order"))
                && rules().is_felt(&FieldPath::dotted("size"))
        );
    }
}
