//! The patches that lead from one configuration to another: how a machine stays as somebody else configured it.
//!
//! Versions are left alone, as everywhere. Secrets are never written down: where one differs, its path is told.

use strata_secret::{REDACTED, SecretString};

use super::Patch;
use crate::config::MachineConfig;
use crate::document::{Document, DocumentId};
use crate::tree::{Map, Value};
use crate::yaml::write_all;

/// Fields of the document without a kind that may hold anything, and so a secret too.
const MAY_HIDE: [&str; 9] = [
    "machine.files",
    "machine.env",
    "machine.pods",
    "machine.registries.config",
    "cluster.apiServer.env",
    "cluster.controllerManager.env",
    "cluster.extraManifestHeaders",
    "cluster.inlineManifests",
    "cluster.scheduler.env",
];

/// The same of the other documents, by their kinds.
const DOCUMENTS_MAY_HIDE: [(&str, &[&str]); 11] = [
    ("CRICustomizationConfig", &["content"]),
    ("ContainerConfig", &["args", "environment"]),
    ("EnvironmentConfig", &["variables"]),
    ("EtcFileConfig", &["contents"]),
    ("ExtensionServiceConfig", &["configFiles", "environment"]),
    ("KubeAPIServerConfig", &["env"]),
    ("KubeControllerManagerConfig", &["env"]),
    ("KubeExternalManifestConfig", &["headers"]),
    ("KubeInlineManifestConfig", &["manifest"]),
    ("KubeSchedulerConfig", &["env"]),
    ("KubeStaticPodConfig", &["pod"]),
];

/// What stands between two configurations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchesBetween {
    /// Strategic merge patches, to be applied in this order: what goes, then what comes.
    pub patches: Vec<String>,
    /// Paths where only a secret, or a value that a patch cannot bring, makes the difference.
    pub left: Vec<String>,
}

impl PatchesBetween {
    pub fn new(from: &MachineConfig, to: &MachineConfig) -> Self {
        let (from, to) = (from.without_versions(), to.without_versions());
        let mut work = Work::default();
        for document in from.documents() {
            match find(&to, &document.id()) {
                Some(other) => work.document(document, other),
                None => work.gone.push(headed(document, deletion())),
            }
        }
        for document in to.documents().iter().filter(|document| find(&from, &document.id()).is_none()) {
            work.added(document);
        }
        let Work { gone, come, mut left } = work;
        let texts = [gone, come].into_iter().filter(|parts| !parts.is_empty());
        let patches: Vec<String> = texts.map(|parts| write_all(&parts).to_string()).collect();
        if left.is_empty() && !patches.is_empty() {
            left.extend(unreached(from, &to, &patches));
        }
        Self { patches, left }
    }
}

/// What the patches do not bring about, by applying them.
fn unreached(mut config: MachineConfig, to: &MachineConfig, patches: &[String]) -> Vec<String> {
    for text in patches {
        let patch = Patch::parse(&SecretString::from(text.as_str()));
        config = match patch.and_then(|patch| patch.apply(config)) {
            Ok(patched) => patched,
            Err(error) => return vec![error.to_string()],
        };
    }
    let mut work = Work::default();
    for document in config.documents() {
        match find(to, &document.id()) {
            Some(other) => work.document(document, other),
            None => work.left.push(document.id().to_string()),
        }
    }
    let differs = !work.gone.is_empty() || !work.come.is_empty();
    let mut left = work.left;
    if differs && left.is_empty() {
        left.push("the order of a list".to_owned());
    }
    left
}

fn find<'c>(config: &'c MachineConfig, id: &DocumentId) -> Option<&'c Document> {
    config.documents().iter().find(|document| document.id() == *id)
}

#[derive(Default)]
struct Work {
    gone: Vec<Value>,
    come: Vec<Value>,
    left: Vec<String>,
}

impl Work {
    fn document(&mut self, from: &Document, to: &Document) {
        let (one, other, shown) = (from.to_value(), to.to_value(), to.to_redacted_value());
        let (Some(one), Some(other), Some(shown)) = (one.as_map(), other.as_map(), shown.as_map()) else {
            return;
        };
        let (mut gone, mut come) = (Map::new(), Map::new());
        let place = DocumentPaths::of(to);
        self.map(&place, "", one, (other, shown), &mut gone, &mut come);
        for (parts, found) in [(&mut self.gone, gone), (&mut self.come, come)] {
            if !found.is_empty() {
                parts.push(headed(to, found));
            }
        }
    }

