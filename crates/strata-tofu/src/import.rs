//! `strata import`: the repositories that users come from, as a repository of Strata.
//!
//! What is there is read in its own words; what cannot be carried over is reported with file and line, and the rest is imported.

mod clusters;
mod environments;
mod flat;
mod layered;
pub(crate) mod output;
mod stacks;
mod talconfig;
mod tree;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use strata_source::world::World;

use crate::yaml;
use output::{Guests, Object};
pub use tree::Place;
use tree::{Block, Tree};

/// Something that was not carried over as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub place: Option<Place>,
    pub message: String,
}

/// What an import came to.
#[derive(Debug, Default)]
pub struct Imported {
    /// By path from the root of the new repository.
    pub files: BTreeMap<String, String>,
    pub notes: Vec<Note>,
    /// Secrets by name, to be encrypted.
    pub secrets: BTreeMap<String, String>,
    /// The kinds of source that were found.
    pub found: Vec<&'static str>,
}

/// An import while it is made.
struct Import<'w> {
    world: &'w dyn World,
    imported: Imported,
    /// Targets by name.
    targets: Object,
    /// The `state` of strata.yaml.
    state: Option<Json>,
    /// Encrypted files that are kept as they are.
    secret_files: Vec<String>,
    /// VMIDs that are taken, by endpoint.
    taken: BTreeMap<(String, i64), String>,
    /// Names of machines, by endpoint.
    names: BTreeSet<(String, String)>,
    /// Templates by endpoint and VMID: `stack/template`.
    templates: BTreeMap<(String, i64), String>,
}

/// Reads a folder. `repository` is the id of the new repository.
pub fn import(world: &dyn World, repository: &str) -> Imported {
    let mut import = Import {
        world,
        imported: Imported::default(),
        targets: Object::new(),
        state: None,
        secret_files: Vec::new(),
        taken: BTreeMap::new(),
        names: BTreeSet::new(),
        templates: BTreeMap::new(),
    };
    flat::import(&mut import);
    clusters::import(&mut import);
    layered::import(&mut import);
    stacks::import(&mut import);
    environments::import(&mut import);
    talconfig::import(&mut import);
    if !import.imported.found.is_empty() {
        import.settings(repository);
    }
    import.imported
}

