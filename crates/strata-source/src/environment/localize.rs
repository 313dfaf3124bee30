//! A stack's tree as it stands in one environment: names filled in, numbers and addresses moved, tags added.
//!
//! The tree is walked by its shape, so that what a value is decides what happens to it, wherever it is written. What stands in the
//! environment's own file is meant for it, and is not moved.

use strata_diagnostics::{Diagnostic, Diagnostics, FileId, Span};
use strata_yaml::{Entry, Kind, Node, RecordSpec, Rules, Scalar, Shape, Spanned, TextRule};

use crate::cluster;
use crate::environment::naming::{EnvName, fill};
use crate::environment::offsets::Movement;
use crate::repository::StackKind;
use crate::value::place::{ADDRESS, BRIDGE, VLAN, VM_ID};

/// One environment, to those who read a tree in it.
pub(crate) struct Localizer<'a, 'd> {
    pub(crate) name: EnvName<'a>,
    pub(crate) movement: Option<&'a mut Movement<'d>>,
    /// The environment's own file.
    pub(crate) file: Option<FileId>,
    pub(crate) diagnostics: &'a mut Diagnostics,
}

impl Localizer<'_, '_> {
    /// Walks a tree that is read as `shape`.
    pub(crate) fn walk(&mut self, node: &mut Node, shape: &Shape) {
        self.node(node, shape, &Rules::default());
    }

    fn node(&mut self, node: &mut Node, shape: &Shape, rules: &Rules) {
        match shape {
            Shape::Record(spec) => self.record(node, spec()),
            Shape::Partial(shape) | Shape::Reference(shape) => self.node(node, shape, rules),
            Shape::AnyOf(shapes) => {
                // One of them only: what is moved twice is moved too far.
                let fitting = shapes.iter().filter_map(|shape| Some((strangeness(node, shape)?, shape)));
                if let Some((_, shape)) = fitting.min_by_key(|(strange, _)| *strange) {
                    self.node(node, shape, rules);
                }
            }
            Shape::List(item) => {
                if let Kind::List(items) = &mut node.kind {
                    items.iter_mut().for_each(|node| self.node(node, item, rules));
                }
            }
            Shape::Map(_, value) => {
                if let Kind::Mapping(mapping) = &mut node.kind {
                    for entry in &mut mapping.entries {
                        if let Some(others) = rules.env
                            && let Some(filled) = self.filled(&entry.key, entry.key.span, others)
                        {
                            entry.key.value = self.fitting(&entry.key, filled, entry.key.span, rules.keys);
                        }
                        self.node(&mut entry.value, value, rules);
                    }
                }
            }
            Shape::Any | Shape::AnyMapping => {}
            Shape::Bool
            | Shape::Integer(..)
            | Shape::Number
            | Shape::Text(_)
            | Shape::Choice(_)
            | Shape::Scalar => self.leaf(node, rules),
        }
    }

    fn record(&mut self, node: &mut Node, spec: &'static RecordSpec) {
        let Kind::Mapping(mapping) = &mut node.kind else {
            if let Some(field) = spec.shorthand.and_then(|key| spec.field(key)) {
                self.node(node, &field.shape, &field.rules);
            }
            return;
        };
        for entry in &mut mapping.entries {
            if let Some(field) = spec.field_or_alias(&entry.key) {
                self.node(&mut entry.value, &field.shape, &field.rules);
            }
        }
    }

    fn leaf(&mut self, node: &mut Node, rules: &Rules) {
        let span = node.span;
        if let Some(others) = rules.env {
            if is_bare_placeholder(node) {
                let problem = Diagnostic::error("wrong-type", "`{env}` without quotes is a mapping");
                self.diagnostics.push(problem.at(span).hint("write `\"{env}\"`"));
                *node = Node::text("env", span);
            }
            if let Kind::Scalar(scalar) = &mut node.kind
                && let Some(filled) = self.filled(&scalar.text, span, others)
            {
                // `{env}-1` was text, and what it becomes is, whatever it looks like.
                *scalar = Scalar::quoted(self.fitting(&scalar.text, filled, span, rules.text));
            }
        }
        if let (Some(label), Kind::Scalar(scalar)) = (rules.label, &mut node.kind)
            && self.file != Some(span.file)
            && let Some(moved) = self.moved(label, &scalar.text, span)
        {
            scalar.text = moved;
        }
    }

    fn filled(&mut self, text: &str, span: Span, others: &[&str]) -> Option<String> {
        match fill(text, span, self.name, others) {
            Ok(filled) => filled,
            Err(problem) => {
                self.diagnostics.push(*problem);
                Some(without_braces(text))
            }
        }
    }

