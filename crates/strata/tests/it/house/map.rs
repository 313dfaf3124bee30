//! The map leads somewhere: every file that ARCHITECTURE.md and CONTRIBUTING.md name is there.

use std::fs;

use super::crates;

/// `a/{b,c}.rs` is `a/b.rs` and `a/c.rs`.
fn expanded(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let Some((choices, after)) = rest.split_once('}') else { return vec![path.to_owned()] };
    choices.split(',').flat_map(|choice| expanded(&format!("{before}{}{after}", choice.trim()))).collect()
}

/// Every path within a crate that stands in backticks. `<kind>` stands for any name.
fn named(text: &str) -> Vec<String> {
    let quoted = text.split('`').skip(1).step_by(2).map(|path| path.trim_start_matches("crates/"));
    let in_crate =
        |path: &&str| path.starts_with("strata") && (path.contains("/src/") || path.contains("/tests/"));
    quoted.filter(in_crate).filter(|path| !path.contains(['<', '*', ' ', '…'])).flat_map(expanded).collect()
}

#[test]
fn every_file_on_the_map_is_there() {
    let mut lost = Vec::new();
    for page in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(crates().parent().unwrap().join(page)).unwrap();
        let paths = named(&text);
        assert!(!paths.is_empty(), "{page} names no file");
        let is_there = |path: &String| {
            let place = crates().join(path);
            place.exists() || place.with_extension("rs").exists()
        };
        lost.extend(paths.into_iter().filter(|path| !is_there(path)).map(|path| format!("{page}: {path}")));
    }
    assert!(lost.is_empty(), "not there: {lost:#?}");
}

#[test]
fn braces_are_several_files() {
    let text = "see `strata-x/src/{a,b/c}.rs`, `crates/strata-x/src/d/`, and `strata plan`";
    assert_eq!(named(text), ["strata-x/src/a.rs", "strata-x/src/b/c.rs", "strata-x/src/d/"]);
}
