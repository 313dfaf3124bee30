//! Words that are gone stay gone: in what the binary can print, in the help of every command, in documents, examples, comments and names. And
//! nothing that is printed speaks of itself as a person.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{crates, product, product_files, rust_files};
use crate::world::BINARY;

/// What must not come back, and what is said instead.
const GONE: [(&str, &str); 58] = [
    ("let go", "removed from state, or released"),
    ("lets go", "releases"),
    ("letting go", "removing from state"),
    ("taken out", "removed"),
    ("take out", "remove"),
    ("takes out", "removes"),
    ("anew", "recreated, or again"),
    ("etcd is begun", "etcd is bootstrapped"),
    ("begin etcd", "bootstrap etcd"),
    ("copy of etcd", "etcd snapshot"),
    ("copies of etcd", "etcd snapshots"),
    ("told", "configured, shown, reported"),
    ("tell", "configure, show, report"),
    ("tells", "configures, shows, reports"),
    ("telling", "configuring, showing, reporting"),
    ("is well", "is healthy"),
    ("are well", "are healthy"),
    ("be well", "be healthy"),
    ("being well", "being healthy"),
    ("not well", "unhealthy"),
    ("well again", "healthy again"),
    ("unwell", "unhealthy"),
    ("mend", "fix"),
    ("mends", "fixes"),
    ("mended", "fixed"),
    ("stranger", "unmanaged"),
    ("strangers", "unmanaged"),
    ("silent", "unreachable"),
    ("silently", "without a message"),
    ("silence", "unreachable"),
    ("its turn", "the rollout slot, or the order of stacks"),
    ("their turn", "the rollout slot, or the order of stacks"),
    ("a turn", "a rollout slot"),
    ("the turn", "the rollout slot"),
    ("objection", "precondition"),
    ("objections", "preconditions"),
    ("promise", "guarantee, or planned effect"),
    ("promises", "guarantees, or planned effects"),
    ("promised", "guaranteed, or expected"),
    ("notices", "remarks; a program finds out"),
    ("believe", "verify, trust"),
    ("believes", "verifies, trusts"),
    ("believed", "verified, trusted"),
    ("standalone", "workloads"),
    ("pass over", "bypass, ignore"),
    ("passes over", "bypasses, ignores"),
    ("passed over", "bypassed, ignored"),
    ("who are you", "authentication required"),
    ("settle", "wait, resolve"),
    ("settles", "waits, resolves"),
    ("settled", "resolved"),
    ("sparing", "a name that says of what"),
    ("farewell", "a name that says of what"),
    ("carries no mark", "carries no ownership mark"),
    ("no mark of ours", "no ownership mark of this repository"),
    ("its mark", "its ownership mark"),
    ("their marks", "their ownership marks"),
    ("arriving from opentofu", "importing from OpenTofu"),
];

/// What only a person says of itself: not printed.
const FIRST_PERSON: [&str; 5] = ["we", "us", "our", "ours", "my"];

/// What a comment and a name may say: that one thing tells another from a third.
const OF_COMMENTS: [&str; 4] = ["told", "tell", "tells", "telling"];

/// Where one of them may stand, and why.
const ALLOWED: [(&str, &str, &str); 14] = [
    ("strata-engine/src/plan.rs", "stranger", "saved plans of earlier versions"),
    ("strata-engine/src/plan.rs", "silent", "saved plans of earlier versions"),
    ("strata-engine/src/recovery.rs", "stranger", "the word that programs read"),
    ("strata-resource/src/graph.rs", "standalone", "what earlier versions stored"),
    ("strata-source/src/stack.rs", "standalone", "a former word that sources may still have"),
    ("CHANGELOG.md", "stranger", "names the former word"),
    ("CHANGELOG.md", "silent", "names the former word"),
    ("CHANGELOG.md", "standalone", "names the former word"),
    ("strata-sim/README.md", "standalone", "a field of the simulator's control interface"),
    ("docs/ownership.md", "its mark", "the page defines `mark` as the ownership mark"),
    (
        "strata-sim-proxmox/src/endpoints/node_storage/prune.rs",
        "its mark",
        "the mark of a backup, as Proxmox calls it",
    ),
    ("strata-state/tests/it/postgres_tls.rs", "stranger", "the name of a file"),
    ("strata-state/src/s3/lock_table.rs", "ours", "the name of a value in a request"),
    ("strata-talos/src/oracle.rs", "ours", "a comparison that only tests write"),
];

