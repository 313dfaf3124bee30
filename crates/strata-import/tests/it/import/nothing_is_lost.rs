//! Every value of a source is in the result or in the report: a value that can be changed without changing either was lost.

use std::collections::BTreeMap;
use std::path::Path;

use strata_import::{Imported, Note, import};
use strata_source::world::Memory;

use super::folder;

pub(super) type Files = BTreeMap<String, Vec<u8>>;

pub(super) fn read(root: &Path, below: &str, files: &mut Files) {
    for entry in std::fs::read_dir(root.join(below)).unwrap().flatten() {
        let own = entry.file_name().into_string().unwrap();
        let path = if below.is_empty() { own } else { format!("{below}/{own}") };
        if entry.path().is_dir() {
            read(root, &path, files);
        } else {
            files.insert(path, std::fs::read(entry.path()).unwrap());
        }
    }
}

fn run(files: &Files) -> Imported {
    let world = files.iter().fold(Memory::new(), |world, (path, content)| world.file(path, content.clone()));
    import(&world, "fixture1", None)
}

/// What is seen of an import.
fn seen(imported: &Imported) -> String {
    let notes: Vec<String> =
        imported.notes.iter().map(|note| format!("{}: {}", super::at(note), note.message)).collect();
    format!("{:?}\n{:?}\n{notes:?}", imported.files, imported.secrets)
}

/// A value of a file: where it stands, and what it becomes.
struct Change {
    line: usize,
    old: String,
    text: String,
}

/// Words that are no values: names of blocks, of types, of files.
const WORDS: [&str; 13] = [
    "source",
    "type",
    "description",
    "variable",
    "resource",
    "module",
    "provider",
    "backend",
    "dynamic",
    "data",
    "output",
    "sensitive",
    "error_message",
];

/// Every number, truth and text behind a `=` or `:` or in a list, changed a little.
fn changes(text: &str) -> Vec<Change> {
    let mut found = Vec::new();
    let mut start = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        // The mark that some editors put first.
        let (mark, line) = line.strip_prefix('\u{feff}').map_or((0, line), |rest| (3, rest));
        start += mark;
        let first =
            line.trim_start().split([' ', ':', '=']).next().unwrap_or_default().trim_start_matches("- ");
        let is_comment = line.trim_start().starts_with('#') || line.trim_start().starts_with("//");
        if !is_comment && !WORDS.contains(&first) && line.contains(['=', ':', '[', '-', '"']) {
            for (from, to) in values(line) {
                let old = &line[from..to];
                let new = match old {
                    "true" => "false".to_owned(),
                    "false" => "true".to_owned(),
                    number if number.parse::<i64>().is_ok() => {
                        (number.parse::<i64>().unwrap() + 1).to_string()
                    }
                    text => format!("{text}7"),
                };
                let whole = format!("{}{new}{}", &text[..start + from], &text[start + to..]);
                found.push(Change { line: index + 1, old: old.to_owned(), text: whole });
            }
        }
        start += line.len();
    }
    found
}

/// The parts of a line that are values.
fn values(line: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let bytes = line.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let before = line[..at].trim_end();
        // What something is compared with is a question, no value.
        let asks = ["==", "!=", ">=", "<="].iter().any(|sign| before.ends_with(sign));
        let begins =
            !asks && before.ends_with(['=', ':', '[', ',']) || before.ends_with('-') && before.trim() == "-";
        match bytes[at] {
            b'"' => {
                let Some(end) = line[at + 1..].find('"').map(|end| at + 1 + end) else { break };
                let behind = line[end + 1..].trim_start();
                // A key, or something that is worked out.
                let is_key = behind.starts_with([':', '=']) || line[at..end].contains("${");
                if begins && !is_key && end > at + 1 {
                    found.push((at + 1, end));
                }
                at = end + 1;
            }
            letter if begins && (letter.is_ascii_alphanumeric() || letter == b'/') => {
                let in_flow = before.contains('{') || before.contains('[') || line.contains(" = ");
                let stops: &[char] =
                    if in_flow { &[',', ']', '}', ' ', '\r', '\n', '('] } else { &['#', '\r', '\n'] };
                let end = line[at..].find(stops).map_or(line.len(), |end| at + end);
                let end = at + line[at..end].trim_end().len();
                let word = &line[at..end];
                let hcl = line.contains(" = ");
                let is_value = if hcl {
                    word.parse::<i64>().is_ok() || ["true", "false"].contains(&word)
                } else {
                    !word.ends_with(':')
                        && !word.contains(": ")
                        && !word.contains("${")
                        && !word.contains("&")
                };
                if is_value && !word.is_empty() && word != "|" {
                    found.push((at, end));
                }
                at = end.max(at + 1);
            }
            _ => at += 1,
        }
    }
    found
}

