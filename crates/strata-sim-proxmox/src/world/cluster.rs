//! What belongs to the cluster as a whole: its options, and the small configuration files made of sections.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// A section of a configuration file: a kind and options.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Section {
    pub kind: String,
    /// Options as text; a list has one entry a line.
    pub props: IndexMap<String, String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Cluster {
    /// Empty for a node that never joined one.
    pub name: String,
    /// datacenter.cfg.
    pub options: BTreeMap<String, String>,
    /// By file (`mapping/pci`, `ha/resources`, `backup`, …), then by id.
    pub files: BTreeMap<String, IndexMap<String, Section>>,
}

impl Cluster {
    pub fn file<'c>(&'c self, name: &str) -> impl Iterator<Item = (&'c str, &'c Section)> + use<'c> {
        self.files.get(name).into_iter().flatten().map(|(id, section)| (id.as_str(), section))
    }

    pub fn section(&self, file: &str, id: &str) -> Option<&Section> {
        self.files.get(file)?.get(id)
    }

    pub fn file_mut(&mut self, name: &str) -> &mut IndexMap<String, Section> {
        self.files.entry(name.to_owned()).or_default()
    }
}
