//! Providers and modules of code that was written by hand for OpenTofu.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use hcl_edit::Span as _;
use hcl_edit::expr::{Expression, ObjectKey};
use hcl_edit::structure::{Block, Body};
use strata_source::world::{World, join};
use strata_source::{Model, Repository, StackKind};

use crate::pin::{At, Group, Pin, Place, What};

const MAX_DEPTH: usize = 12;
/// Modules of the repository, which any of its stacks may call.
const MODULES: &str = "modules";

pub(super) fn pins(repository: &Repository, world: &dyn World) -> Vec<Pin> {
    let mut files: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let stacks = || repository.effective().filter(|stack| matches!(stack.model, Model::Tofu(_)));
    for stack in stacks() {
        for file in code(&stack.folder, 0, world) {
            files.entry(file).or_default().insert(format!("{}/{}", stack.environment, stack.name));
        }
    }
    if repository.stacks().iter().any(|stack| stack.kind == StackKind::Tofu) {
        let all: BTreeSet<String> =
            stacks().map(|stack| format!("{}/{}", stack.environment, stack.name)).collect();
        for file in code(MODULES, 0, world) {
            files.entry(file).or_default().extend(all.clone());
        }
    }
    let mut found = Vec::new();
    for (file, stacks) in files {
        let Some(text) = world.read(&file).ok().and_then(|bytes| String::from_utf8(bytes).ok()) else {
            continue;
        };
        // Code that cannot be read is told by OpenTofu itself.
        let Ok(body) = text.parse::<Body>() else { continue };
        for (group, name, value) in of_body(&body) {
            let Some((current, range)) = literal(value, &text) else { continue };
            let line = text[..range.start].matches('\n').count() + 1;
            let place = Place { file: file.clone(), line, byte: range.start };
            let what = if group == Group::Modules { What::Module } else { What::Provider };
            let (stacks, at) = (stacks.clone(), Ok(At::Bytes(range)));
            found.push(Pin { group, name, current, place, stacks, what, at });
        }
    }
    found
}

fn code(folder: &str, depth: usize, world: &dyn World) -> Vec<String> {
    let mut found = Vec::new();
    for entry in world.list(folder).unwrap_or_default() {
        let path = join(folder, &entry.name);
        if entry.is_folder {
            if !entry.name.starts_with('.') && depth < MAX_DEPTH {
                found.extend(code(&path, depth + 1, world));
            }
        } else if entry.name.ends_with(".tf") || entry.name.ends_with(".tofu") {
            found.push(path);
        }
    }
    found
}

/// Group, source and version of everything that a file pins.
fn of_body(body: &Body) -> Vec<(Group, String, &Expression)> {
    let mut found = Vec::new();
    for block in body.blocks() {
        match block.ident.as_str() {
            "terraform" => found.extend(providers(block)),
            "module" => found.extend(module(block)),
            _ => {}
        }
    }
    found
}

fn providers(block: &Block) -> Vec<(Group, String, &Expression)> {
    let required = block.body.blocks().filter(|inner| inner.ident.as_str() == "required_providers");
    let attributes = required.flat_map(|inner| inner.body.attributes());
    let pinned = attributes.filter_map(|attribute| {
        let local = attribute.key.as_str();
        let Some(object) = attribute.value.as_object() else {
            // As it was written once: the version alone.
            return Some((Group::Providers, format!("hashicorp/{local}"), &attribute.value));
        };
        let of = |name: &str| {
            object.iter().find(|(key, _)| key_text(key) == Some(name)).map(|(_, value)| value.expr())
        };
        let source = match of("source") {
            Some(source) => source.as_str()?.to_owned(),
            None => format!("hashicorp/{local}"),
        };
        Some((Group::Providers, source, of("version")?))
    });
    pinned.collect()
}

fn key_text(key: &ObjectKey) -> Option<&str> {
    let ident = key.as_ident().map(|ident| ident.as_str());
    ident.or_else(|| key.as_expr().and_then(|key| key.as_str()))
}

fn module(block: &Block) -> Option<(Group, String, &Expression)> {
    let source = block.body.get_attribute("source")?.value.as_str()?;
    // What lies behind `//` is a folder of the module.
    let source = source.split("//").next()?.to_owned();
    let version = block.body.get_attribute("version")?;
    Some((Group::Modules, source, &version.value))
}

/// The text between the quotes, and its bytes.
fn literal(value: &Expression, text: &str) -> Option<(String, Range<usize>)> {
    let written = value.as_str()?;
    let span = value.span()?;
    let inner = text.get(span.clone())?;
    let start = span.start + inner.find('"')? + 1;
    let range = start..start + written.len();
    (text.get(range.clone()) == Some(written)).then(|| (written.to_owned(), range))
}