/// Whether a line, or one that it stands below, was reported.
fn reported(imported: &Imported, file: &str, text: &str, line: usize) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut wanted = vec![line];
    let mut least = indent(lines[line - 1]);
    for above in (1..line).rev() {
        let found = lines[above - 1];
        let is_table = found.starts_with('[') && file.ends_with(".toml");
        if !found.trim().is_empty() && (indent(found) < least || is_table) {
            least = indent(found);
            wanted.push(above);
            if is_table {
                break;
            }
        }
    }
    // Values that nothing was made of are told by file, with the names of what has them.
    let names: Vec<String> = wanted.iter().map(|line| name_of(lines[line - 1])).collect();
    let grouped = |note: &Note| {
        let groups = [
            "nothing here has the default of",
            "nothing is made of all that",
            "values for cases that do not occur here",
        ];
        groups.iter().any(|group| note.message.starts_with(group))
            && names.iter().any(|name| note.message.contains(&format!("`{name}`")))
    };
    imported.notes.iter().any(|note| {
        let at = note.place.as_ref().filter(|place| &*place.file == file);
        at.is_some_and(|place| wanted.contains(&place.line) || grouped(note))
    })
}

/// What a line gives a value to: the attribute, or the label of a block.
fn name_of(line: &str) -> String {
    let line = line.trim_start();
    match line.strip_prefix("variable \"") {
        Some(rest) => rest.split('"').next().unwrap_or_default().to_owned(),
        None => line.split([' ', ':', '=']).next().unwrap_or_default().trim_matches('"').to_owned(),
    }
}

/// Values that nothing hangs on, each with the reason.
const NEEDLESS: [(&str, &str); 7] = [
    // The machines of a cluster boot from the installer that Strata puts in: the CD is reported at the machine.
    ("together/infrastructure/tofu/main.tf", "https://images.example/talos.iso"),
    ("together/infrastructure/tofu/main.tf", "iso"),
    ("together/infrastructure/tofu/main.tf", "local"),
    // Telmate's provider tells mount points apart by these, and uses the volume where there is one, whose size it only reads.
    ("telmate/old/main.tf", "first"),
    ("telmate/old/main.tf", "second"),
    ("telmate/old/main.tf", "/srv/unused"),
    ("telmate/old/main.tf", "1G"),
];

fn check(fixture: &str) {
    let mut files = Files::new();
    read(&folder(fixture), "", &mut files);
    let before = run(&files);
    let baseline = seen(&before);
    let mut lost = Vec::new();
    let mut tried = 0;
    for (path, content) in &files {
        let known = [".tf", ".tfvars", ".yaml", ".toml", ".tftpl", ".example"]
            .iter()
            .any(|ending| path.ends_with(ending));
        let Some(text) =
            std::str::from_utf8(content).ok().filter(|text| known && !text.starts_with("$ANSIBLE"))
        else {
            continue;
        };
        for change in changes(text) {
            tried += 1;
            let excused = NEEDLESS.contains(&(format!("{fixture}/{path}").as_str(), change.old.as_str()));
            if excused || reported(&before, path, text, change.line) {
                continue;
            }
            let mut changed = files.clone();
            changed.insert(path.clone(), change.text.clone().into_bytes());
            if seen(&run(&changed)) == baseline {
                lost.push(format!("{path}:{}: {}", change.line, change.old));
            }
        }
    }
    assert!(tried > 5, "{fixture} has values");
    assert!(lost.is_empty(), "lost without a word in {fixture}: {lost:#?}");
}

macro_rules! fixtures {
    ($($name:ident $folder:literal),* $(,)?) => {$(
        #[test]
        fn $name() {
            check($folder);
        }
    )*};
}

fixtures! {
    of_layered_terraform "layered",
    of_the_cluster_template_family "template",
    of_cluster_toml "toml",
    of_stacks "stacks",
    of_the_older_stacks "groups",
    of_the_telmate_provider "telmate",
    of_a_cluster_yaml_for_each "clusters",
    of_environments "environments",
    of_talhelper "talconfig",
    of_talhelper_with_one_network "simple",
    of_topf "topf",
    of_templates_of_topf "templates",
    of_machines_and_their_cluster "together",
    of_layers_with_talos_by_modules "checkouts/layers-talos",
    of_layers_with_other_machines_by_modules "checkouts/layers-plain",
    of_environments_with_modules "checkouts/environments-modules",
    of_values_beside_their_code "checkouts/values-beside",
    of_groups_with_modules "checkouts/groups-modules",
    of_stacks_with_modules "checkouts/stacks-modules",
    of_talos_with_workers "checkouts/talos-workers",
    of_counted_modules "checkouts/counted",
    of_clusters_with_code_beside_them "checkouts/clusters-code",
    of_examples_that_are_alike "checkouts/examples-alike",
}
