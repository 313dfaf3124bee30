//! What differs between the files of two environments, and the file of one with what the other has.
//!
//! What is meant to differ stays: offsets, numbers, addresses, names, places, secrets. So does what only the second one says. Each can be named, and is
//! then brought over, or removed, like the rest.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use strata_diagnostics::{Diagnostics, SourceMap};
use strata_yaml::edit::{self, EditError, Step};
use strata_yaml::{Decode, Node, Parsed, Rules, Shape, Source, parse};

use crate::environment::{Environment, STACKS};
use crate::value::place::{ADDRESS, BRIDGE, VLAN, VM_ID};

/// Why a secret stays: its value is not shown.
pub const SECRET: &str = "a secret";

/// Two environments, and how much of what differs is brought from the first to the second.
#[derive(Debug, Clone, Copy)]
pub struct Promotion<'a> {
    /// The text of the first one's file.
    pub from: &'a str,
    /// The text of the second one's file.
    pub to: &'a str,
    /// Only this stack.
    pub stack: Option<&'a str>,
    /// Paths that are brought over although they are meant to differ.
    pub also: &'a [String],
}

/// One value that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// `stacks.web.vms.app.memory`
    pub path: String,
    /// In the first; `None` where it says nothing.
    pub from: Option<Json>,
    /// In the second.
    pub to: Option<Json>,
    /// Why it stays as it is in the second; `None` where it is brought over.
    pub kept: Option<&'static str>,
}

/// What differs, and the second file with what is brought over.
#[derive(Debug, Clone, PartialEq)]
pub struct Promoted {
    pub differences: Vec<Difference>,
    pub text: String,
    /// Paths that were named and do not differ.
    pub unmatched: Vec<String>,
}

#[derive(Debug, Clone)]
struct Leaf {
    value: Json,
    /// Why it is meant to differ.
    reason: Option<&'static str>,
}

type Leaves = BTreeMap<Vec<String>, Leaf>;

impl Promotion<'_> {
    /// Compares the two; nothing is written.
    pub fn compare(&self) -> Result<Promoted, EditError> {
        let (from, to) = (self.leaves(self.from)?, self.leaves(self.to)?);
        let mut text = self.to.to_owned();
        let mut differences: Vec<Difference> = Vec::new();
        let mut replaced: Vec<&[String]> = Vec::new();
        for (path, leaf) in &from {
            let there = to.get(path);
            if there.is_some_and(|there| there.value == leaf.value) {
                continue;
            }
            let kept = match self.names(path) {
                true => None,
                false => leaf.reason.or_else(|| left_out(&to, path)),
            };
            if kept.is_none() {
                text = edit::set(&text, &steps(path), &leaf.value)?;
                replaced.push(path);
            }
            let to = there.map(|there| there.value.clone());
            differences.push(Difference { path: path.join("."), from: Some(leaf.value.clone()), to, kept });
        }
        let told = |path: &[String]| from.keys().any(|other| other.starts_with(path));
        for (path, leaf) in to.iter().filter(|(path, _)| !told(path)) {
            if replaced.iter().any(|above| path.starts_with(above) || above.starts_with(path)) {
                continue;
            }
            let kept = match self.names(path) {
                true => None,
                false => Some(leaf.reason.unwrap_or("only there")),
            };
            if kept.is_none() {
                text = edit::remove(&text, &steps(path))?;
            }
            let (path, to) = (path.join("."), Some(leaf.value.clone()));
            differences.push(Difference { path, from: None, to, kept });
        }
        differences.sort_by(|one, other| one.path.cmp(&other.path));
        let matched = |named: &String| differences.iter().any(|one| is_within(&one.path, named));
        let unmatched = self.also.iter().filter(|named| !matched(named)).cloned().collect();
        Ok(Promoted { differences, text, unmatched })
    }

    fn names(&self, path: &[String]) -> bool {
        let path = path.join(".");
        self.also.iter().any(|named| is_within(&path, named))
    }

    fn leaves(&self, text: &str) -> Result<Leaves, EditError> {
        let mut leaves = Leaves::new();
        gather(
            &edit::value_of(text)?,
            &Environment::shape(),
            &Rules::default(),
            (Vec::new(), None),
            &mut leaves,
        );
        // A file with nothing in it says nothing.
        leaves.remove(&Vec::new());
        if let Some(stack) = self.stack {
            let own =
                |path: &[String]| path.len() > 1 && STACKS.contains(&path[0].as_str()) && path[1] == stack;
            leaves.retain(|path, _| own(path));
        }
        // A name with nothing after it is a stack that is there as it is; `null` would leave it out.
        for section in STACKS {
            for (path, leaf) in &mut leaves {
                if path.len() == 2 && path[0] == section && leaf.value.is_null() && is_bare(text, path) {
                    leaf.value = Json::Object(serde_json::Map::new());
                }
            }
        }
        Ok(leaves)
    }
}

