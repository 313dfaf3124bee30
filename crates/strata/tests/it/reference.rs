//! The reference in docs/ says what the program knows.

use std::fmt::Write as _;
use std::path::Path;

use strata_resource::{ChangeEffect, FieldRule, KindTable, Literal, Unit, registered_kinds};

use crate::world::BINARY;

const KINDS: [&str; 6] = ["strata", "stack", "cluster", "nodes", "environment", "hypervisor"];

#[test]
fn the_reference_is_current() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let repo = strata_testkit::Repo::empty();
    for kind in KINDS {
        let known =
            strata_testkit::Strata::new(BINARY, &repo).run(&["schema", kind, "--markdown"]).ok().stdout;
        let path = folder.join(format!("{kind}.md"));
        if std::env::var_os("STRATA_UPDATE_REFERENCE").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &known).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == known,
            "docs/reference/{kind}.md is old: run the tests with STRATA_UPDATE_REFERENCE=1"
        );
    }
}

fn kinds() -> Vec<&'static KindTable> {
    strata_providers::kinds::register();
    registered_kinds()
}

/// What is written is what is known; with the variable it becomes so.
fn assert_current(path: &Path, known: &str) {
    if std::env::var_os("STRATA_UPDATE_REFERENCE").is_some() {
        std::fs::write(path, known).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == known, "{} is old: run the tests with STRATA_UPDATE_REFERENCE=1", path.display());
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "–" } else { text }
}

fn listed(fields: impl Iterator<Item = &'static FieldRule>) -> String {
    let names: Vec<String> = fields.map(|field| format!("`{}`", field.path)).collect();
    or_dash(&names.join(", ")).to_owned()
}

fn effect(field: &FieldRule) -> String {
    match field.effect {
        ChangeEffect::InPlace => "at once".to_owned(),
        ChangeEffect::Restart => "after a restart".to_owned(),
        ChangeEffect::Replace => format!("replaced: {}", field.reason),
        ChangeEffect::CreateOnly => "only at creation".to_owned(),
        ChangeEffect::Grow => "grows, never shrinks".to_owned(),
        ChangeEffect::Migrate => "migrates".to_owned(),
        ChangeEffect::Computed => "never compared".to_owned(),
    }
}

fn takes(field: &FieldRule) -> String {
    let mut takes = vec![field.kind.as_str().to_owned()];
    match field.unit {
        Unit::None => {}
        Unit::Bytes => takes.push("bytes".to_owned()),
        Unit::Mebibytes => takes.push("MiB".to_owned()),
    }
    match field.default {
        None => {}
        Some(Literal::Bool(on)) => takes.push(format!("default {}", if on { "yes" } else { "no" })),
        Some(Literal::Int(number)) => takes.push(format!("default {number}")),
        Some(Literal::Text("")) => takes.push("default empty".to_owned()),
        Some(Literal::Text(text)) => takes.push(format!("default `{text}`")),
    }
    if field.write_only {
        takes.push("cannot be read back".to_owned());
    }
    takes.join(", ")
}

/// Every kind of object with its fields, as plans, states and events name them.
#[test]
fn the_reference_of_kinds_is_current() {
    let mut text = "## Kinds\n\nThe kinds of objects that Strata manages, and their fields as plans, states and events name them. Made from the tables of the kinds.\n".to_owned();
    for table in kinds() {
        let _ = write!(text, "\n### {}\n\n{}", table.name, table.summary.trim());
        if let Some(reason) = table.no_tofu {
            let _ = write!(text, " Not rendered for OpenTofu: {reason}.");
        }
        text.push_str("\n\n| field | meaning | takes | a change | key of the remote | for OpenTofu |\n|---|---|---|---|---|---|\n");
        for field in table.all_fields() {
            let remote =
                if field.remote.is_empty() { "–".to_owned() } else { format!("`{}`", field.remote) };
            let tofu = match (table.no_tofu, field.no_tofu) {
                (None, "") => "rendered",
                (None, reason) => reason,
                (Some(_), _) => "–",
            };
            let (takes, effect) = (takes(field), effect(field));
            let _ = writeln!(
                text,
                "| `{}` | {} | {takes} | {effect} | {remote} | {tofu} |",
                field.path,
                field.help.trim()
            );
        }
    }
    assert_current(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/kinds.md"), &text);
}

const BEGIN: &str = "<!-- made from the tables of the kinds -->\n";
const END: &str = "<!-- end -->\n";

/// The table of docs/ownership.md says what the tables of the kinds say.
#[test]
fn the_table_of_ownership_is_current() {
    let mut table = "| kind | identity | what proves it is ours | digest taken by | only at creation | cannot be read back | recovery of an open entry |\n|---|---|---|---|---|---|---|\n".to_owned();
    for kind in kinds() {
        let identity: Vec<String> = kind.identity.iter().map(|field| format!("`{field}`")).collect();
        let creation =
            |field: &&FieldRule| field.effect == ChangeEffect::CreateOnly && !field.path.ends_with(".*");
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} | {} | {} |",
            kind.name,
            identity.join(", "),
            kind.proof,
            or_dash(kind.digest_on),
            listed(kind.all_fields().filter(creation)),
            listed(kind.all_fields().filter(|field| field.write_only)),
            kind.recovery,
        );
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ownership.md");
    let written = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = written.split_once(BEGIN).expect("the table begins");
    let (_, after) = rest.split_once(END).expect("the table ends");
    assert_current(&path, &format!("{before}{BEGIN}{table}{END}{after}"));
}

/// The table of events in docs/json.md.
#[test]
fn the_table_of_events_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("<!-- events -->").unwrap();
    let (_, after) = rest.split_once("<!-- /events -->").unwrap();
    let table = strata_events::schemas::events_table();
    assert_current(&path, &format!("{before}<!-- events -->\n{table}<!-- /events -->{after}"));
}

/// The picture in docs/graph.md is what the command that stands there draws.
#[test]
fn the_picture_of_the_graph_is_current() {
    let repo = strata_testkit::Repo::empty();
    let strata = strata_testkit::Strata::new(BINARY, &repo);
    strata.run(&["init", "--example", "prod", "."]).ok();
    let image = strata.run(&["graph", "--format", "svg"]).ok().stdout;
    assert_current(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images/graph.svg"), &image);
    let page = strata.run(&["graph", "--format", "html"]).ok().stdout;
    assert!(page.starts_with("<!doctype html>") && page.contains(&image), "the page has the same picture");
}
