//! What depends on what: stacks that exist, no circles, and nothing below on something above.

use std::collections::BTreeMap;

use strata_diagnostics::{Diagnostic, Diagnostics, Span};

use super::{left_out, suggestion};
use crate::repository::Repository;
use crate::stack::Layer;

pub(super) fn check(repository: &Repository, diagnostics: &mut Diagnostics) {
    let names: Vec<&str> = repository.stacks().iter().map(|entry| entry.name.value.as_str()).collect();
    let layers: BTreeMap<&str, Layer> =
        repository.stacks().iter().map(|entry| (entry.name.value.as_str(), entry.layer)).collect();
    let mut edges: BTreeMap<&str, Vec<(&str, Span)>> = BTreeMap::new();
    for stack in repository.effective() {
        for (needed, span) in stack.needs() {
            let Some(layer) = layers.get(needed) else {
                // A template of an unknown stack is reported with the templates, an input with the outputs.
                if stack.depends_on().iter().any(|name| name.value == needed && name.span == span) {
                    let problem = Diagnostic::error("unknown-stack", format!("there is no stack `{needed}`"));
                    diagnostics.push(problem.at(span).maybe_hint(suggestion(needed, &names)));
                }
                continue;
            };
            // The other two ways to need a stack are reported with the templates and with the outputs.
            if stack.depends_on().iter().any(|name| name.span == span) {
                diagnostics.extend(left_out::stack(repository, needed, stack, span));
            }
            if *layer > stack.layer {
                let message =
                    format!("`{}` is in the layer `{}` and cannot need `{needed}`", stack.name, stack.layer);
                let problem = Diagnostic::error("layer-violation", message);
                let label = format!("`{needed}` is in the higher layer `{layer}`");
                diagnostics.push(problem.at_with(span, label));
            }
            edges.entry(&stack.name).or_default().push((needed, span));
        }
    }
    for circle in circles(&edges) {
        diagnostics.push(describe("stacks", &circle));
    }
}

/// A closed way through the edges: each step and where it was written.
pub(super) type Circle<'a> = Vec<(&'a str, Span)>;

/// Every circle that a walk in depth finds, each once. The walk keeps its own stack, for any depth of edges.
pub(super) fn circles<'a>(edges: &BTreeMap<&'a str, Vec<(&'a str, Span)>>) -> Vec<Circle<'a>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        Open,
        Done,
    }
    let mut marks: BTreeMap<&str, Mark> = BTreeMap::new();
    let mut found = Vec::new();
    for start in edges.keys().copied() {
        if marks.contains_key(start) {
            continue;
        }
        // Each step: the node, the edge that led to it, and how many of its edges were taken.
        let mut way: Vec<(&str, Option<Span>, usize)> = vec![(start, None, 0)];
        marks.insert(start, Mark::Open);
        while let Some((node, _, taken)) = way.last_mut() {
            let next = edges.get(node).and_then(|list| list.get(*taken)).copied();
            *taken += 1;
            let Some((next, span)) = next else {
                marks.insert(*node, Mark::Done);
                way.pop();
                continue;
            };
            match marks.get(next) {
                Some(Mark::Done) => {}
                Some(Mark::Open) => {
                    let begin = way.iter().position(|(node, ..)| *node == next).unwrap_or(0);
                    let mut circle: Circle<'a> = Vec::new();
                    for (index, (node, ..)) in way.iter().enumerate().skip(begin) {
                        let out = way.get(index + 1).and_then(|(_, span, _)| *span).unwrap_or(span);
                        circle.push((node, out));
                    }
                    found.push(circle);
                }
                None => {
                    marks.insert(next, Mark::Open);
                    way.push((next, Some(span), 0));
                }
            }
        }
    }
    found
}

pub(super) fn describe(what: &str, circle: &Circle<'_>) -> Diagnostic {
    let (first, at) = circle[0];
    if circle.len() == 1 {
        return Diagnostic::error("cycle", format!("`{first}` depends on itself")).at(at);
    }
    let names: Vec<&str> = circle.iter().map(|(name, _)| *name).chain([first]).collect();
    let message = format!("these {what} depend on each other in a circle: {}", names.join(" → "));
    let mut problem = Diagnostic::error("cycle", message);
    for (index, (name, span)) in circle.iter().enumerate() {
        let label = format!("`{name}` needs `{}`", names[index + 1]);
        problem = if index == 0 { problem.at_with(*span, label) } else { problem.also(*span, label) };
    }
    problem.hint("remove one of these dependencies")
}