    /// `to` is given twice: as it is, and redacted.
    fn map(
        &mut self,
        place: &DocumentPaths,
        path: &str,
        from: &Map,
        to: (&Map, &Map),
        gone: &mut Map,
        come: &mut Map,
    ) {
        for (key, value) in from {
            let missing = to.0.get(key).is_none_or(is_nothing);
            if missing && !is_nothing(value) {
                gone.insert(key.clone(), Value::Map(deletion()));
            }
        }
        for (key, value) in to.0.iter().filter(|(_, value)| !is_nothing(value)) {
            let own = format!("{path}{key}");
            let twin = to.1.get(key).unwrap_or(value);
            let before = from.get(key).filter(|before| !is_nothing(before));
            match (before, value) {
                (Some(before), _) if before == value => {}
                (Some(Value::Map(before)), Value::Map(after)) => {
                    let (mut less, mut more) = (Map::new(), Map::new());
                    let shown = twin.as_map().unwrap_or(after);
                    self.map(place, &format!("{own}."), before, (after, shown), &mut less, &mut more);
                    for (part, found) in [(&mut *gone, less), (&mut *come, more)] {
                        if !found.is_empty() {
                            part.insert(key.clone(), Value::Map(found));
                        }
                    }
                }
                _ if hides(twin) || place.may_hide(&own, value) => self.left.push(place.tell(&own)),
                (before, _) => {
                    // A list would be added to, not replaced.
                    if matches!(before, Some(Value::List(_) | Value::Map(_))) {
                        gone.insert(key.clone(), Value::Map(deletion()));
                    }
                    come.insert(key.clone(), bare(value));
                }
            }
        }
    }

    fn added(&mut self, document: &Document) {
        let shown = document.to_redacted_value();
        if hides(&shown) || DocumentPaths::of(document).may_hide_in(&shown) {
            return self.left.push(document.id().to_string());
        }
        if let Value::Map(fields) = bare(&document.to_value()) {
            self.come.push(headed(document, fields));
        }
    }
}

fn deletion() -> Map {
    [("$patch".to_owned(), Value::text("delete"))].into_iter().collect()
}

/// The fields under the names that say which document they belong to.
fn headed(document: &Document, fields: Map) -> Value {
    let mut headed = Map::new();
    if !document.is_v1alpha1() {
        headed.insert("apiVersion".to_owned(), Value::text("v1alpha1"));
        headed.insert("kind".to_owned(), Value::text(document.kind()));
        if let Some(name) = document.name() {
            headed.insert("name".to_owned(), Value::text(name));
        }
    }
    headed.extend(fields);
    Value::Map(headed)
}

/// Not set, or as good as that.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Text(text) => text.is_empty(),
        Value::List(items) => items.is_empty(),
        Value::Map(map) => map.values().all(is_nothing),
        _ => false,
    }
}

/// Without what is not set.
fn bare(value: &Value) -> Value {
    match value {
        Value::Map(map) => {
            let set = map.iter().filter(|(_, value)| !is_nothing(value));
            Value::Map(set.map(|(key, value)| (key.clone(), bare(value))).collect())
        }
        Value::List(items) => Value::List(items.iter().map(bare).collect()),
        other => other.clone(),
    }
}

/// A document, as the paths of its fields are told and judged.
struct DocumentPaths {
    /// What stands before a path.
    name: String,
    may_hide: &'static [&'static str],
}

impl DocumentPaths {
    fn of(document: &Document) -> Self {
        if document.is_v1alpha1() {
            return Self { name: String::new(), may_hide: &MAY_HIDE };
        }
        let known = DOCUMENTS_MAY_HIDE.iter().find(|(kind, _)| *kind == document.kind());
        Self { name: format!("{}: ", document.id()), may_hide: known.map_or(&[], |(_, fields)| *fields) }
    }

    fn tell(&self, path: &str) -> String {
        format!("{}{path}", self.name)
    }

    /// Whether the value at a path is a field that may hold a secret, stands in one, or has one.
    fn may_hide(&self, path: &str, value: &Value) -> bool {
        let under =
            |whole: &str, part: &str| part.strip_prefix(whole).is_some_and(|rest| rest.starts_with('.'));
        self.may_hide.iter().any(|field| {
            *field == path
                || under(field, path)
                || (under(path, field) && has(value, &field[path.len() + 1..]))
        })
    }

    /// Whether the document has a field that may hold a secret.
    fn may_hide_in(&self, document: &Value) -> bool {
        self.may_hide.iter().any(|field| has(document, field))
    }
}

/// Whether something is set at a path below a value.
fn has(value: &Value, path: &str) -> bool {
    let found = path.split('.').try_fold(value, |value, key| value.as_map()?.get(key));
    found.is_some_and(|value| !is_nothing(value))
}

/// Whether a redacted value hides something, or carries what lets one in.
fn hides(value: &Value) -> bool {
    match value {
        Value::Text(text) => text.as_str() == REDACTED || lets_in(text.as_str()),
        Value::List(items) => items.iter().any(hides),
        Value::Map(map) => map.values().any(hides),
        _ => false,
    }
}

