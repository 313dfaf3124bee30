//! What a writer of YAML sees: trees, mistakes, schemas.

mod decoding;
mod edits;
mod hostile;
mod overlays;
mod schemas;
mod syntax;

use strata_diagnostics::{Color, Diagnostics, SourceMap, render};
use strata_yaml::{Context, Decode, Node, Outside, Parsed, parse};

/// A world with one variable and one file.
pub(crate) struct World;

impl Outside for World {
    fn env(&self, name: &str) -> Option<String> {
        (name == "CORES").then(|| "4".to_owned())
    }

    fn file(&self, path: &str, _: strata_diagnostics::FileId) -> Result<String, String> {
        match path {
            "motd" => Ok("hello\n".to_owned()),
            _ => Err(format!("there is no file `{path}`")),
        }
    }
}

/// Everything that was reported, as a person sees it.
pub(crate) fn show(sources: &SourceMap, diagnostics: &Diagnostics) -> String {
    let shown: Vec<String> = diagnostics.iter().map(|one| render(one, sources, Color::Never)).collect();
    shown.join("\n")
}

pub(crate) fn tree(text: &str) -> (Option<Node>, String) {
    let mut sources = SourceMap::new();
    let file = sources.add("a.yaml", text);
    let mut diagnostics = Diagnostics::new();
    let parsed = parse(&sources, file, &mut diagnostics);
    let node = match parsed {
        Parsed::Document(node) => Some(node),
        parsed => parsed.required(file, "a mapping", &mut diagnostics),
    };
    (node, show(&sources, &diagnostics))
}

/// Reads a text as `T`; the second part is everything that was reported.
pub(crate) fn read<T: Decode>(text: &str) -> (Option<T>, String) {
    let mut sources = SourceMap::new();
    let file = sources.add("a.yaml", text);
    let mut diagnostics = Diagnostics::new();
    let node = parse(&sources, file, &mut diagnostics).required(file, "a mapping", &mut diagnostics);
    let value = node.and_then(|node| T::decode(&node, &mut Context::new(&mut diagnostics, &World)));
    (value, show(&sources, &diagnostics))
}
