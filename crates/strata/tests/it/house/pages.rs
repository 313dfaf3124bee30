//! The pages of docs/ are one book: each is in its table of contents, and links lead somewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::crates;

fn docs() -> PathBuf {
    crates().parent().unwrap().join("docs")
}

fn pages(folder: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.insert(path);
        }
    }
}

/// What the links of a page lead to, as far as it is in the repository; without what is within a page.
fn links(page: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string(page).unwrap();
    let mut found = Vec::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
        }
        if in_block {
            continue;
        }
        for rest in line.split("](").skip(1) {
            let target = rest.split([')', '#']).next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") {
                found.push(page.parent().unwrap().join(target));
            }
        }
    }
    found
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let mut all = BTreeSet::new();
    pages(&docs(), &mut all);
    let summary = docs().join("SUMMARY.md");
    let listed: BTreeSet<PathBuf> = links(&summary).into_iter().collect();
    let missing: Vec<_> = all.iter().filter(|page| **page != summary && !listed.contains(*page)).collect();
    assert!(all.len() > 50, "{} pages", all.len());
    assert!(missing.is_empty(), "add them to docs/SUMMARY.md: {missing:#?}");
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut all = BTreeSet::new();
    pages(&docs(), &mut all);
    let root = crates().parent().unwrap().to_owned();
    all.extend(
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root.join(name)),
    );
    let broken: Vec<String> = all
        .iter()
        .flat_map(|page| links(page).into_iter().map(move |link| (page, link)))
        .filter(|(_, link)| !link.exists())
        .map(|(page, link)| format!("{}: {}", page.display(), link.display()))
        .collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

/// The list for programs has what the table of contents has, but for the reasons of decisions.
#[test]
fn the_list_for_programs_names_every_page() {
    let summary = fs::read_to_string(docs().join("SUMMARY.md")).unwrap();
    let listed = fs::read_to_string(docs().parent().unwrap().join("llms.txt")).unwrap();
    let pages = summary.lines().filter(|line| line.starts_with("- [") && !line.contains("(decisions/"));
    let missing: Vec<String> = pages
        .map(|line| line.replace("](", "](docs/"))
        .filter(|line| !listed.lines().any(|one| one == line))
        .collect();
    assert!(missing.is_empty(), "add to llms.txt:\n{}", missing.join("\n"));
    let root = docs().parent().unwrap().to_owned();
    assert!(links(&root.join("llms.txt")).iter().all(|link| link.exists()), "llms.txt leads nowhere");
}
