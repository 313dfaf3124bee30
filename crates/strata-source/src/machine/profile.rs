//! Profiles: named sets of fields that guests take with `use`.

use strata_diagnostics::Diagnostic;
use strata_yaml::{Context, Decode, Node, Partial, Record, Shape};

use crate::cluster::topology::Pool;
use crate::machine::container::Container;
use crate::machine::template::Template;
use crate::machine::vm::Vm;

/// Some fields of a VM, a container, a template, or a pool of a cluster. Whoever uses it takes the fields that it has.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    pub node: Node,
}

impl Decode for Profile {
    fn shape() -> Shape {
        Shape::AnyOf(vec![
            Partial::<Vm>::shape(),
            Partial::<Container>::shape(),
            Partial::<Template>::shape(),
            Partial::<Pool>::shape(),
        ])
    }

    /// Read as the kind of machine that knows most of its keys, so that a mistake is found here, whoever uses it.
    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        if node.is_null() {
            return Some(Self { node: node.clone() });
        }
        let Some(mapping) = node.as_mapping() else {
            cx.wrong_type(node, &Shape::AnyMapping);
            return None;
        };
        for key in ["use", "each"] {
            if let Some(entry) = mapping.entry(key) {
                let problem = Diagnostic::error("not-in-a-profile", format!("a profile has no `{key}`"));
                cx.push(problem.at(entry.key.span).hint("write it on the guests that use the profile"));
            }
        }
        let strange = [
            Vm::spec().strange_keys(mapping),
            Container::spec().strange_keys(mapping),
            Template::spec().strange_keys(mapping),
            Pool::spec().strange_keys(mapping),
        ];
        match (0..strange.len()).min_by_key(|kind| strange[*kind]) {
            Some(1) => drop(Partial::<Container>::decode(node, cx)),
            Some(2) => drop(Partial::<Template>::decode(node, cx)),
            Some(3) => drop(Partial::<Pool>::decode(node, cx)),
            _ => drop(Partial::<Vm>::decode(node, cx)),
        }
        Some(Self { node: node.clone() })
    }
}
