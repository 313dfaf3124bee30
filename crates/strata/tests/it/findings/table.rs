//! `docs/testing.md` has a line for every case, and names only tests that there are.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// How many cases each letter has.
const CASES: [(char, usize); 7] = [('A', 16), ('B', 5), ('C', 5), ('D', 10), ('E', 8), ('F', 19), ('R', 9)];

/// The text of every Rust file below a folder, by the name of the file.
fn sources(folder: &Path, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            found.entry(name).or_default().push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

/// Whether the function is there and is run as a test.
fn is_test(text: &str, name: &str) -> bool {
    let Some((before, _)) = text.split_once(&format!("fn {name}(")) else { return false };
    let above = before.lines().rev().map(str::trim).skip_while(|line| line.is_empty() || *line == "async");
    let mut attributes = above.take_while(|line| line.starts_with("#["));
    attributes.any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
}

#[test]
fn every_case_has_a_line_and_every_test_of_it_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = BTreeMap::new();
    sources(&root.join("crates"), &mut files);
    let text = fs::read_to_string(root.join("docs/testing.md")).unwrap();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with("| "))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let mut missing = Vec::new();
    for (letter, last) in CASES {
        for number in 1..=last {
            let case = format!("{letter}{number}");
            let lines: Vec<&Vec<&str>> = rows.iter().filter(|row| row[0] == case).collect();
            let [line] = lines.as_slice() else {
                missing.push(format!("{case} has {} lines", lines.len()));
                continue;
            };
            assert!(line.len() == 3 && !line[1].is_empty(), "{line:?}");
            let tests: Vec<&str> = line[2].split('`').filter(|part| part.contains("::")).collect();
            if tests.is_empty() {
                missing.push(format!("{case} has no test"));
            }
            for test in tests {
                let (file, name) = test.rsplit_once("::").unwrap();
                if !files.get(file).is_some_and(|text| is_test(text, name)) {
                    missing.push(format!("{case}: there is no test `{name}` in `{file}.rs`"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "docs/testing.md: {missing:#?}");
}
