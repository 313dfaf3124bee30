//! `.sops.yaml`: which keys and which rule a new file gets, by its path.

use std::path::{Path, PathBuf};

use regex::Regex;

use super::SopsError;
use super::file::Settings;
use super::format::File as _;
use super::rule::RuleSetting;
use super::tree::{Item, Node};
use super::yaml::YamlFile;
use crate::value::Value;

/// The name of the file.
pub const CONFIG_FILE: &str = ".sops.yaml";

/// The creation rules of a repository.
#[derive(Debug, Clone, Default)]
pub struct CreationRules {
    rules: Vec<CreationRule>,
}

/// What a file gets whose path the rule matches.
#[derive(Debug, Clone)]
pub struct CreationRule {
    path: Option<Regex>,
    pub settings: Settings,
    /// Kinds of keys that only other programs can use: `pgp`, `kms`, …
    pub foreign: Vec<String>,
}

/// Kinds of keys besides age, as a rule and as a group name them.
const FOREIGN: [&str; 8] =
    ["pgp", "kms", "gcp_kms", "hckms", "azure_keyvault", "hc_vault_transit_uri", "hc_vault", "azure_kv"];

impl CreationRules {
    pub fn parse(text: &str) -> Result<Self, SopsError> {
        let file = YamlFile::parse(text)?;
        let root = Node::Mapping(file.documents()[0].items.clone());
        let rules = match field(&root, "creation_rules") {
            Some(rules) => list(rules).map(CreationRule::read).collect::<Result<_, _>>()?,
            None => Vec::new(),
        };
        Ok(Self { rules })
    }

    /// The nearest `.sops.yaml` at or above a directory.
    pub fn find(directory: &Path) -> Option<PathBuf> {
        directory.ancestors().map(|directory| directory.join(CONFIG_FILE)).find(|path| path.is_file())
    }

    /// The first rule for a file; its path starts at the directory of `.sops.yaml`.
    pub fn for_path(&self, path: &Path) -> Option<&CreationRule> {
        let path: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
        let path = path.join("/");
        self.rules.iter().find(|rule| rule.path.as_ref().is_none_or(|regex| regex.is_match(&path)))
    }

    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    pub fn len(&self) -> usize {
        self.rules.len()
    }
}

impl CreationRule {
    /// Whether the rule names paths. One that does not is for whatever someone wants to encrypt.
    pub(crate) fn is_for_certain_paths(&self) -> bool {
        self.path.is_some()
    }

    /// The regular expression that paths must match.
    pub fn pattern(&self) -> Option<&str> {
        self.path.as_ref().map(Regex::as_str)
    }

    /// The settings, if every key of the rule is one of age.
    pub fn usable(&self) -> Result<&Settings, SopsError> {
        if !self.foreign.is_empty() {
            return Err(SopsError::ForeignKeys { kinds: self.foreign.join("`, `") });
        }
        if self.settings.groups.iter().all(Vec::is_empty) {
            return Err(crate::AgeError::NoRecipients.into());
        }
        Ok(&self.settings)
    }

    fn read(rule: &Node) -> Result<Self, SopsError> {
        let path = match text(rule, "path_regex") {
            Some(pattern) => Some(Regex::new(&pattern).map_err(|error| SopsError::Regex {
                setting: "path_regex",
                reason: error.to_string().lines().last().unwrap_or_default().to_owned(),
            })?),
            None => None,
        };
        let mut foreign = Vec::new();
        let groups = match field(rule, "key_groups") {
            Some(groups) => list(groups).map(|group| read_group(group, &mut foreign)).collect(),
            None => vec![read_group(rule, &mut foreign)],
        };
        let mut chosen = RuleSetting::NAMES
            .into_iter()
            .filter_map(|name| text(rule, name).and_then(|value| RuleSetting::named(name, value)));
        let setting = chosen.next();
        if chosen.next().is_some() {
            return Err(SopsError::Config(
                "a rule has more than one of `encrypted_regex` and its like".to_owned(),
            ));
        }
        let threshold = match field(rule, "shamir_threshold") {
            Some(Node::Leaf(leaf)) => match &leaf.value {
                Value::Int(number) => usize::try_from(*number).ok().filter(|number| *number > 0),
                _ => return Err(SopsError::Config("`shamir_threshold` is not a number".to_owned())),
            },
            _ => None,
        };
        let mac_only_encrypted = matches!(field(rule, "mac_only_encrypted"), Some(Node::Leaf(leaf)) if leaf.value == Value::Bool(true));
        let settings = Settings { groups, threshold, rule: setting.unwrap_or_default(), mac_only_encrypted };
        Ok(Self { path, settings, foreign })
    }
}

