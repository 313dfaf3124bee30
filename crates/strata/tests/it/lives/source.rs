//! The files of a life's stacks as text: entries are cut out of one and put into another, as a person does it.

use std::collections::BTreeMap;

/// `vms` or `containers`.
pub(super) const SECTIONS: [(&str, &str); 2] = [("vms", "vm"), ("containers", "container")];

/// One guest in the source.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) stack: String,
    pub(super) section: &'static str,
    pub(super) key: String,
    /// Its lines below the key.
    pub(super) body: String,
}

impl Entry {
    pub(super) fn address(&self) -> String {
        let kind = SECTIONS.iter().find(|(section, _)| *section == self.section).unwrap().1;
        format!("{}/{kind}/{}", self.stack, self.key)
    }

    pub(super) fn vmid(&self) -> u64 {
        let line = self.body.lines().find_map(|line| line.trim().strip_prefix("vmId: ")).unwrap();
        line.trim().parse().unwrap()
    }

    pub(super) fn has(&self, text: &str) -> bool {
        self.body.contains(text)
    }

    /// Sets a key of one line.
    pub(super) fn set(&mut self, key: &str, value: &str) {
        let start = format!("    {key}: ");
        let kept = self.body.split_inclusive('\n').filter(|line| !line.starts_with(&start));
        self.body = kept.collect::<String>() + &format!("{start}{value}\n");
    }
}

pub(super) fn file(stack: &str) -> String {
    format!("stacks/{stack}/stack.yaml")
}

/// The file of a stack.
pub(super) fn text(stack: &str, entries: &[Entry], moved: &[(String, String)]) -> String {
    let mut text = format!(
        "# What {stack} has.\nmetadata: {{name: {stack}, environment: test}}\nproxmox: {{target: pve, node: pve1}}\n"
    );
    if !moved.is_empty() {
        text.push_str("moved:\n");
        for (from, to) in moved {
            text.push_str(&format!("  - {{from: {from}, to: {to}}}\n"));
        }
    }
    for (section, _) in SECTIONS {
        let own: Vec<&Entry> =
            entries.iter().filter(|one| one.stack == stack && one.section == section).collect();
        if !own.is_empty() {
            text.push_str(&format!("{section}:\n"));
        }
        for entry in own {
            text.push_str(&format!("  {}:\n{}", entry.key, entry.body));
        }
    }
    text
}

/// The entries of files, also those that Strata wrote.
pub(super) fn entries(files: &BTreeMap<String, String>) -> Vec<Entry> {
    let mut found: Vec<Entry> = Vec::new();
    for (stack, text) in files {
        let mut section = None;
        for line in text.split_inclusive('\n') {
            let key = line.trim_end().strip_suffix(':');
            if !line.starts_with(' ') {
                section = SECTIONS.iter().map(|one| one.0).find(|name| key == Some(*name));
            } else if let Some(section) = section {
                if line.starts_with("   ") {
                    found.last_mut().unwrap().body.push_str(line);
                } else {
                    let key = key.unwrap_or_else(|| panic!("not an entry: {line}")).trim().to_owned();
                    found.push(Entry { stack: stack.clone(), section, key, body: String::new() });
                }
            }
        }
    }
    found
}