/// Lower case words with one space between them and around: what stands in `{}` is a value, and no word.
fn words(text: &str) -> String {
    let (mut found, mut depth) = (String::from(" "), 0_usize);
    for letter in text.chars() {
        depth += usize::from(letter == '{');
        if letter == '}' {
            depth = depth.saturating_sub(1);
        } else if depth == 0 && (letter.is_alphanumeric() || letter == '_' || letter == '-') {
            found.extend(letter.to_lowercase());
        } else if !found.ends_with(' ') {
            found.push(' ');
        }
    }
    if !found.ends_with(' ') {
        found.push(' ');
    }
    found
}

/// The string literals of a file's product code, with the lines that they begin on.
fn literals(text: &str) -> Vec<(usize, String)> {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let bytes: Vec<char> = text.chars().collect();
    let (mut at, mut line, mut found) = (0, 1, Vec::new());
    let ahead = |at: usize, text: &str| text.chars().enumerate().all(|(n, c)| bytes.get(at + n) == Some(&c));
    while at < bytes.len() {
        if ahead(at, "//") {
            while at < bytes.len() && bytes[at] != '\n' {
                at += 1;
            }
        } else if ahead(at, "'\"'") || ahead(at, "'\\\"'") {
            at += if bytes[at + 1] == '"' { 3 } else { 4 };
        } else if bytes[at] == 'r' && (ahead(at + 1, "\"") || ahead(at + 1, "#\"")) {
            let hashed = bytes[at + 1] == '#';
            let end = if hashed { "\"#" } else { "\"" };
            at += if hashed { 3 } else { 2 };
            let (mut inner, begun) = (String::new(), line);
            while at < bytes.len() && !ahead(at, end) {
                line += usize::from(bytes[at] == '\n');
                inner.push(bytes[at]);
                at += 1;
            }
            at += end.len();
            found.push((begun, inner));
        } else if bytes[at] == '"' {
            let (mut inner, begun) = (String::new(), line);
            at += 1;
            while at < bytes.len() && bytes[at] != '"' {
                if bytes[at] == '\\' {
                    // An escape is a gap, also the one that joins two lines.
                    at += 1;
                    inner.push(' ');
                } else {
                    inner.push(bytes[at]);
                }
                line += usize::from(bytes.get(at) == Some(&'\n'));
                at += 1;
            }
            at += 1;
            found.push((begun, inner));
        } else {
            line += usize::from(bytes[at] == '\n');
            at += 1;
        }
    }
    found
}

/// Whether a phrase stands among words, where it may not.
fn stands(file: &str, words: &str, phrase: &str) -> bool {
    let allowed = ALLOWED.iter().any(|(of, word, _)| file.ends_with(of) && *word == phrase);
    !allowed && words.contains(&format!(" {phrase} "))
}

/// Of a text, the words that are gone: for each the place and what to say instead.
fn gone(file: &str, line: usize, text: &str, found: &mut Vec<String>) {
    let words = words(text);
    for (phrase, instead) in GONE.into_iter().filter(|(phrase, _)| stands(file, &words, phrase)) {
        found.push(format!("{file}:{line}: `{phrase}` is said as: {instead}"));
    }
}

/// The same of what is printed, which is no person either. A word alone is a name or a value.
fn printed(file: &str, line: usize, text: &str, found: &mut Vec<String>) {
    gone(file, line, text, found);
    let words = words(text);
    let is_sentence = words.split_whitespace().nth(1).is_some();
    for person in FIRST_PERSON.into_iter().filter(|person| is_sentence && stands(file, &words, person)) {
        found.push(format!(
            "{file}:{line}: `{person}`: say who, such as Strata, this repository or the token"
        ));
    }
}

fn texts(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            texts(&path, found);
        } else if path.extension().is_some_and(|end| end == "md" || end == "yaml") {
            found.push(path);
        }
    }
}

/// The words of each name in some code: of `LeftUnmanaged` and `left_unmanaged` ` left unmanaged `.
fn names(text: &str) -> BTreeSet<String> {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let all = code.flat_map(|line| line.split(|letter: char| !letter.is_alphanumeric() && letter != '_'));
    let spaced = |name: &str| {
        let (mut spaced, mut was_lower) = (String::new(), false);
        for letter in name.chars() {
            if was_lower && letter.is_uppercase() {
                spaced.push(' ');
            }
            was_lower = letter.is_lowercase();
            spaced.push(if letter == '_' { ' ' } else { letter });
        }
        words(&spaced)
    };
    all.filter(|name| !name.is_empty()).map(spaced).collect()
}