fn is_within(path: &str, named: &str) -> bool {
    path.strip_prefix(named).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn steps(path: &[String]) -> Vec<Step> {
    path.iter().map(|key| Step::Key(key.clone())).collect()
}

/// What the second environment leaves out stays out.
fn left_out(to: &Leaves, path: &[String]) -> Option<&'static str> {
    let above = (1..path.len()).filter_map(|length| to.get(&path[..length]));
    above.into_iter().any(|leaf| leaf.value.is_null()).then_some("left out there")
}

fn is_bare(text: &str, path: &[String]) -> bool {
    let mut sources = SourceMap::new();
    let file = sources.add("environment", text);
    let Parsed::Document(tree) = parse(&sources, file, &mut Diagnostics::new()) else { return false };
    let node: Option<&Node> = tree.at(&[&path[0], &path[1]]);
    node.and_then(Node::as_scalar).is_some_and(|scalar| scalar.text.is_empty())
}

/// Every value below a place, down to scalars and lists.
fn gather(
    value: &Json,
    shape: &Shape,
    rules: &Rules,
    (path, reason): (Vec<String>, Option<&'static str>),
    into: &mut Leaves,
) {
    let reason = reason.or_else(|| of_rules(rules)).or_else(|| is_secret(value).then_some(SECRET));
    match (value, shape) {
        (value, Shape::Partial(shape) | Shape::Reference(shape)) => {
            gather(value, shape, rules, (path, reason), into)
        }
        (value, Shape::AnyOf(shapes)) => {
            let fits = |shape: &&Shape| {
                matches!(shape, Shape::Map(..) | Shape::Record(_) | Shape::Partial(_)) == value.is_object()
            };
            match shapes.iter().find(fits) {
                Some(shape) => gather(value, shape, rules, (path, reason), into),
                None => drop(into.insert(path, Leaf { value: value.clone(), reason })),
            }
        }
        (Json::Object(map), Shape::Record(spec)) if !map.is_empty() && !is_reference(map) => {
            for (key, value) in map {
                let below = (
                    path.iter().cloned().chain([key.clone()]).collect(),
                    reason.or_else(|| of_key(key, path.len())),
                );
                match spec().field_or_alias(key) {
                    Some(field) => gather(value, &field.shape, &field.rules, below, into),
                    None => gather(value, &Shape::Any, &Rules::default(), below, into),
                }
            }
        }
        (Json::Object(map), shape) if !map.is_empty() && !is_reference(map) => {
            let item = match shape {
                Shape::Map(_, item) => item,
                _ => &Shape::Any,
            };
            for (key, value) in map {
                let below = path.iter().cloned().chain([key.clone()]).collect();
                gather(value, item, rules, (below, reason), into);
            }
        }
        (Json::Array(items), Shape::List(item)) => {
            // A list is one value: it is as much meant to differ as anything in it.
            let mut inside = Leaves::new();
            for (index, value) in items.iter().enumerate() {
                gather(value, item, rules, (vec![index.to_string()], reason), &mut inside);
            }
            let reason = reason.or_else(|| inside.values().find_map(|leaf| leaf.reason));
            into.insert(path, Leaf { value: value.clone(), reason });
        }
        _ => drop(into.insert(path, Leaf { value: value.clone(), reason })),
    }
}

fn is_reference(map: &serde_json::Map<String, Json>) -> bool {
    map.len() == 1 && map.keys().all(|key| Source::KEYS.contains(&key.as_str()))
}

fn is_secret(value: &Json) -> bool {
    value.as_object().is_some_and(|map| is_reference(map) && map.contains_key("secret"))
}

fn of_rules(rules: &Rules) -> Option<&'static str> {
    match rules.label {
        _ if rules.secret => Some(SECRET),
        Some(VM_ID) => Some("a number"),
        Some(ADDRESS) => Some("an address"),
        Some(VLAN | BRIDGE) => Some("a place in the network"),
        _ => None,
    }
}

