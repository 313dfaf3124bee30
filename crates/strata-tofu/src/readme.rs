//! The README of a module: what it takes and gives, as tables.

use std::fmt::Write as _;

use hcl_edit::structure::Body;

use crate::hcl::Expr;
use crate::provider::Provider;
use crate::variable::{Default, Type, Variable};

/// An output, as a file declares it.
struct Output {
    name: String,
    description: String,
}

pub(crate) fn module(
    name: &str,
    about: &str,
    inputs: &[Variable],
    outputs: &str,
    providers: &[Provider],
) -> String {
    let mut text =
        format!("# {name}\n\n{about}\n\n## Providers\n\n| name | source | version |\n|---|---|---|\n");
    for provider in providers {
        let _ = writeln!(text, "| {} | {} | `{}` |", provider.name, provider.source, provider.version);
    }
    text.push_str("\n## Inputs\n\n");
    let rows = inputs.iter().map(|input| Row {
        name: input.name.to_owned(),
        kind: short_type(input.kind),
        default: match input.default {
            Default::None => "required".to_owned(),
            default => format!("`{}`", one_line(default.expr())),
        },
        description: input.description.to_owned(),
    });
    text.push_str(&input_table(rows));
    text.push_str("\n## Outputs\n\n");
    text.push_str(&output_table(&declared_outputs(outputs)));
    text
}

/// A row of the table of inputs.
struct Row {
    name: String,
    kind: String,
    default: String,
    description: String,
}

fn input_table(rows: impl Iterator<Item = Row>) -> String {
    let mut text = "| name | type | default | description |\n|---|---|---|---|\n".to_owned();
    for row in rows {
        let _ = writeln!(
            text,
            "| {} | `{}` | {} | {} |",
            row.name,
            row.kind,
            row.default,
            cell(&row.description)
        );
    }
    text
}

fn output_table(outputs: &[Output]) -> String {
    let mut text = "| name | description |\n|---|---|\n".to_owned();
    for output in outputs {
        let _ = writeln!(text, "| {} | {} |", output.name, cell(&output.description));
    }
    text
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// The outputs of a file that is ours, hence well-formed.
fn declared_outputs(text: &str) -> Vec<Output> {
    let body: Body = text.parse().unwrap_or_default();
    let mut found = Vec::new();
    for block in body.blocks().filter(|block| block.ident.as_str() == "output") {
        let Some(name) = block.labels.first() else { continue };
        let description = block.body.get_attribute("description").and_then(|found| found.value.as_str());
        found.push(Output {
            name: name.as_str().to_owned(),
            description: description.unwrap_or_default().to_owned(),
        });
    }
    found
}

fn short_type(kind: Type) -> String {
    match kind {
        Type::Text => "string".to_owned(),
        Type::Number => "number".to_owned(),
        Type::Bool => "bool".to_owned(),
        Type::List(item) => format!("list({})", short_type(*item)),
        Type::Map(item) => format!("map({})", short_type(*item)),
        Type::Object(attributes) => {
            let names: Vec<&str> = attributes.iter().map(|attribute| attribute.name).collect();
            format!("object({})", names.join(", "))
        }
    }
}

fn one_line(value: Expr) -> String {
    let mut body = crate::hcl::Body::new();
    body.attribute("x", value);
    body.render().trim_start_matches("x = ").trim_end().to_owned()
}