    /// What a name became, if it is one; else a mistake that says what it became, and something to go on with.
    fn fitting(&mut self, text: &str, filled: String, span: Span, rule: Option<TextRule>) -> String {
        match (rule, self.name) {
            (Some(rule), EnvName::Named(name)) if !(rule.accepts)(&filled) && text.contains("{env}") => {
                let message = format!("`{filled}` is not {}", rule.shape.what);
                let problem = Diagnostic::error("invalid-value", message).at(span);
                self.diagnostics.push(problem.note(format!("`{{env}}` is `{name}` here")));
                without_braces(text)
            }
            _ => filled,
        }
    }

    fn moved(&mut self, label: &str, text: &str, span: Span) -> Option<String> {
        let movement = self.movement.as_mut()?;
        let (moved, at) = match label {
            VM_ID => (movement.vm_id(text)?, movement.vm_id_span()),
            ADDRESS => (movement.address(text)?, None),
            VLAN => (Ok(movement.vlan(text)?), None),
            BRIDGE => (Ok(movement.bridge(text)?), None),
            _ => return None,
        };
        match moved {
            Ok(moved) => Some(moved),
            Err(problem) => {
                let problem = Diagnostic::error("out-of-range", problem).at(span);
                self.diagnostics.push(match at {
                    Some(at) => problem.also(at, "moved by this"),
                    None => problem,
                });
                None
            }
        }
    }
}

fn without_braces(text: &str) -> String {
    text.replace(['{', '}'], "")
}

/// How many keys of a node a shape does not know; `None` where it cannot be what stands here.
fn strangeness(node: &Node, shape: &Shape) -> Option<usize> {
    match shape {
        Shape::Record(spec) => match node.as_mapping() {
            Some(mapping) => Some(spec().strange_keys(mapping)),
            None => spec().shorthand.map(|_| 0),
        },
        Shape::Map(..) | Shape::AnyMapping => node.as_mapping().map(|_| 0),
        Shape::List(_) => node.as_list().map(|_| 0),
        Shape::Partial(shape) | Shape::Reference(shape) => strangeness(node, shape),
        Shape::AnyOf(shapes) => shapes.iter().filter_map(|shape| strangeness(node, shape)).min(),
        Shape::Any => Some(0),
        _ => node.as_scalar().map(|_| 0),
    }
}

/// `name: {env}`: YAML reads a mapping whose only key has no value.
fn is_bare_placeholder(node: &Node) -> bool {
    let entries = node.as_mapping().map(|mapping| mapping.entries.as_slice());
    matches!(entries, Some([entry]) if entry.key.value == "env" && entry.value.is_null())
}

/// The environment's tags, on every guest of a stack.
pub(crate) fn add_tags(tree: &mut Node, kind: StackKind, tags: &[Node]) {
    if tags.is_empty() {
        return;
    }
    match kind {
        StackKind::Machines => {
            for section in ["templates", "vms", "containers"] {
                let Some(Kind::Mapping(guests)) = below(tree, section).map(|node| &mut node.kind) else {
                    continue;
                };
                for guest in guests.entries.iter_mut().filter(|guest| guest.value.as_mapping().is_some()) {
                    add(&mut guest.value, &[], tags);
                }
            }
        }
        StackKind::Cluster => {
            let Some(proxmox) = below(tree, "proxmox") else { return };
            if below(proxmox, "vm").is_none()
                && let Kind::Mapping(mapping) = &mut proxmox.kind
            {
                let span = tags[0].span;
                let value = Node::mapping(Vec::new(), span);
                mapping.entries.push(Entry { key: Spanned::new("vm".to_owned(), span), value });
            }
            if let Some(vm) = below(proxmox, "vm") {
                // Tags of its own take the place of those that machines of a cluster have otherwise.
                add(vm, &cluster::TAGS, tags);
            }
        }
        StackKind::Hypervisor | StackKind::Tofu => {}
    }
}

fn add(guest: &mut Node, otherwise: &[&str], tags: &[Node]) {
    let span = tags[0].span;
    if below(guest, "tags").is_none()
        && let Kind::Mapping(mapping) = &mut guest.kind
    {
        let usual = otherwise.iter().map(|tag| Node::text(*tag, span)).collect();
        mapping
            .entries
            .push(Entry { key: Spanned::new("tags".to_owned(), span), value: Node::list(usual, span) });
    }
    if let Some(Kind::List(own)) = below(guest, "tags").map(|node| &mut node.kind) {
        own.extend(tags.iter().cloned());
    }
}

fn below<'n>(node: &'n mut Node, key: &str) -> Option<&'n mut Node> {
    let Kind::Mapping(mapping) = &mut node.kind else { return None };
    mapping.entries.iter_mut().find(|entry| entry.key.value == key).map(|entry| &mut entry.value)
}
