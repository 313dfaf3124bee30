//! The firewall of the cluster, of a node or of a guest: options, rules, aliases, IP sets, security groups.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// A rule: type, action, source and so on as text. `enable` is 0 or 1.
pub type Rule = IndexMap<String, String>;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Alias {
    pub name: String,
    pub cidr: String,
    pub comment: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IpSet {
    pub comment: Option<String>,
    pub entries: Vec<Entry>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub cidr: String,
    pub nomatch: bool,
    pub comment: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Group {
    pub comment: Option<String>,
    pub rules: Vec<Rule>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Firewall {
    pub options: BTreeMap<String, String>,
    pub rules: Vec<Rule>,
    /// By name in lower case.
    pub aliases: BTreeMap<String, Alias>,
    pub ipsets: BTreeMap<String, IpSet>,
    /// Only in the firewall of the cluster.
    pub groups: BTreeMap<String, Group>,
}