/// Why a key is meant to differ, whatever it holds.
fn of_key(key: &str, depth: usize) -> Option<&'static str> {
    match (key, depth) {
        ("offsets" | "tags", 0) => Some("of the environment"),
        ("targets", 0) => Some("where the environment is"),
        ("name" | "hostname" | "clusterName" | "naming" | "pool", _) => Some("a name"),
        ("node" | "nodes" | "hypervisor" | "hypervisors" | "target" | "endpoint", 1..) => Some("a place"),
        ("secrets" | "token" | "tokenId", 1..) => Some(SECRET),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEV: &str = "\
offsets: {vmId: 0}
stacks:
  web:
    vms:
      app: {memory: 4096, vmId: 9100, cpu: {type: host}, network: [{bridge: vmbr0}]}
      new: {cores: 2}
      gone: {cores: 2}
  bare:
";

    const STAGING: &str = "\
# staging
offsets: {vmId: 1000} # by a thousand
stacks:
  web:
    vms:
      # the application
      app: {memory: 2048, onboot: true}
      gone: null
";

    fn promoted(stack: Option<&str>, also: &[&str]) -> Promoted {
        let also: Vec<String> = also.iter().map(|path| (*path).to_owned()).collect();
        Promotion { from: DEV, to: STAGING, stack, also: &also }.compare().unwrap()
    }

    #[test]
    fn what_is_meant_to_differ_stays_and_comments_do() {
        let found = promoted(None, &[]);
        let told: Vec<(&str, Option<&str>)> =
            found.differences.iter().map(|one| (one.path.as_str(), one.kept)).collect();
        assert_eq!(
            told,
            [
                ("offsets.vmId", Some("of the environment")),
                ("stacks.bare", None),
                ("stacks.web.vms.app.cpu.type", None),
                ("stacks.web.vms.app.memory", None),
                ("stacks.web.vms.app.network", Some("a place in the network")),
                ("stacks.web.vms.app.onboot", Some("only there")),
                ("stacks.web.vms.app.vmId", Some("a number")),
                ("stacks.web.vms.gone.cores", Some("left out there")),
                ("stacks.web.vms.new.cores", None),
            ]
        );
        assert!(
            found.text.starts_with("# staging\noffsets: {vmId: 1000} # by a thousand\n"),
            "{}",
            found.text
        );
        assert!(
            found.text.contains("# the application\n") && found.text.contains("bare: {}"),
            "{}",
            found.text
        );
        let again = Promotion { from: DEV, to: &found.text, stack: None, also: &[] }.compare().unwrap();
        assert_eq!(again.text, found.text, "what was brought over is there");
    }

    #[test]
    fn a_file_with_nothing_in_it_takes_and_gives() {
        let nothing = Promotion { from: "", to: STAGING, stack: None, also: &[] }.compare().unwrap();
        assert_eq!(nothing.text, STAGING);
        assert!(nothing.differences.iter().all(|one| one.kept.is_some()), "{:?}", nothing.differences);
        let all = Promotion { from: DEV, to: "", stack: Some("web"), also: &[] }.compare().unwrap();
        assert!(all.text.contains("memory: 4096") && !all.text.contains("vmId"), "{}", all.text);
    }

    #[test]
    fn what_is_named_is_brought_over_or_removed() {
        let found =
            promoted(Some("web"), &["stacks.web.vms.app.vmId", "stacks.web.vms.app.onboot", "stacks.x"]);
        assert!(found.text.contains("vmId: 9100") && !found.text.contains("onboot"), "{}", found.text);
        assert!(!found.text.contains("bare"), "only the stack that was named");
        assert_eq!(found.unmatched, ["stacks.x"]);
    }
}
