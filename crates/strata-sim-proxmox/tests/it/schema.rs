//! Every route and every parameter of the simulator beside the schema.

use std::collections::BTreeSet;

use crate::compare::parameters;
use crate::published::Published;

/// Formats that no table checks, and why.
const UNCHECKED: &[(&str, &str)] = &[
    ("email-or-username", "no recording has the words for it"),
    ("email-or-username-list", "no recording has the words for it"),
    ("pve-priv-list", "the handler refuses what is no privilege"),
    ("storage-pair-list", "the handler reads the map of storages, in the words of the recording"),
    ("bridge-pair-list", "no other cluster can be reached"),
    ("pve-command-batch", "root's alone, and nothing is carried out"),
    ("string-list", "takes every text"),
];

/// Other differences: the call, how its line begins, and why it stays.
const KNOWN: &[(&str, &str, &str)] = &[
    ("GET /", "", "the index of the API is not in its own schema"),
    ("POST /access/domains/{realm}/sync", "", "what is not given is taken from the realm"),
    ("PUT /cluster/sdn/fabrics/fabric/{id}", "delete: optional", "optional for each protocol"),
    ("POST /cluster/sdn/fabrics/node/{fabric_id}", "interfaces: optional", "optional for each protocol"),
    (
        "PUT /cluster/sdn/fabrics/node/{fabric_id}/{node_id}",
        "interfaces: optional",
        "optional for each protocol",
    ),
];

fn is_known(call: &str, line: &str) -> bool {
    KNOWN.iter().any(|(of, start, _)| *of == call && line.starts_with(start))
        || UNCHECKED.iter().any(|(format, _)| line.contains(&format!(": not checked, format {format} ")))
}

/// A parameter of the path is always there, whatever the schema says.
fn is_in_path(path: &str, line: &str) -> bool {
    line.split_once(": optional is").is_some_and(|(name, _)| path.contains(&format!("{{{name}}}")))
}

#[test]
#[ignore = "needs the published schema of the API: just schema"]
fn every_table_says_what_the_schema_says() {
    let published = Published::load().unwrap_or_else(|why| panic!("nothing was compared: {why}"));
    let mut differences = BTreeSet::new();
    let tables = strata_sim_proxmox::tables();
    for table in &tables {
        let call = format!("{} {}", table.method, table.path);
        let lines = match published.call(table.method, &table.path) {
            Some(there) => parameters(&table.parameters, there),
            None => BTreeSet::from(["the schema has no such call".to_owned()]),
        };
        let new = lines.iter().filter(|line| !is_known(&call, line) && !is_in_path(&table.path, line));
        differences.extend(new.map(|line| format!("{call} {line}")));
    }
    let list: Vec<String> = differences.into_iter().collect();
    assert!(list.is_empty(), "{} differences in {} tables:\n{}", list.len(), tables.len(), list.join("\n"));
}
