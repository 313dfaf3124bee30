//! Where modules come from, and what a module of one's own has to have.

use std::collections::BTreeSet;

use hcl_edit::structure::Block;
use strata_diagnostics::{Diagnostic, Span};

use super::{Check, File, Folder, at, is_pinned};
use crate::path::resolve;

const FILES: [&str; 4] = ["main.tf", "variables.tf", "outputs.tf", "README.md"];
/// Resources that have an address.
const MACHINES: [&str; 4] = ["_vm", "_container", "_instance", "_server"];

/// The call of a module.
pub(super) fn call(check: &mut Check<'_>, folder: &str, file: &File, block: &Block) {
    let name = block.labels.first().map(|label| label.as_str().to_owned()).unwrap_or_default();
    let Some(attribute) = block.body.get_attribute("source") else { return };
    let Some(source) = attribute.value.as_str() else {
        let message = format!("the source of the module `{name}` is not written down");
        check.found.push(Diagnostic::error("module-source", message).at(at(file, attribute)));
        return;
    };
    if source.starts_with("./") || source.starts_with("../") {
        let place = resolve(folder, source);
        if !place.as_deref().is_some_and(|place| place.split('/').any(|part| part == "modules")) {
            let message = format!("the module `{name}` comes from `{source}`, which is not in `modules/`");
            check.found.push(Diagnostic::error("module-source", message).at(at(file, attribute)));
        }
        return;
    }
    if !is_registry(source) {
        let message = format!("the module `{name}` comes from `{source}`: neither `modules/` nor a registry");
        let problem = Diagnostic::error("module-source", message).at(at(file, attribute));
        check.found.push(
            problem.hint("copy it to `modules/`, or take it from a registry: `namespace/name/provider`"),
        );
        return;
    }
    let version = block.body.get_attribute("version").and_then(|version| version.value.as_str());
    if !is_pinned(version) {
        let message = format!("the module `{name}` is not pinned with `~>`");
        check.found.push(Diagnostic::error("module-pin", message).at(at(file, attribute)));
    }
}

/// `[host/]namespace/name/provider`.
fn is_registry(source: &str) -> bool {
    let source = source.split("//").next().unwrap_or(source);
    let parts: Vec<&str> = source.split('/').collect();
    let plain = |part: &&str| {
        !part.is_empty()
            && part.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'))
    };
    match parts.as_slice() {
        [_, _, _] => parts.iter().all(plain),
        [host, rest @ ..] if rest.len() == 3 => {
            host.contains('.') && !matches!(*host, "github.com" | "bitbucket.org") && rest.iter().all(plain)
        }
        _ => false,
    }
}

/// Files, outputs and README of a module.
pub(super) fn standards(check: &mut Check<'_>, path: &str, folder: &Folder) {
    // Folders below a module are its examples and parts.
    if path.matches('/').count() != 1 {
        return;
    }
    check.required(path, folder, &FILES, "module");
    let names = |kind: &str| -> BTreeSet<String> {
        let blocks = folder.code.iter().flat_map(|file| file.body.blocks());
        blocks
            .filter(|block| block.ident.as_str() == kind)
            .filter_map(|block| block.labels.first().map(|label| label.as_str().to_owned()))
            .collect()
    };
    let (outputs, variables, resources) = (names("output"), names("variable"), names("resource"));
    let first = folder.code.first().map(|file| Span::start_of(file.id));
    let mut say = |code: &'static str, message: String, hint: &str| {
        let problem = Diagnostic::error(code, message).hint(hint);
        check.found.push(match first {
            Some(first) => problem.at(first),
            None => problem,
        });
    };
    let is_id = |name: &String| {
        name == "id" || name.ends_with("_id") || name.ends_with("_ids") || name.contains("address")
    };
    if !resources.is_empty() && !outputs.iter().any(is_id) {
        say(
            "module-outputs",
            format!("the module `{path}` has no output for an id or an address"),
            "others need it: `output \"id\"`",
        );
    }
    let has_machine = resources.iter().any(|kind| MACHINES.iter().any(|end| kind.ends_with(end)));
    let is_address = |name: &String| name.contains("ip") || name.contains("address");
    if has_machine && !outputs.iter().any(is_address) {
        say(
            "module-outputs",
            format!("the module `{path}` has no output for the machine's address"),
            "inventories need it",
        );
    }
    let Some(readme) = &folder.readme else { return };
    let named = |name: &str| {
        readme.lines().any(|line| {
            let first = line.trim_start_matches('|').split('|').next().unwrap_or_default();
            line.starts_with('|')
                && first.trim().trim_matches('`').trim_start_matches("<a name=").contains(name)
        })
    };
    for name in rows(readme, &["input", "variable"]).into_iter().filter(|name| !variables.contains(*name)) {
        let message =
            format!("the README of `{path}` has a row for the variable `{name}`, which there is not");
        say("readme", message, "bring its tables up to date");
    }
    for name in rows(readme, &["output"]).into_iter().filter(|name| !outputs.contains(*name)) {
        let message = format!("the README of `{path}` has a row for the output `{name}`, which there is not");
        say("readme", message, "bring its tables up to date");
    }
    for (what, list) in [("variable", &variables), ("output", &outputs)] {
        for name in list.iter().filter(|name| !named(name)) {
            say(
                "readme",
                format!("the README of `{path}` has no row for the {what} `{name}`"),
                "bring its tables up to date",
            );
        }
    }
}

/// The names that the tables below such a heading have rows for: in backquotes, as we write them, or as links.
fn rows<'r>(readme: &'r str, headings: &[&str]) -> Vec<&'r str> {
    let mut within = false;
    let mut found = Vec::new();
    for line in readme.lines() {
        if let Some(heading) = line.strip_prefix('#') {
            let heading = heading.to_ascii_lowercase();
            within = headings.iter().any(|word| heading.contains(word));
        } else if within && let Some(row) = line.strip_prefix('|') {
            let cell = row.split('|').next().unwrap_or_default().trim();
            let quoted = cell.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
            let linked = || cell.split_once("[")?.1.split_once("](#").map(|(name, _)| name);
            let is_name = |name: &&str| {
                name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
            };
            found.extend(quoted.or_else(linked).filter(is_name));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_told_apart() {
        for registry in ["terraform-aws-modules/vpc/aws", "registry.example.com/a/b/c", "a/b/c//modules/d"] {
            assert!(is_registry(registry), "{registry}");
        }
        for other in ["git::https://x/y.git", "github.com/a/b/c", "https://x/y.zip", "a/b", "s3::https://x/y"]
        {
            assert!(!is_registry(other), "{other}");
        }
    }
}
