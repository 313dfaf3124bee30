//! docs/codes.md: each code of a message has a section, and the files of a section cause it.

use std::collections::BTreeSet;

use serde_json::Value;
use strata_diagnostics::CodePage;
use strata_testkit::{Repo, Strata};

use crate::world::BINARY;

/// What is not shown on the page.
const SETTINGS: &str = r#"repository: "f63963b093"
state: {backend: local}
targets:
  pve:
    proxmox: {endpoint: "https://192.0.2.11:8006", token: {env: PVE_TOKEN}}
"#;

/// Codes without an example on the page, and what shows them.
const ELSEWHERE: [(&str, &str); 17] = [
    ("copied-keys", "needs keys of a cluster: findings/etcd/keys.rs"),
    ("dependencies", "a graph that cannot be made in order; other checks find the known causes first"),
    ("foreign-keys", "needs keys of a cluster: findings/etcd/keys.rs"),
    ("ha-state", "the words of a guest that contradict its `ha`: high_availability.rs"),
    ("known-hosts", "needs a key that Flux fetches with: strata-blueprint"),
    ("no-endpoint", "an address is missed before the endpoint is"),
    ("no-id", "a range of one number and its like: strata-blueprint"),
    ("no-repository", "there is no folder to show"),
    ("no-target", "other checks find the known causes first"),
    ("no-vmid", "files of another family: strata-source/tests/it/flat.rs"),
    ("readme", "a whole module: strata-tofu"),
    ("secret-on-storage", "needs encrypted files: leak.rs"),
    ("too-deep", "a long file"),
    ("too-large", "a long file"),
    ("unknown-secret", "needs encrypted files: strata-source/tests/it/references.rs"),
    ("unreadable", "what is no text"),
    ("unresolved", "needs encrypted files: secrets.rs"),
];

#[test]
fn the_files_of_a_section_cause_its_code() {
    let mut wrong = Vec::new();
    let mut without = BTreeSet::new();
    for page in CodePage::all() {
        let files: Vec<(&str, &str)> = page.examples().collect();
        if files.is_empty() {
            without.insert(page.code);
            continue;
        }
        let repo = Repo::empty();
        repo.write("strata.yaml", SETTINGS);
        for (path, content) in &files {
            repo.write(path, content);
        }
        let verb: &[&str] = match page.text.contains("```hcl") && page.code != "not-driven" {
            true => &["--json", "policy", "check"],
            false => &["--json", "validate"],
        };
        let said = Strata::new(BINARY, &repo).run(verb);
        let lines = said.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let codes: Vec<String> =
            lines.filter_map(|line| line["code"].as_str().map(str::to_owned)).collect::<Vec<_>>();
        if !codes.iter().any(|code| code == page.code) {
            wrong.push(format!("{}: {codes:?}\n{}", page.code, said.all()));
        }
        if codes.iter().any(|code| ["unknown-key", "syntax"].contains(&code.as_str()) && code != page.code) {
            wrong.push(format!("{}: the example has another mistake\n{}", page.code, said.all()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(without, ELSEWHERE.iter().map(|(code, _)| *code).collect(), "say why, or show a file");
}

#[test]
fn a_code_is_explained_as_it_stands_in_a_message() {
    let repo = Repo::empty();
    let strata = Strata::new(BINARY, &repo);
    let plain = strata.run(&["explain", "unknown-key"]).ok().stdout;
    assert!(plain.starts_with("A key that this part of the file does not have."), "{plain}");
    assert!(plain.contains("stacks/web/stack.yaml:\n    proxmox:"), "{plain}");
    assert_eq!(strata.run(&["explain", "error[unknown-key]:"]).ok().stdout, plain);
    let all = strata.run(&["explain"]).ok().stdout;
    assert_eq!(all.lines().count(), CodePage::all().count());
    assert!(all.lines().any(|line| line.starts_with("vmid-collision ")), "{all}");
    let wrong = strata.run(&["explain", "unknown-kye"]).code(64);
    insta::assert_snapshot!(wrong.stderr, @r"
    error: no message has the code `unknown-kye`
      hint: did you mean `unknown-key`?
    ");
}