/// The recipients of a group, with those of the groups merged into it first.
fn read_group(group: &Node, foreign: &mut Vec<String>) -> Vec<String> {
    let mut recipients: Vec<String> = field(group, "merge")
        .into_iter()
        .flat_map(list)
        .flat_map(|merged| read_group(merged, foreign))
        .collect();
    recipients.extend(field(group, "age").into_iter().flat_map(texts).flat_map(|text| split(&text)));
    for kind in FOREIGN {
        let present =
            field(group, kind).is_some_and(|value| list(value).next().is_some() || !texts(value).is_empty());
        if present && !foreign.iter().any(|known| known == kind) {
            foreign.push(kind.to_owned());
        }
    }
    let mut seen = std::collections::HashSet::new();
    recipients.retain(|recipient| seen.insert(recipient.clone()));
    recipients
}

/// Recipients in one text are separated by commas.
fn split(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn field<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    let Node::Mapping(items) = node else { return None };
    items.iter().find_map(|item| match item {
        Item::Entry { key, node } if key == name => Some(node),
        _ => None,
    })
}

fn list(node: &Node) -> impl Iterator<Item = &Node> {
    let items: &[Item] = if let Node::List(items) = node { items } else { &[] };
    items.iter().filter_map(|item| if let Item::Entry { node, .. } = item { Some(node) } else { None })
}

fn text(node: &Node, name: &str) -> Option<String> {
    texts(field(node, name)?).into_iter().next()
}

/// A text, or a list of texts.
fn texts(node: &Node) -> Vec<String> {
    match node {
        Node::Leaf(leaf) => {
            leaf.value.as_str().filter(|text| !text.is_empty()).map(str::to_owned).into_iter().collect()
        }
        Node::List(_) => list(node).flat_map(texts).collect(),
        Node::Mapping(_) => Vec::new(),
    }
}

/// A `.sops.yaml` with one rule, in the form in which the cluster-template family has it.
pub fn config_with_rule(path_regex: &str, mac_only_encrypted: bool, recipients: &[String]) -> String {
    let regex = crate::yaml::write::write_text(path_regex, crate::yaml::write::Spot::Value(4), false).head;
    let mac = if mac_only_encrypted { "    mac_only_encrypted: true\n" } else { "" };
    format!("creation_rules:\n  - path_regex: {regex}\n{mac}    age: \"{}\"\n", recipients.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule<'r>(rules: &'r CreationRules, path: &str) -> &'r CreationRule {
        rules.for_path(Path::new(path)).unwrap_or_else(|| panic!("no rule for {path}"))
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let text = "
keys:
  - &me age1me
  - &you age1you
creation_rules:
  - path_regex: infrastructure/.*\\.sops\\.ya?ml
    mac_only_encrypted: true
    age: >-
      age1one,
      age1two
  - path_regex: ^secrets/
    encrypted_regex: ^(data|stringData)$
    shamir_threshold: 2
    key_groups:
      - age: [*me]
      - merge:
          - age: [*you]
        age: [*me, *you]
  - pgp: ABCDEF
";
        let rules = CreationRules::parse(text).unwrap_or_else(|error| panic!("{error}"));
        let first = rule(&rules, "infrastructure/secrets.sops.yaml").usable().expect("age only");
        assert_eq!(first.groups, [["age1one", "age1two"]]);
        assert!(first.mac_only_encrypted);
        assert_eq!(first.rule, RuleSetting::default());
        let second = rule(&rules, "secrets/x.yaml").usable().expect("age only");
        assert_eq!(second.groups, [vec!["age1me"], vec!["age1you", "age1me"]]);
        assert_eq!(second.threshold, Some(2));
        assert_eq!(second.rule, RuleSetting::EncryptedRegex("^(data|stringData)$".to_owned()));
        let third = rule(&rules, "other.yaml").usable().expect_err("PGP only").to_string();
        assert!(third.contains("`pgp`"), "{third}");
    }

    #[test]
    fn a_contradiction_or_a_bad_pattern_is_refused() {
        for text in [
            "creation_rules: [{encrypted_regex: a, encrypted_suffix: b}]",
            "creation_rules: [{path_regex: '('}]",
            "creation_rules: [{shamir_threshold: two}]",
        ] {
            assert!(CreationRules::parse(text).is_err(), "{text}");
        }
        assert!(CreationRules::parse("stores: {yaml: {indent: 2}}").expect("no rules").is_empty());
    }

    #[test]
    fn what_is_written_is_read() {
        let recipients = ["age1one".to_owned(), "age1two".to_owned()];
        let text = config_with_rule("infrastructure/.*\\.sops\\.ya?ml", true, &recipients);
        let rules = CreationRules::parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let settings = rule(&rules, "infrastructure/a.sops.yml").usable().expect("age only");
        assert_eq!(settings.groups, [recipients]);
        assert!(settings.mac_only_encrypted);
    }
}