/// Whether a text has a URL with a user in it, or with a query, where tokens to join and signatures are.
fn lets_in(text: &str) -> bool {
    text.split("://").skip(1).any(|rest| {
        let host = rest.split('/').next().unwrap_or(rest);
        host.contains('@') || rest.contains('?')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> MachineConfig {
        MachineConfig::from_yaml(&SecretString::from(text)).unwrap_or_else(|error| panic!("{error}"))
    }

    const FROM: &str = "version: v1alpha1\nmachine:\n  type: worker\n  token: abc\n  install: {disk: /dev/sda, wipe: true}\n  \
                        certSANs: [a, b]\ncluster: {}\n---\napiVersion: v1alpha1\nkind: HostnameConfig\nhostname: a\n";

    #[test]
    fn patches_lead_from_one_to_the_other() {
        let to = "version: v1alpha1\nmachine:\n  type: worker\n  token: abc\n  install: {disk: /dev/vda}\n  certSANs: [b]\n  \
                  network: {hostname: b}\ncluster: {}\n";
        let found = PatchesBetween::new(&config(FROM), &config(to));
        assert_eq!(found.left, Vec::<String>::new());
        assert_eq!(found.patches.len(), 2, "{found:?}");
        assert!(
            found.patches[0].contains("kind: HostnameConfig") && found.patches[0].contains("$patch: delete")
        );
        assert!(found.patches[1].contains("disk: /dev/vda") && !found.patches[1].contains("token"));
        assert_eq!(PatchesBetween::new(&config(FROM), &config(FROM)), PatchesBetween::default());
    }

    #[test]
    fn a_secret_is_told_and_not_written() {
        let found = PatchesBetween::new(&config(FROM), &config(&FROM.replace("abc", "xyz")));
        assert_eq!((found.patches.len(), found.left), (0, vec!["machine.token".to_owned()]));
        let with_file = FROM
            .replace("  certSANs", "  files: [{content: password, path: /var/x, op: create}]\n  certSANs");
        let found = PatchesBetween::new(&config(FROM), &config(&with_file));
        assert_eq!((found.patches.len(), found.left), (0, vec!["machine.files".to_owned()]));
    }

    #[test]
    fn what_stands_beside_a_field_that_may_hide_a_secret_is_written() {
        let with = |registries: &str| {
            config(&FROM.replace("  certSANs", &format!("  registries: {registries}\n  certSANs")))
        };
        let mirrors = "{mirrors: {a.example: {endpoints: [https://b.example]}}}";
        let found = PatchesBetween::new(&config(FROM), &with(mirrors));
        assert_eq!((found.patches.len(), found.left), (1, Vec::new()));
        let login = "{config: {a.example: {auth: {username: me, password: hunter2}}}}";
        let found = PatchesBetween::new(&config(FROM), &with(login));
        assert_eq!((found.patches.len(), found.left), (0, vec!["machine.registries".to_owned()]));
    }

    /// One field of each document that can hold anything, with a secret in it.
    const FREE: [&str; 11] = [
        "CRICustomizationConfig\nname: a\ncontent: hunter2",
        "ContainerConfig\nname: a\nimage: b\nenvironment: [TOKEN=hunter2]",
        "EnvironmentConfig\nvariables: {TOKEN: hunter2}",
        "EtcFileConfig\nname: a\nmode: 0o600\ncontents: hunter2",
        "ExtensionServiceConfig\nname: a\nconfigFiles: [{content: hunter2, mountPath: /a}]",
        "ExtensionServiceConfig\nname: a\nenvironment: [TS_AUTHKEY=hunter2]",
        "KubeExternalManifestConfig\nname: a\nurl: https://a.example/b.yaml\nheaders: {Authorization: hunter2}",
        "KubeInlineManifestConfig\nname: a\nmanifest: hunter2",
        "KubeStaticPodConfig\nname: a\npod: {apiVersion: v1, env: hunter2}",
        "KmsgLogConfig\nname: a\nurl: https://me:hunter2@a.example/",
        "SideroLinkConfig\napiUrl: https://a.example/?jointoken=hunter2",
    ];

    #[test]
    fn a_document_that_may_hide_a_secret_is_told_and_not_written() {
        for free in FREE {
            let with = |secret: &str| {
                let document = free.replace("hunter2", secret);
                config(&format!("{FROM}---\napiVersion: v1alpha1\nkind: {document}\n"))
            };
            let kind = free.split('\n').next().unwrap_or_default();
            for found in [
                PatchesBetween::new(&config(FROM), &with("hunter2")),
                PatchesBetween::new(&with("hunter1"), &with("hunter2")),
            ] {
                assert_eq!(found.patches, Vec::<String>::new(), "{free}");
                assert!(found.left.len() == 1 && found.left[0].starts_with(kind), "{:?}", found.left);
            }
            let gone = PatchesBetween::new(&with("hunter2"), &config(FROM));
            assert_eq!((gone.patches.len(), gone.left), (1, Vec::new()), "{free}");
        }
    }

    #[test]
    fn every_kind_that_may_hide_is_one_that_talos_has() {
        for (kind, fields) in DOCUMENTS_MAY_HIDE {
            let shape = crate::shape::document(kind).unwrap_or_else(|| panic!("`{kind}`"));
            for field in fields {
                assert!(shape.record.field(field).is_some(), "`{kind}` has no `{field}`");
            }
        }
    }
}