/// The help of a command, and of those below it.
fn help(path: &[String], found: &mut Vec<String>) {
    let output = Command::new(BINARY).args(path).arg("--help").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    printed(&format!("strata {} --help", path.join(" ")), 0, &text, found);
    let below = text.split("\nCommands:\n").nth(1).unwrap_or_default();
    for line in below.lines().take_while(|line| line.starts_with("  ")) {
        let name = line[2..].split(' ').next().unwrap_or_default();
        if !name.is_empty() && name != "help" {
            help(&[path, &[name.to_owned()]].concat(), found);
        }
    }
}

#[test]
fn literals_are_found_and_comments_are_not() {
    let text = "// \"a\"\nlet x = \"b \\\" c\"; '\"'; r#\"d \"e\" f\"#\n\"g\" #[cfg(test)] \"h\"";
    let found: Vec<String> = literals(text).into_iter().map(|(_, text)| text).collect();
    assert_eq!(found, ["b   c", "d \"e\" f", "g"]);
    let mut seen = Vec::new();
    gone("a.rs", 1, "VM {told} is TOLD `is_told`", &mut seen);
    assert_eq!(seen, ["a.rs:1: `told` is said as: configured, shown, reported"]);
    seen.clear();
    printed("a.rs", 1, "we do", &mut seen);
    printed("a.rs", 2, "ours", &mut seen);
    assert_eq!(seen, ["a.rs:1: `we`: say who, such as Strata, this repository or the token"]);
}

#[test]
fn words_that_are_gone_are_not_printed() {
    let mut found = Vec::new();
    for path in product_files() {
        let file = path.strip_prefix(crates()).unwrap().to_string_lossy().into_owned();
        for (line, text) in literals(&fs::read_to_string(&path).unwrap()) {
            printed(&file, line, &text, &mut found);
        }
    }
    help(&[], &mut found);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn words_that_are_gone_are_not_documented() {
    let root = crates().parent().unwrap().to_owned();
    let mut files: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
        .map(|name| root.join(name))
        .into();
    texts(&root.join("docs"), &mut files);
    texts(&root.join("examples"), &mut files);
    let mut found = Vec::new();
    for path in files {
        let file = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        for (index, line) in text.lines().enumerate() {
            gone(&file, index + 1, line, &mut found);
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// In the comments of every crate, its tests and the simulator too.
#[test]
fn words_that_are_gone_are_in_no_comment() {
    let mut found = Vec::new();
    for entry in fs::read_dir(crates()).unwrap() {
        let owner = entry.unwrap().path();
        let parts = ["src", "tests"].map(|part| owner.join(part));
        for path in parts.iter().filter(|part| part.is_dir()).flat_map(|part| rust_files(part)) {
            let file = path.strip_prefix(crates()).unwrap().to_string_lossy().into_owned();
            for (index, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
                let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
                let words = words(comment);
                let gone = GONE.into_iter().filter(|(phrase, _)| !OF_COMMENTS.contains(phrase));
                for (phrase, instead) in gone.filter(|(phrase, _)| stands(&file, &words, phrase)) {
                    found.push(format!("{file}:{}: `{phrase}` is said as: {instead}", index + 1));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn words_that_are_gone_are_in_no_name() {
    let seen = names("fn left_toStranger() {} // anew");
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [" fn ", " left to stranger "]);
    let gone: Vec<_> = GONE.into_iter().filter(|(phrase, _)| !OF_COMMENTS.contains(phrase)).collect();
    let first: BTreeSet<&str> = gone.iter().filter_map(|(phrase, _)| phrase.split(' ').next()).collect();
    let mut found = Vec::new();
    for path in product_files() {
        let file = path.strip_prefix(crates()).unwrap().to_string_lossy().into_owned();
        let names = names(&product(&path));
        for name in names.iter().filter(|name| name.split(' ').any(|word| first.contains(word))) {
            for (phrase, instead) in gone.iter().filter(|(phrase, _)| stands(&file, name, phrase)) {
                found.push(format!("{file}: `{}`: `{phrase}` is said as: {instead}", name.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
