//! Every provider that code uses has a version, and that is pinned.

use std::collections::BTreeMap;

use hcl_edit::expr::Expression;
use hcl_edit::structure::Block;
use strata_diagnostics::{Diagnostic, Span};

use super::{Check, File, Folder, at, is_pinned, span};

pub(super) fn pinned(check: &mut Check<'_>, folder: &Folder) {
    let mut required = Vec::new();
    let mut used: BTreeMap<String, Span> = BTreeMap::new();
    for file in &folder.code {
        for block in file.body.blocks() {
            match block.ident.as_str() {
                "terraform" => requirements(check, file, block, &mut required),
                "provider" | "resource" | "data" | "ephemeral" => {
                    if let Some(name) = provider_of(block) {
                        used.entry(name).or_insert_with(|| span(file, hcl_edit::Span::span(block)));
                    }
                }
                _ => {}
            }
        }
    }
    for (name, span) in used.into_iter().filter(|(name, _)| !required.contains(name)) {
        let message = format!("the provider `{name}` has no version in `required_providers`");
        let problem = Diagnostic::error("provider-pin", message).at(span);
        check.found.push(problem.hint("a `terraform` block of this folder says source and version"));
    }
}

/// What `required_providers` says, and whether it pins.
fn requirements(check: &mut Check<'_>, file: &File, block: &Block, required: &mut Vec<String>) {
    for inner in block.body.blocks().filter(|inner| inner.ident.as_str() == "required_providers") {
        for attribute in inner.body.attributes() {
            let name = attribute.key.as_str();
            required.push(name.to_owned());
            if !is_pinned(version(&attribute.value)) {
                let message = format!("the provider `{name}` is not pinned with `~>`");
                let problem = Diagnostic::error("provider-pin", message).at(at(file, attribute));
                check.found.push(problem.hint("write a version such as `~> 0.112`"));
            }
        }
    }
}

/// `{source = …, version = "…"}`, or the version alone, as it was written once.
fn version(said: &Expression) -> Option<&str> {
    let Some(object) = said.as_object() else { return said.as_str() };
    let is_version = |key: &hcl_edit::expr::ObjectKey| {
        let ident = key.as_ident().map(|ident| ident.as_str());
        ident.or_else(|| key.as_expr().and_then(|key| key.as_str())) == Some("version")
    };
    object.iter().find(|(key, _)| is_version(key)).and_then(|(_, value)| value.expr().as_str())
}

/// The provider of a block by its name here: said, or the first word of the type. What comes with OpenTofu is none.
fn provider_of(block: &Block) -> Option<String> {
    let kind = block.labels.first()?.as_str().to_owned();
    let said = block.body.get_attribute("provider").filter(|_| block.ident.as_str() != "provider");
    let name = match said.map(|said| &said.value) {
        Some(Expression::Variable(name)) => name.as_str().to_owned(),
        Some(Expression::Traversal(traversal)) => match &traversal.expr {
            Expression::Variable(name) => name.as_str().to_owned(),
            _ => return None,
        },
        Some(_) => return None,
        None if block.ident.as_str() == "provider" => kind,
        None => kind.split('_').next().unwrap_or_default().to_owned(),
    };
    Some(name).filter(|name| name != "terraform" && !name.is_empty())
}
