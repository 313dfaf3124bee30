//! `strata policy check`: what a repository's OpenTofu code has to keep to, whoever wrote it.

mod backend;
mod module;
mod provider;
mod secret;

use std::collections::BTreeMap;

use hcl_edit::Span as _;
use hcl_edit::structure::{Attribute, Block, Body};
use strata_diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap, Span};
use strata_source::world::{World, join};

/// Deeper than anybody nests folders.
const MAX_DEPTH: usize = 12;

/// A file of OpenTofu.
struct File {
    id: FileId,
    body: Body,
}

/// The files of one folder.
#[derive(Default)]
struct Folder {
    code: Vec<File>,
    data: Vec<File>,
    names: Vec<String>,
    readme: Option<String>,
}

/// What a rule asks for, and what helps.
pub fn about(code: &str) -> (&'static str, &'static str) {
    match code {
        "module-source" => (
            "Modules come from modules/ or a registry",
            "Copy the module to modules/, or take it from a registry.",
        ),
        "module-pin" => ("Modules of a registry are pinned with ~>", "Write a version such as ~> 1.2."),
        "provider-pin" => {
            ("Every provider has a version, pinned with ~>", "Say source and version in required_providers.")
        }
        "required-file" => {
            ("Modules and stacks have their files", "Add the file, or move what belongs into it.")
        }
        "variable-type" => ("Every variable has a type", "Say what the variable takes: type = string."),
        "variable-description" => ("Every variable has a description", "Say what the variable is for."),
        "module-outputs" => {
            ("Modules have outputs for ids and addresses", "Add the output that others need.")
        }
        "readme" => ("The tables of a README are current", "Bring the tables up to date."),
        "plaintext-secret" => {
            ("No secret is in the clear", "Encrypt the file, or hand the secret over as a variable.")
        }
        "backend-key" => ("Each stack has a state of its own", "Give each stack a key of its own."),
        _ => ("The code can be read", "Fix the syntax."),
    }
}

/// Checks every folder that holds OpenTofu code.
pub fn check(world: &dyn World) -> (SourceMap, Diagnostics) {
    let mut check =
        Check { world, sources: SourceMap::new(), found: Diagnostics::new(), folders: BTreeMap::new() };
    check.walk("", 0);
    let folders = std::mem::take(&mut check.folders);
    for (path, folder) in &folders {
        check.folder(path, folder);
    }
    backend::unique(&mut check, &folders);
    check.found.tidy();
    (check.sources, check.found)
}

struct Check<'w> {
    world: &'w dyn World,
    sources: SourceMap,
    found: Diagnostics,
    folders: BTreeMap<String, Folder>,
}

impl Check<'_> {
    fn walk(&mut self, path: &str, depth: usize) {
        let Ok(listed) = self.world.list(path) else { return };
        let mut folder = Folder::default();
        for entry in &listed {
            let place = join(path, &entry.name);
            if entry.is_folder {
                if !entry.name.starts_with('.') && depth < MAX_DEPTH {
                    self.walk(&place, depth + 1);
                }
                continue;
            }
            folder.names.push(entry.name.clone());
            let is_data = entry.name.ends_with(".tfvars");
            if entry.name == "README.md" {
                folder.readme = self.world.read(&place).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            } else if entry.name.ends_with(".tfvars.json") || entry.name.ends_with(".tf.json") {
                self.json(&place);
            } else if is_data || entry.name.ends_with(".tf") || entry.name.ends_with(".tofu") {
                let file = self.parse(&place);
                let list = if is_data { &mut folder.data } else { &mut folder.code };
                list.extend(file);
            }
        }
        if !folder.code.is_empty() || !folder.data.is_empty() {
            self.folders.insert(path.to_owned(), folder);
        }
    }

    /// The other spelling of code and data: only secrets are looked for in it.
    fn json(&mut self, path: &str) {
        let text = self.world.read(path).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let Some(text) = text else { return };
        if let Ok(json) = serde_json::from_str(&text) {
            let id = self.sources.add(path, text);
            secret::check_json(self, id, &json);
        }
    }

    fn parse(&mut self, path: &str) -> Option<File> {
        let text = String::from_utf8(self.world.read(path).ok()?).ok()?;
        if text.starts_with("$ANSIBLE_VAULT") {
            return None;
        }
        let id = self.sources.add(path, text.clone());
        match hcl_edit::parser::parse_body(&text) {
            Ok(body) => Some(File { id, body }),
            Err(error) => {
                let at = error.location().offset().min(text.len());
                let message = format!("it is not HCL: {}", error.message());
                self.found.push(Diagnostic::error("hcl", message).at(Span::new(
                    id,
                    at,
                    (at + 1).min(text.len()),
                )));
                None
            }
        }
    }

    fn folder(&mut self, path: &str, folder: &Folder) {
        for file in &folder.code {
            for block in file.body.blocks() {
                match block.ident.as_str() {
                    "variable" => self.variable(file, block),
                    "module" => module::call(self, path, file, block),
                    _ => {}
                }
            }
        }
        provider::pinned(self, folder);
        for file in folder.code.iter().chain(&folder.data) {
            secret::check(self, file);
        }
        if path.starts_with("modules/") && !folder.code.is_empty() {
            module::standards(self, path, folder);
        } else if path.starts_with("stacks/") && !folder.code.is_empty() {
            self.required(path, folder, &["main.tf", "variables.tf", "backend.tf"], "stack");
        }
    }

    fn required(&mut self, path: &str, folder: &Folder, names: &[&str], what: &str) {
        for name in names.iter().filter(|name| !folder.names.iter().any(|there| there == *name)) {
            let file = folder.code.first().map(|file| file.id);
            let problem = Diagnostic::error("required-file", format!("the {what} `{path}` has no `{name}`"));
            self.found.push(match file {
                Some(file) => problem.at(Span::start_of(file)),
                None => problem,
            });
        }
    }

    fn variable(&mut self, file: &File, block: &Block) {
        let name = block.labels.first().map(|label| label.as_str().to_owned()).unwrap_or_default();
        for (key, code) in [("type", "variable-type"), ("description", "variable-description")] {
            let said = block.body.get_attribute(key);
            let empty = said.is_some_and(|said| said.value.as_str().is_some_and(str::is_empty));
            if said.is_none() || empty {
                let message = format!("the variable `{name}` has no `{key}`");
                self.found.push(Diagnostic::error(code, message).at(span(file, block.span())));
            }
        }
    }
}

fn is_pinned(version: Option<&str>) -> bool {
    version.is_some_and(|version| version.trim_start().starts_with("~>"))
}

fn span(file: &File, range: Option<std::ops::Range<usize>>) -> Span {
    match range {
        // A block is shown by its first line.
        Some(range) => Span::new(file.id, range.start, range.end.min(range.start + 1).max(range.start)),
        None => Span::start_of(file.id),
    }
}

fn at(file: &File, attribute: &Attribute) -> Span {
    attribute.span().map_or(Span::start_of(file.id), |range| Span::new(file.id, range.start, range.end))
}
