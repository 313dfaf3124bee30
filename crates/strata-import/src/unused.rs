//! Values of evaluated code that nothing was made of: defaults that every call replaces, alternatives of cases that do not occur,
//! blocks that come to no resource. They are named by file, so that each value is in the result or in the report.

use std::collections::{BTreeMap, BTreeSet};

use hcl_edit::Span as _;
use hcl_edit::expr::Expression;

use super::Import;
use super::hcl::{Attribute, Block};
use super::tree::{Marks, SourceLine};

/// What of a block says nothing about what is made.
const WORDS: [&str; 10] = [
    "source",
    "version",
    "type",
    "description",
    "sensitive",
    "nullable",
    "ephemeral",
    "deprecated",
    "depends_on",
    "providers",
];

/// What of one file nothing was made of, by the kind of it.
#[derive(Default)]
struct UnusedValues {
    names: BTreeMap<What, (SourceLine, BTreeSet<String>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Defaults,
    Checks,
    Locals,
    Cases,
    Versions,
}

impl UnusedValues {
    fn put(&mut self, what: What, place: &SourceLine, name: &str) {
        let (_, names) = self.names.entry(what).or_insert_with(|| (place.clone(), BTreeSet::new()));
        names.insert(format!("`{name}`"));
    }
}

pub(super) fn report(import: &mut Import<'_>) {
    let mut told: BTreeSet<SourceLine> =
        import.imported.notes.iter().filter_map(|note| note.place.clone()).collect();
    let mut by_file: BTreeMap<String, UnusedValues> = BTreeMap::new();
    for folder in std::mem::take(&mut import.evaluated) {
        let blocks = import.library.folder(&folder);
        for block in blocks.iter() {
            let found = by_file.entry(block.place.file.to_string()).or_default();
            let marks = import.marks.clone();
            match block.kind.as_str() {
                "variable" => variable(block, &marks, &told, found),
                "locals" => {
                    for attribute in &block.attributes {
                        if unused(attribute, &marks) && !told.contains(&attribute.place) {
                            found.put(What::Locals, &attribute.place, &attribute.name);
                        }
                    }
                }
                "resource" | "data" | "module" => {
                    if told.contains(&block.place) {
                        continue;
                    }
                    let mut all = Vec::new();
                    attributes(block, &mut all);
                    let own = all
                        .iter()
                        .filter(|attribute| !["count", "for_each"].contains(&attribute.name.as_str()));
                    let evaluated = own.clone().any(|attribute| {
                        literals(attribute)
                            .iter()
                            .any(|at| marks.taken(&attribute.source.file, *at).is_some())
                    });
                    let says = own.clone().any(|attribute| !literals(attribute).is_empty());
                    if says && !evaluated {
                        let label = block.labels.join(".");
                        let message = format!("`{label}` comes to nothing with the values that are here");
                        import.note(Some(&block.place), message);
                        told.insert(block.place.clone());
                        continue;
                    }
                    for attribute in all {
                        if unused(attribute, &marks) && !told.contains(&attribute.place) {
                            found.put(What::Cases, &attribute.place, &attribute.name);
                        }
                    }
                }
                "check" => {
                    import.note(Some(&block.place), format!("the check `{}` is not made", block.label(0)));
                }
                "terraform" if !told.contains(&block.place) => {
                    found.put(What::Versions, &block.place, "terraform");
                }
                _ => {}
            }
        }
    }
    for (_, found) in by_file {
        for (what, (place, names)) in found.names {
            let names = names.into_iter().collect::<Vec<_>>().join(", ");
            let message = match what {
                What::Defaults => format!("nothing here has the default of {names}: not carried over"),
                What::Checks => format!("the checks of {names} were not carried over: Strata has its own"),
                What::Locals => format!("nothing is made of all that {names} says: not carried over"),
                What::Cases => {
                    format!("values for cases that do not occur here were not carried over: of {names}")
                }
                What::Versions => {
                    "the versions of OpenTofu and its providers are not needed: Strata needs none of them"
                        .to_owned()
                }
            };
            import.note(Some(&place), message);
        }
    }
}

fn variable(block: &Block, marks: &Marks, told: &BTreeSet<SourceLine>, found: &mut UnusedValues) {
    let name = block.label(0);
    if let Some(default) = block.attribute("default")
        && unused(default, marks)
        && !told.contains(&default.place)
        && !told.contains(&block.place)
    {
        found.put(What::Defaults, &default.place, name);
    }
    // A type has defaults, too.
    if let Some(shape) = block.attribute("type")
        && unused(shape, marks)
        && !told.contains(&block.place)
    {
        found.put(What::Defaults, &shape.place, name);
    }
    if let Some(check) = block.blocks.iter().find(|inner| inner.kind == "validation") {
        found.put(What::Checks, &check.place, name);
    }
}

/// All attributes of a block and of those in it.
fn attributes<'b>(block: &'b Block, found: &mut Vec<&'b Attribute>) {
    found.extend(block.attributes.iter().filter(|attribute| !WORDS.contains(&attribute.name.as_str())));
    let inner =
        block.blocks.iter().filter(|inner| !["lifecycle", "provisioner"].contains(&inner.kind.as_str()));
    inner.for_each(|inner| attributes(inner, found));
}

/// Whether some value of an attribute was never used.
fn unused(attribute: &Attribute, marks: &Marks) -> bool {
    let used = |at: &usize| marks.taken(&attribute.source.file, *at) == Some(true);
    !literals(attribute).iter().all(used)
}

/// Where the values of an attribute begin that say something.
fn literals(attribute: &Attribute) -> Vec<usize> {
    let mut found = Vec::new();
    collect(&attribute.value, &mut found);
    found
}

fn collect(expression: &Expression, found: &mut Vec<usize>) {
    match expression {
        Expression::String(text) if text.as_str().is_empty() => {}
        Expression::Bool(_) | Expression::Number(_) | Expression::String(_) => {
            found.extend(expression.span().map(|span| span.start));
        }
        Expression::HeredocTemplate(heredoc) => {
            let whole =
                heredoc.template.as_single_element().is_some_and(|element| element.as_literal().is_some());
            if whole {
                found.extend(expression.span().map(|span| span.start));
            }
        }
        Expression::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Expression::Object(object) => {
            object.iter().for_each(|(_, value)| collect(value.expr(), found));
        }
        Expression::Parenthesis(inner) => collect(inner.inner(), found),
        Expression::Conditional(conditional) => {
            // The condition is a question: its answer is what counts.
            collect(&conditional.true_expr, found);
            collect(&conditional.false_expr, found);
        }
        Expression::FuncCall(call) => call.args.iter().for_each(|argument| collect(argument, found)),
        Expression::UnaryOp(op) => collect(&op.expr, found),
        Expression::BinaryOp(op) => {
            collect(&op.lhs_expr, found);
            collect(&op.rhs_expr, found);
        }
        Expression::ForExpr(over) => {
            collect(&over.intro.collection_expr, found);
            collect(&over.value_expr, found);
        }
        // The keys behind it choose: what they choose counts.
        Expression::Traversal(traversal) => collect(&traversal.expr, found),
        _ => {}
    }
}