impl Import<'_> {
    fn note(&mut self, place: Option<&Place>, message: impl Into<String>) {
        let note = Note { place: place.cloned(), message: message.into() };
        if !self.imported.notes.contains(&note) {
            self.imported.notes.push(note);
        }
    }

    fn found(&mut self, kind: &'static str) {
        if !self.imported.found.contains(&kind) {
            self.imported.found.push(kind);
        }
    }

    /// Reports what nobody took.
    fn report(&mut self, tree: &Tree) {
        for (path, place) in tree.left() {
            self.note(Some(&place), format!("`{path}` has no place in Strata and was not carried over"));
        }
    }

    fn read(&mut self, path: &str) -> Option<String> {
        let content = self.world.read(path).ok()?;
        match String::from_utf8(content) {
            Ok(text) => Some(text),
            Err(_) => {
                self.note(Some(&Place { file: path.into(), line: 1 }), "it is not text and was not read");
                None
            }
        }
    }

    fn yaml(&mut self, path: &str) -> Option<Tree> {
        let text = self.read(path)?;
        match tree::yaml(path, &text) {
            Ok(tree) => tree,
            Err((place, reason)) => {
                self.note(Some(&place), format!("it was not read: {reason}"));
                None
            }
        }
    }

    fn hcl(&mut self, path: &str) -> Option<(Tree, Vec<Block>)> {
        let text = self.read(path)?;
        if text.starts_with("$ANSIBLE_VAULT") {
            self.note(
                Some(&Place { file: path.into(), line: 1 }),
                "it is encrypted by ansible-vault: its secrets were not read; put them into secrets.sops.yaml with `strata secrets edit`",
            );
            return None;
        }
        match tree::hcl(path, &text) {
            Ok(parsed) => Some(parsed),
            Err((place, reason)) => {
                self.note(Some(&place), format!("it was not read: {reason}"));
                None
            }
        }
    }

    /// A file of variables. Blocks have no place in one.
    fn tfvars(&mut self, path: &str) -> Option<Tree> {
        let (tree, blocks) = self.hcl(path)?;
        for block in blocks {
            let kind = &block.kind;
            self.note(
                Some(&block.place),
                format!("a file of variables cannot hold a block `{kind}`: it was left out"),
            );
        }
        Some(tree)
    }

    /// The defaults of the variables that the `.tf` files of a folder declare; and all their blocks.
    fn code(&mut self, folder: &str) -> (Vec<(String, Tree)>, Vec<Block>) {
        let (mut defaults, mut blocks) = (Vec::new(), Vec::new());
        for file in self.files(folder, ".tf") {
            let Some((_, found)) = self.hcl(&file) else { continue };
            for block in found {
                if block.kind == "variable"
                    && let Some(default) = block.body.get("default")
                {
                    defaults.push((block.labels.first().cloned().unwrap_or_default(), default.clone()));
                }
                blocks.push(block);
            }
        }
        (defaults, blocks)
    }

    /// The files of a folder with an ending, as paths.
    fn files(&self, folder: &str, ending: &str) -> Vec<String> {
        let listed = self.world.list(folder).unwrap_or_default();
        let wanted = listed.into_iter().filter(|entry| !entry.is_folder && entry.name.ends_with(ending));
        wanted.map(|entry| join(folder, &entry.name)).collect()
    }

    fn folders(&self, folder: &str) -> Vec<String> {
        let listed = self.world.list(folder).unwrap_or_default();
        let wanted = listed.into_iter().filter(|entry| entry.is_folder && !entry.name.starts_with('.'));
        wanted.map(|entry| entry.name).collect()
    }

    /// A document of the new repository.
    fn write(&mut self, path: String, document: Object) {
        self.imported.files.insert(path, yaml::write(&Json::Object(document)));
    }

    fn secret(&mut self, name: &str, value: &str) -> Json {
        let mut unique = name.to_owned();
        let mut number = 2;
        while self.imported.secrets.get(&unique).is_some_and(|known| known != value) {
            unique = format!("{name}_{number}");
            number += 1;
        }
        self.imported.secrets.insert(unique.clone(), value.to_owned());
        json!({"secret": unique})
    }

    /// The target at an endpoint; made if there is none yet.
    fn target(&mut self, wanted: &str, endpoint: &str, insecure: bool, token: Option<&str>) -> String {
        let endpoint = base(endpoint);
        for (name, target) in &self.targets {
            if target["proxmox"]["endpoint"].as_str() == Some(endpoint.as_str()) {
                return name.clone();
            }
        }
        let mut name = wanted.to_owned();
        let mut number = 2;
        while self.targets.contains_key(&name) {
            name = format!("{wanted}{number}");
            number += 1;
        }
        let secret = if name == "pve" {
            "proxmox_api_token".to_owned()
        } else {
            format!("proxmox_api_token_{}", name.replace('-', "_"))
        };
        if token.is_none() {
            self.note(None, format!("the API token of `{endpoint}` is not known: set `{secret}` with `strata secrets edit secrets.sops.yaml`"));
        }
        let token =
            self.secret(&secret, token.unwrap_or("user@realm!name=00000000-0000-0000-0000-000000000000"));
        let mut proxmox = Object::new();
        proxmox.insert("endpoint".into(), json!(endpoint));
        proxmox.insert("token".into(), token);
        if insecure {
            proxmox.insert("tls".into(), json!({"insecure": true}));
        }
        self.targets.insert(name.clone(), json!({"proxmox": proxmox}));
        name
    }

    /// Whether a VMID is still free; if not, that is reported.
    fn claim(&mut self, endpoint: &str, vm_id: i64, what: &str, place: &Place) -> bool {
        let key = (base(endpoint), vm_id);
        if let Some(other) = self.taken.get(&key) {
            let message =
                format!("`{what}` has the VMID {vm_id}, which `{other}` has already: it was left out");
            self.note(Some(place), message);
            return false;
        }
        self.taken.insert(key, what.to_owned());
        true
    }

    /// A name for a machine that no other on the same Proxmox has.
    fn unique(&mut self, endpoint: &str, wanted: &str, stack: &str, place: &Place) -> String {
        let own = name(wanted);
        let key = (base(endpoint), own.clone());
        if self.names.insert(key) {
            return own;
        }
        let other = format!("{own}-{stack}");
        self.names.insert((base(endpoint), other.clone()));
        self.note(Some(place), format!("another machine is called `{own}` too: this one becomes `{other}`"));
        other
    }

    fn settings(&mut self, repository: &str) {
        let mut settings = Object::new();
        settings.insert("repository".into(), json!(repository));
        settings.insert("state".into(), self.state.clone().unwrap_or_else(|| json!({"backend": "local"})));
        let mut secrets: Vec<Json> = self.secret_files.iter().map(|path| json!({"sops": path})).collect();
        if !self.imported.secrets.is_empty() {
            secrets.insert(0, json!({"sops": "secrets.sops.yaml"}));
        }
        if !secrets.is_empty() {
            settings.insert("secrets".into(), json!(secrets));
        }
        if !self.targets.is_empty() {
            settings.insert("targets".into(), Json::Object(self.targets.clone()));
        }
        self.write("strata.yaml".to_owned(), settings);
    }

    /// The state of others, where it can be Strata's too: from a `backend` block or a file that says the same.
    fn backend(&mut self, kind: &str, tree: &Tree) {
        if self.state.is_some() {
            return;
        }
        let mut state = Object::new();
        match kind {
            "s3" => {
                state.insert("backend".into(), json!("s3"));
                for key in ["bucket", "region"] {
                    if let Some(value) = tree.text(key) {
                        state.insert(key.into(), json!(value));
                    }
                }
                let endpoint =
                    tree.text("endpoint").or_else(|| tree.get("endpoints").and_then(|map| map.text("s3")));
                if let Some(endpoint) = endpoint {
                    state.insert("endpoint".into(), json!(endpoint));
                }
                if let Some(table) = tree.text("dynamodb_table") {
                    state.insert("lockTable".into(), json!(table));
                }
                if !state.contains_key("bucket") {
                    return;
                }
            }
            "http" => {
                let Some(address) = tree.text("address") else { return };
                let server = address.split("/states/").next().unwrap_or(&address).to_owned();
                state.insert("backend".into(), json!("http"));
                state.insert("url".into(), json!(server));
                self.note(
                    Some(&tree.place),
                    "the state's server is taken over; Strata's states get names of their own there",
                );
            }
            _ => return,
        }
        self.state = Some(Json::Object(state));
    }
}

/// An endpoint as it is written down: without the path.
fn base(endpoint: &str) -> String {
    let endpoint = endpoint.trim_end_matches('/');
    endpoint.strip_suffix("/api2/json").unwrap_or(endpoint).to_owned()
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// A name that Strata takes: lower case, digits and dashes.
pub(crate) fn name(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' })
        .collect();
    let trimmed = plain.trim_matches('-');
    if trimmed.is_empty() { "imported".to_owned() } else { trimmed.to_owned() }
}
