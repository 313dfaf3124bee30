//! The shape of the code itself: what may name what.

mod cells;
mod codes;
mod config_writes;
mod hints;
mod map;
mod pages;
mod reads;
mod words;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().is_none_or(|name| name != "tests") {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && path.file_stem().is_none_or(|name| name != "tests")
        {
            found.push(path);
        }
    }
    found
}

/// The files of the product: of every crate but the simulator's, which speaks with the words of others, and the kit of the tests.
fn product_files() -> Vec<PathBuf> {
    let folders = fs::read_dir(crates()).unwrap().map(|folder| folder.unwrap().path());
    let is_product = |folder: &PathBuf| {
        let name = folder.file_name().unwrap().to_string_lossy();
        !name.starts_with("strata-sim") && name != "strata-testkit"
    };
    folders.filter(is_product).flat_map(|folder| rust_files(&folder.join("src"))).collect()
}

/// The code of a file without its tests and its comments.
fn product(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// Kinds and their fields as the tables say them: names of kinds, and the first keys of fields.
fn declared() -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut kinds, mut fields) = (BTreeSet::new(), BTreeSet::new());
    for owner in ["strata-proxmox", "strata-cluster", "strata-truenas"] {
        for path in rust_files(&crates().join(owner).join("src/kinds")) {
            for line in fs::read_to_string(&path).unwrap().lines().map(str::trim) {
                let Some((name, rest)) = line.strip_prefix('"').and_then(|line| line.split_once('"')) else {
                    continue;
                };
                if rest.trim_start().starts_with('{') {
                    kinds.insert(name.to_owned());
                } else if rest.contains("=>") {
                    fields.insert(name.split('.').next().unwrap_or(name).to_owned());
                }
            }
        }
    }
    (kinds, fields)
}

/// Words of their own that some kind also uses: names of stages and limits, and keys of JSON.
const OWN_WORDS: [&str; 9] =
    ["address", "config", "etcd", "name", "options", "path", "storage", "template", "version"];

#[test]
fn nothing_below_the_providers_names_a_kind_or_a_field_of_one() {
    let (kinds, fields) = declared();
    assert!(kinds.len() >= 28 && fields.len() > 80, "{} kinds, {} fields", kinds.len(), fields.len());
    let mut named = Vec::new();
    let folders = [
        "strata-resource/src",
        "strata-engine/src",
        "strata-state/src",
        "strata-session/src",
        "strata/src/views",
        "strata-views/src",
    ];
    for folder in folders {
        for path in rust_files(&crates().join(folder)) {
            let code = product(&path);
            if code.contains("Kind::named(\"") || code.contains("kinds::") {
                named.push(format!("{}: names a kind", path.display()));
            }
            for literal in code.split('"').skip(1).step_by(2) {
                let of_kind = kinds.contains(literal);
                let of_field = fields.contains(literal);
                if (of_kind || of_field) && !OWN_WORDS.contains(&literal) {
                    named.push(format!("{}: \"{literal}\"", path.display()));
                }
            }
        }
    }
    assert!(named.is_empty(), "{}", named.join("\n"));
}

/// What is not about the command line belongs into a crate that others can use too.
#[test]
fn the_command_line_stays_small() {
    const MOST: usize = 8_000;
    let files = rust_files(&crates().join("strata/src"));
    let lines: usize = files.iter().map(|path| product(path).lines().count()).sum();
    assert!(lines < MOST, "{lines} lines");
}

/// Which crates of ours a crate may build upon, as the table in ARCHITECTURE.md says.
#[test]
fn crates_depend_on_each_other_as_the_map_says() {
    let map = fs::read_to_string(crates().parent().unwrap().join("ARCHITECTURE.md")).unwrap();
    let table = map.split("## Who may build upon whom").nth(1).expect("the map has the table");
    let table = table.split("\n## ").next().unwrap_or_default();
    let mut said = BTreeSet::new();
    for line in table.lines().filter(|line| line.starts_with("| `strata")) {
        let mut cells = line.split('|').map(str::trim).filter(|cell| !cell.is_empty());
        let name = cells.next().unwrap_or_default().trim_matches('`').to_owned();
        let upon = cells.next().unwrap_or_default();
        for other in upon.split('`').skip(1).step_by(2) {
            said.insert((name.clone(), format!("strata-{other}")));
        }
    }
    let mut is = BTreeSet::new();
    for entry in fs::read_dir(crates()).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) else { continue };
        let own = manifest.split("[dependencies]").nth(1).unwrap_or_default();
        let own = own.split("\n[").next().unwrap_or_default();
        for line in own.lines().filter(|line| line.starts_with("strata-")) {
            let other = line.split(['.', ' ', '=']).next().unwrap_or_default();
            is.insert((name.clone(), other.to_owned()));
        }
    }
    let missing: Vec<_> = is.difference(&said).collect();
    let more: Vec<_> = said.difference(&is).collect();
    assert!(missing.is_empty(), "not in the map: {missing:?}");
    assert!(more.is_empty(), "in the map and not so: {more:?}");
}
