//! The files that OpenTofu's code of a stack may read. What it really reads, only OpenTofu knows: rather one too many than one too few.

use std::collections::{BTreeMap, BTreeSet};

use super::digest::code_files;
use super::inputs::of_bytes;
use crate::world::World;

/// Each file with the digest of its content.
pub(super) struct CodeFiles(pub(super) BTreeMap<String, [u8; 32]>);

/// The modules that a repository's own code is made of.
pub(super) const MODULES: &str = "modules";

/// Its folder, the modules of the repository, and whatever a text of the code leads to with `..`.
pub(super) fn read_by(folder: &str, world: &dyn World) -> CodeFiles {
    let mut found = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut next = vec![folder.to_owned(), MODULES.to_owned()];
    while let Some(place) = next.pop() {
        if !seen.insert(place.clone()) {
            continue;
        }
        // A place is a folder with files, or one file.
        let mut paths = code_files(&place, world);
        if paths.is_empty() && world.read(&place).is_ok() {
            paths.push(place);
        }
        for path in paths {
            let content = world.read(&path).unwrap_or_default();
            if is_code(&path) {
                let text = String::from_utf8_lossy(&content);
                next.extend(paths_in(&text).filter_map(|written| led_to(&path, folder, written)));
            }
            found.insert(path, of_bytes(&content));
        }
    }
    CodeFiles(found)
}

fn is_code(path: &str) -> bool {
    [".tf", ".tofu", ".json"].iter().any(|ending| path.ends_with(ending))
}

/// Texts in quotes that go up a folder. A text that is cut by a quote within an expression is still one that begins or ends with it.
fn paths_in(code: &str) -> impl Iterator<Item = &str> {
    code.split(['"', '\n']).filter(|text| text.split(['/', ' ', '}', '(', ')', ',']).any(|part| part == ".."))
}

/// Where a text leads to, from the root of the repository: as far as it can be read, the folder above what cannot. The root itself stands for
/// everything.
fn led_to(file: &str, root: &str, written: &str) -> Option<String> {
    let own = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let (start, rest) = if let Some(rest) = written.strip_prefix("${path.module}/") {
        (own, rest)
    } else if let Some(rest) = written.strip_prefix("${path.root}/") {
        (root, rest)
    } else {
        (own, written)
    };
    let mut parts: Vec<&str> = start.split('/').filter(|part| !part.is_empty()).collect();
    for part in rest.split('/') {
        if part.contains(['$', '%', '{', '*', '(', ' ']) {
            // What follows is known when it runs; whether it goes up further, too.
            if rest.split(part).nth(1).is_some_and(|after| after.contains("..")) {
                return Some(String::new());
            }
            break;
        }
        match part {
            "" | "." => {}
            ".." => {
                // Outside of the repository there is nothing that a commit changes.
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Memory;

    fn files(code: &str) -> Vec<String> {
        let world = Memory::new()
            .file("stacks/hand/main.tf", code)
            .file("stacks/hand/more/a.txt", "a")
            .file("modules/vm/main.tf", "")
            .file("shared/net/main.tf", "locals { x = file(\"../x.txt\") }")
            .file("shared/x.txt", "x")
            .file("shared/y/one.yaml", "1")
            .file("other/z.txt", "z");
        read_by("stacks/hand", &world).0.into_keys().filter(|path| path != "stacks/hand/main.tf").collect()
    }

    #[test]
    fn code_reads_its_folder_the_modules_and_what_it_leads_to() {
        let own = ["modules/vm/main.tf", "stacks/hand/more/a.txt"];
        assert_eq!(files(""), own);
        let net = files("module \"n\" { source = \"../../shared/net\" }");
        assert_eq!(
            net,
            ["modules/vm/main.tf", "shared/net/main.tf", "shared/x.txt", "stacks/hand/more/a.txt"]
        );
        let one = files("x = file(\"${path.module}/../../shared/x.txt\")");
        assert_eq!(one, ["modules/vm/main.tf", "shared/x.txt", "stacks/hand/more/a.txt"]);
        let some = files("x = file(\"${path.root}/../../shared/y/${var.name}.yaml\")");
        assert_eq!(some, ["modules/vm/main.tf", "shared/y/one.yaml", "stacks/hand/more/a.txt"]);
        let all = files("x = file(\"${var.folder}/../x.txt\")");
        assert!(all.contains(&"other/z.txt".to_owned()), "{all:?}");
    }
}
