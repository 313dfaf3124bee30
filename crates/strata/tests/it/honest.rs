//! Tests that say what they do: one that needs more than Rust is ignored, with its reason and the recipe that runs it, and fails where it
//! is run without.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
        }
    }
}

fn all() -> Vec<(String, String)> {
    let mut found = Vec::new();
    sources(&root().join("crates"), &mut found);
    found.retain(|(path, _)| !path.ends_with("honest.rs"));
    assert!(found.len() > 500);
    found
}

#[test]
fn every_ignored_test_says_why_and_how_it_is_run() {
    let justfile = std::fs::read_to_string(root().join("justfile")).unwrap();
    let recipes: Vec<&str> = justfile
        .lines()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()))
        .filter_map(|line| line.split([' ', ':']).next())
        .collect();
    let mut wrong = Vec::new();
    let mut count = 0;
    for (path, text) in all() {
        for line in text.lines().filter(|line| line.trim_start().starts_with("#[ignore")) {
            count += 1;
            let reason = line.split('"').nth(1).unwrap_or_default();
            let recipe = reason.split_once(": just ").map(|(why, recipe)| (why, recipe.split(' ').next()));
            match recipe {
                Some((why, Some(recipe))) if !why.is_empty() && recipes.contains(&recipe) => {}
                _ => wrong.push(format!("{path}: {line}")),
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(count > 30, "{count}");
}

/// A test that returns because something is not there has passed without running.
#[test]
fn no_test_passes_without_running() {
    let mut wrong = Vec::new();
    for (path, text) in
        all().into_iter().filter(|(path, _)| path.contains("/tests/") || path.contains("oracle"))
    {
        for said in ["left out", "skipped:", "not set, ", "is missing, so"] {
            let printed = |line: &&str| line.contains("println!") && line.contains(said);
            wrong.extend(text.lines().filter(printed).map(|line| format!("{path}: {line}")));
        }
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2) {
            let asks = pair[0].contains("env::var") || pair[0].contains("--version");
            if asks && pair.iter().any(|line| line.contains("else { return }") || line.trim() == "return;") {
                wrong.push(format!("{path}: {}", pair[0]));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
