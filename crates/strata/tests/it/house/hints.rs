//! A hint, and what is done next, is chosen by the kind of an error and never by its words. Where others have nothing but words, one place
//! for each of them reads those into kinds; it is listed here with its reason.

use std::collections::BTreeSet;

use super::{crates, product, rust_files};

/// The file, and whose words it reads.
const CLASSIFIERS: [(&str, &str); 8] = [
    ("strata-import/src/hcl.rs", "the parser of HCL has no kinds of errors"),
    ("strata-kubernetes/src/error.rs", "several disruption budgets are a 500 with a sentence"),
    ("strata-proxmox/src/api/classify.rs", "Proxmox VE has sentences alone"),
    ("strata-state/src/http/foreign.rs", "GitLab's 404 of a project is that of a state, but for a word"),
    ("strata-talos-client/src/tls.rs", "rustls wraps one error of webpki without its type"),
    ("strata-tofu/src/message.rs", "OpenTofu's diagnostics have summaries and no codes"),
    ("strata-truenas/src/error.rs", "some complaints of the middleware have no errname"),
    ("strata-yaml/src/parse/syntax.rs", "the scanner of YAML has no kinds of errors"),
];

/// Files whose looks at words choose no hint and no behaviour, and what they do.
const OTHERS: [(&str, &str); 5] = [
    ("strata/src/commands/adopt.rs", "an address is not said twice in one message"),
    ("strata-adopt/src/vm.rs", "the YAML that it has just written"),
    ("strata-import/src/context.rs", "a note that names a key already is not made again"),
    ("strata-import/src/gotemplate.rs", "keywords of Go's templates"),
    ("strata/src/commands/demo.rs", "an example's YAML"),
];

const LOOKS: [&str; 5] = [".contains(", ".starts_with(", ".ends_with(", ".says(", ".find(\""];

/// What is called so is written for people.
const MESSAGES: [&str; 13] = [
    "message", "reason", "error", "errors", "summary", "problem", "status", "stderr", "hint", "failure",
    "refusal", "why", "said",
];

/// What is done to a text before it is looked at.
const DRESS: [&str; 8] = [
    ".to_string()",
    ".to_ascii_lowercase()",
    ".to_lowercase()",
    ".as_str()",
    ".message()",
    ".reason()",
    ".trim()",
    ".text()",
];

/// Whether a line looks for words in a message.
fn reads_a_message(line: &str) -> bool {
    LOOKS.iter().any(|look| {
        line.match_indices(look).any(|(at, _)| {
            let (before, after) = (&line[..at], &line[at + look.len()..]);
            let literal =
                after.trim_start_matches('&').strip_prefix('"').and_then(|rest| rest.split('"').next());
            // Marks of keys (`BEGIN … PRIVATE KEY`) and of templates (`<no value>`) are no sentences.
            let is_word = |word: &&str| word.chars().filter(char::is_ascii_lowercase).count() > 1;
            let is_sentence = literal
                .is_some_and(|text| !text.starts_with('<') && text.split(' ').filter(is_word).count() > 1);
            is_sentence || names_a_message(before)
        })
    })
}

fn names_a_message(before: &str) -> bool {
    let dressed = DRESS.iter().find_map(|dress| before.strip_suffix(dress));
    if [".to_string()", ".message()", ".reason()"].iter().any(|dress| before.ends_with(dress)) {
        return true;
    }
    let bare = dressed.unwrap_or(before);
    let name = bare.rsplit(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').next();
    name.is_some_and(|name| MESSAGES.contains(&name))
}

#[test]
fn nothing_is_chosen_by_the_words_of_a_message() {
    let (mut found, mut used) = (Vec::new(), BTreeSet::new());
    for folder in std::fs::read_dir(crates()).unwrap() {
        let folder = folder.unwrap().path();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        // The simulator and what tests stand on speak for the other side.
        if name.starts_with("strata-sim") || name == "strata-testkit" {
            continue;
        }
        for path in rust_files(&folder.join("src")) {
            let file = path.strip_prefix(crates()).unwrap().to_string_lossy().into_owned();
            for line in product(&path).lines().filter(|line| reads_a_message(line)) {
                match CLASSIFIERS.iter().chain(&OTHERS).find(|(known, _)| *known == file) {
                    Some((known, _)) => drop(used.insert(*known)),
                    None => found.push(format!("{file}: {}", line.trim())),
                }
            }
        }
    }
    assert!(found.is_empty(), "give the error a kind and choose by that:\n{}", found.join("\n"));
    let unused: Vec<_> = CLASSIFIERS.iter().chain(&OTHERS).filter(|(file, _)| !used.contains(file)).collect();
    assert!(unused.is_empty(), "allowed, and reads no words: {unused:?}");
}

#[test]
fn a_look_at_words_is_found() {
    for line in [
        r#"if message.contains("encrypted for") {"#,
        r#"Err(error) if error.says("no such token") => {}"#,
        r#"error.message.contains(text)"#,
        r#"if error.to_string().starts_with(&said) {"#,
        r#"status.to_ascii_lowercase().contains(text)"#,
        r#"answer.body.contains("does not exist")"#,
    ] {
        assert!(reads_a_message(line), "{line}");
    }
    for line in [
        r#"names.contains(&name)"#,
        r#"text.starts_with("sha256:")"#,
        r#"text.contains(" \n")"#,
        r#"line.starts_with("- ")"#,
        r#"codes.contains(&status)"#,
    ] {
        assert!(!reads_a_message(line), "{line}");
    }
}
