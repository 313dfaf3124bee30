//! `strata policy check`: what a repository's OpenTofu code has to keep to, whoever wrote it.

mod backend;
mod module;
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
            } else if is_data || entry.name.ends_with(".tf") {
                let file = self.parse(&place);
                let list = if is_data { &mut folder.data } else { &mut folder.code };
                list.extend(file);
            }
        }
        if !folder.code.is_empty() || !folder.data.is_empty() {
            self.folders.insert(path.to_owned(), folder);
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
                    "terraform" => self.providers(file, block),
                    _ => {}
                }
            }
        }
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

    fn providers(&mut self, file: &File, block: &Block) {
        for inner in block.body.blocks().filter(|inner| inner.ident.as_str() == "required_providers") {
            for attribute in inner.body.attributes() {
                let name = attribute.key.as_str();
                let version = attribute
                    .value
                    .as_object()
                    .and_then(|object| {
                        object
                            .iter()
                            .find(|(key, _)| key.as_ident().is_some_and(|key| key.as_str() == "version"))
                    })
                    .and_then(|(_, value)| value.expr().as_str());
                if !is_pinned(version) {
                    let message = format!("the provider `{name}` is not pinned with `~>`");
                    let problem = Diagnostic::error("provider-pin", message).at(at(file, attribute));
                    self.found.push(problem.hint("write a version such as `~> 0.112`"));
                }
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
