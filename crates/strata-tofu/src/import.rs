//! `strata import`: the repositories that users come from, as a repository of Strata.
//!
//! What is there is read in its own words; what cannot be carried over is reported with file and line, and the rest is imported. The
//! result is loaded as Strata loads any repository, and what that refuses is left out and reported as well.

mod clusters;
mod environments;
mod eval;
mod files;
mod flat;
mod functions;
mod gotemplate;
mod guest;
mod hcl;
mod host;
mod layered;
mod merge;
mod module;
pub(crate) mod output;
mod parse;
mod roots;
mod settle;
mod stacks;
mod talconfig;
mod talos;
mod topf;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::{Value as Json, json};
use strata_source::world::World;

use files::Files;
use hcl::{Attribute, Block};
use module::Library;
use output::{Guests, Object};
pub use tree::Place;
use tree::{Content, Marks, Tree};

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

/// What stands for an API token that nobody wrote down.
const NO_TOKEN: &str = "user@realm!name=00000000-0000-0000-0000-000000000000";

/// Opens a file that ansible-vault encrypted.
pub type OpenVault<'w> = &'w dyn Fn(&str, &[u8]) -> Result<Vec<u8>, String>;

/// An import while it is made.
struct Import<'w> {
    world: &'w dyn World,
    open: Option<OpenVault<'w>>,
    library: Rc<Library<'w>>,
    marks: Rc<Marks>,
    files: Files,
    imported: Imported,
    /// Documents that are written in the end, with where each came from.
    documents: BTreeMap<String, (Json, Place)>,
    /// Where parts of documents came from: document, `vms`, `web`.
    origins: BTreeMap<(String, String, String), Place>,
    /// Targets by name.
    targets: Object,
    /// The `state` of strata.yaml.
    state: Option<Json>,
    /// Encrypted files that are kept as they are.
    secret_files: Vec<String>,
    /// VMIDs that are taken, by endpoint.
    taken: BTreeMap<(String, i64), String>,
    /// Fixed addresses that are taken, by endpoint.
    addresses: BTreeMap<(String, String), String>,
    /// Names of machines, by endpoint.
    names: BTreeSet<(String, String)>,
    /// Names of stacks.
    stacks: BTreeSet<String>,
    /// Templates by endpoint and VMID: `stack/template`.
    templates: BTreeMap<(String, i64), String>,
    /// What is reported in the end unless somebody takes it, with what stands before its path.
    pending: Vec<(String, Tree)>,
}

/// Reads a folder. `repository` is the id of the new repository.
pub fn import<'w>(world: &'w dyn World, repository: &str, open: Option<OpenVault<'w>>) -> Imported {
    let mut import = Import {
        world,
        open,
        library: Rc::new(Library::new(world)),
        marks: Rc::default(),
        files: Files::of(world),
        imported: Imported::default(),
        documents: BTreeMap::new(),
        origins: BTreeMap::new(),
        targets: Object::new(),
        state: None,
        secret_files: Vec::new(),
        taken: BTreeMap::new(),
        addresses: BTreeMap::new(),
        names: BTreeSet::new(),
        stacks: BTreeSet::new(),
        templates: BTreeMap::new(),
        pending: Vec::new(),
    };
    flat::import(&mut import);
    clusters::import(&mut import);
    environments::import(&mut import);
    roots::import(&mut import);
    talconfig::import(&mut import);
    topf::import(&mut import);
    merge::merge(&mut import);
    let problems = import.library.problems.take();
    for (place, reason) in problems {
        import.note(Some(&place), reason);
    }
    if import.imported.found.is_empty() {
        return import.imported;
    }
    let read = import.library.read.take();
    read.iter().for_each(|path| import.files.read(path));
    import.report();
    import.unread();
    import.settings(repository);
    settle::settle(&mut import);
    let mut imported = import.imported;
    imported.notes.sort_by(|one, other| one.place.cmp(&other.place));
    imported
}

impl<'w> Import<'w> {
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

    /// Takes what Strata needs nobody to say, and says why.
    fn needless(&mut self, tree: &Tree, keys: &[&str], why: &str) {
        for key in keys {
            let Some(found) = tree.get(key) else { continue };
            if let Some(left) = tree.left().into_iter().find(|left| left.path == *key) {
                self.note(Some(&left.place), format!("`{key}` is not needed: {why}"));
            }
            found.take_all();
        }
    }

    /// Reports in the end what nobody took of this.
    fn watch(&mut self, prefix: &str, tree: &Tree) {
        self.pending.push((prefix.to_owned(), tree.clone()));
    }

    fn report(&mut self) {
        let mut told: BTreeSet<(Place, String)> = BTreeSet::new();
        for (prefix, tree) in std::mem::take(&mut self.pending) {
            for left in tree.left() {
                let path = format!("{prefix}{}", left.path);
                // Instances of one block, and what is made of a value, say the same at the same place.
                let last = path.rsplit('.').next().unwrap_or(&path).to_owned();
                if !told.insert((left.place.clone(), last)) {
                    continue;
                }
                let message = match left.unknown {
                    Some(expression) => {
                        let short: String = expression.chars().take(80).collect();
                        let why = if expression.starts_with("var.") && !expression.contains(' ') {
                            "whose value is in no file that was read"
                        } else if expression.starts_with("${") {
                            "which another tool fills in"
                        } else {
                            "which only running the code would tell"
                        };
                        format!("`{path}` is `{short}`, {why}: it was not carried over")
                    }
                    None => format!("`{path}` has no place in Strata and was not carried over"),
                };
                self.note(Some(&left.place), message);
            }
        }
    }

    /// Names what nobody looked at, by folder.
    fn unread(&mut self) {
        for (folder, count) in self.files.unread() {
            let files =
                if count == 1 { "1 file there has".to_owned() } else { format!("{count} files there have") };
            self.note(
                Some(&Place::new(&folder, 1)),
                format!("{files} nothing to say to Strata and stay where they are"),
            );
        }
    }

    /// The text of a file; not if it is no text at all.
    fn read(&mut self, path: &str) -> Option<String> {
        let content = self.world.read(path).ok()?;
        self.files.read(path);
        if content.contains(&0) {
            self.note(Some(&Place::new(path, 1)), "it is not text and was not read");
            return None;
        }
        let (text, damaged) = parse::text(&content);
        if damaged {
            self.note(
                Some(&Place::new(path, 1)),
                "it is not UTF-8: letters that cannot be read were replaced",
            );
        }
        Some(text)
    }

    /// The text of a file that may be encrypted by ansible-vault; not if it cannot be opened.
    fn read_opened(&mut self, path: &str) -> Option<String> {
        let text = self.read(path)?;
        if !text.starts_with("$ANSIBLE_VAULT") {
            return Some(text);
        }
        let opened = self.open.map(|open| open(path, text.as_bytes()));
        let place = Place::new(path, 1);
        match opened {
            Some(Ok(content)) => {
                self.note(
                    Some(&place),
                    "it was opened with the password of the vault: secrets of it are in secrets.sops.yaml now, the rest is readable",
                );
                Some(parse::text(&content).0)
            }
            Some(Err(reason)) => {
                self.note(
                    Some(&place),
                    format!("it is encrypted by ansible-vault and was not read: {reason}; name the password with `--vault-password-file`"),
                );
                None
            }
            None => {
                self.note(
                    Some(&place),
                    "it is encrypted by ansible-vault and was not read: name the password with `--vault-password-file`",
                );
                None
            }
        }
    }

    fn yaml(&mut self, path: &str) -> Option<Tree> {
        let text = self.read(path)?;
        self.yaml_text(path, &text)
    }

    fn yaml_text(&mut self, path: &str, text: &str) -> Option<Tree> {
        let (tree, problems) = parse::yaml(path, text);
        for (place, reason) in problems {
            let how = if tree.is_some() { "not all of it was read" } else { "it was not read" };
            self.note(Some(&place), format!("{how}: {reason}"));
        }
        tree
    }

    /// A file of variables: its attributes, and the blocks that have no place in one.
    fn variables(&mut self, path: &str) -> Option<(Vec<Attribute>, Vec<Block>)> {
        let text = self.read_opened(path)?;
        match hcl::parse(path, &text) {
            Ok((attributes, blocks)) => {
                for block in &blocks {
                    self.note(
                        Some(&block.place),
                        format!(
                            "a file of variables cannot hold a block `{}`: OpenTofu refuses it",
                            block.kind
                        ),
                    );
                }
                Some((attributes, blocks))
            }
            Err((place, reason)) => {
                self.note(Some(&place), format!("the file was not read: {reason}"));
                None
            }
        }
    }

    /// A document of the new repository.
    fn write(&mut self, path: String, document: Object, place: &Place) {
        self.documents.insert(path, (Json::Object(document), place.clone()));
    }

    /// Remembers where a machine came from.
    fn origin(&mut self, document: &str, section: &str, own: &str, place: &Place) {
        self.origins.insert((document.to_owned(), section.to_owned(), own.to_owned()), place.clone());
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
    fn target(&mut self, endpoint: &str, insecure: bool, token: Option<&str>) -> String {
        let endpoint = base(endpoint);
        for (name, target) in &mut self.targets {
            let proxmox = &mut target["proxmox"];
            if proxmox["endpoint"].as_str() != Some(endpoint.as_str()) {
                continue;
            }
            if insecure {
                proxmox["tls"] = json!({"insecure": true});
            }
            // Another part of the repository may know the token.
            let secret = proxmox["token"]["secret"].as_str().unwrap_or_default();
            if let (Some(token), Some(known)) = (token, self.imported.secrets.get_mut(secret))
                && known == NO_TOKEN
            {
                token.clone_into(known);
            }
            return name.clone();
        }
        let mut name = "pve".to_owned();
        let mut number = 2;
        while self.targets.contains_key(&name) {
            name = format!("pve{number}");
            number += 1;
        }
        let secret = match name.strip_prefix("pve") {
            Some("") | None => "proxmox_api_token".to_owned(),
            Some(number) => format!("proxmox_api_token_{number}"),
        };
        let token = self.secret(&secret, token.unwrap_or(NO_TOKEN));
        let mut proxmox = Object::new();
        proxmox.insert("endpoint".into(), json!(endpoint));
        proxmox.insert("token".into(), token);
        if insecure {
            proxmox.insert("tls".into(), json!({"insecure": true}));
        }
        self.targets.insert(name.clone(), json!({"proxmox": proxmox}));
        name
    }

    /// A target whose endpoint nobody wrote down: the only one there is, or a place for it.
    fn some_target(&mut self, place: &Place, what: &str) -> (String, String) {
        let mut known = self.targets.iter();
        if let (Some((name, target)), None) = (known.next(), known.next()) {
            let endpoint = target["proxmox"]["endpoint"].as_str().unwrap_or_default().to_owned();
            return (name.clone(), endpoint);
        }
        self.note(
            Some(place),
            format!("{what} is in no file that could be read: set the endpoint of the target in strata.yaml"),
        );
        let endpoint = "https://proxmox.invalid:8006".to_owned();
        (self.target(&endpoint, false, None), endpoint)
    }

    /// Whether a VMID is still free; if not, that is reported.
    fn claim(&mut self, endpoint: &str, vm_id: i64, what: &str, place: &Place) -> bool {
        if !(100..=999_999_999).contains(&vm_id) {
            let message =
                format!("`{what}` has the VMID {vm_id}, which Proxmox does not take: it was left out");
            self.note(Some(place), message);
            return false;
        }
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
        if own != wanted {
            self.note(Some(place), format!("`{wanted}` is no name for a machine: it becomes `{own}`"));
        }
        let mut unique = own.clone();
        let mut number = 2;
        while !self.names.insert((base(endpoint), unique.clone())) {
            unique = if number == 2 { format!("{own}-{stack}") } else { format!("{own}-{stack}-{number}") };
            number += 1;
        }
        if unique != own {
            let message = format!("another machine is called `{own}` too: this one becomes `{unique}`");
            self.note(Some(place), message);
        }
        unique
    }

    /// A name for a stack that no other has.
    fn stack_name(&mut self, wanted: &str, place: &Place) -> String {
        let own = name(wanted);
        let mut unique = own.clone();
        let mut number = 2;
        while !self.stacks.insert(unique.clone()) {
            unique = format!("{own}-{number}");
            number += 1;
        }
        if unique != own {
            self.note(
                Some(place),
                format!("another stack is called `{own}` too: this one becomes `{unique}`"),
            );
        }
        unique
    }

    /// Takes fixed addresses that another machine has away again.
    fn settle_addresses(&mut self, endpoint: &str, guest: &mut Object, what: &str, place: &Place) {
        let Some(nics) = guest.get_mut("network").and_then(Json::as_array_mut) else { return };
        let mut clashes = Vec::new();
        for nic in nics.iter_mut().filter_map(Json::as_object_mut) {
            for (ip, gateway) in [("ip", "gateway"), ("ip6", "gateway6")] {
                let Some(address) = nic.get(ip).and_then(Json::as_str).and_then(|text| text.split_once('/'))
                else {
                    continue;
                };
                let key = (base(endpoint), address.0.to_owned());
                match self.addresses.get(&key) {
                    Some(other) if other != what => {
                        clashes.push(format!(
                            "`{what}` has the address {}, which `{other}` has already: it was left without one",
                            address.0
                        ));
                        nic.remove(ip);
                        nic.remove(gateway);
                    }
                    _ => {
                        self.addresses.insert(key, what.to_owned());
                    }
                }
            }
        }
        for message in clashes {
            self.note(Some(place), message);
        }
    }

    /// Names the tokens that nobody wrote down.
    fn tokens(&mut self) {
        for target in self.targets.clone().values() {
            let secret = target["proxmox"]["token"]["secret"].as_str().unwrap_or_default();
            if self.imported.secrets.get(secret).is_some_and(|token| token == NO_TOKEN) {
                let endpoint = target["proxmox"]["endpoint"].as_str().unwrap_or_default();
                self.note(None, format!("the API token of `{endpoint}` is not known: set `{secret}` with `strata secrets edit secrets.sops.yaml`"));
            }
        }
    }

    fn settings(&mut self, repository: &str) {
        self.tokens();
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
        self.write("strata.yaml".to_owned(), settings, &Place::new("strata.yaml", 1));
    }

    /// The state of others, where it can be Strata's too: from a `backend` block or a file that says the same.
    fn backend(&mut self, kind: &str, tree: &Tree) {
        if self.state.is_some() {
            tree.take_all();
            return;
        }
        let mut state = Object::new();
        match kind {
            "s3" => {
                let Some(bucket) = tree.text("bucket") else {
                    // Filled in from outside, by `-backend-config`.
                    tree.take_all();
                    self.note(Some(&tree.place), "the backend `s3` has no `bucket` here: the state is kept in the repository until strata.yaml says otherwise");
                    return;
                };
                state.insert("backend".into(), json!("s3"));
                state.insert("bucket".into(), json!(bucket));
                if let Some(region) = tree.text("region") {
                    state.insert("region".into(), json!(region));
                }
                let endpoint = tree.text("endpoint").or_else(|| tree.at(&["endpoints", "s3"])?.as_text());
                if let Some(endpoint) = endpoint {
                    state.insert("endpoint".into(), json!(endpoint));
                }
                if let Some(table) = tree.text("dynamodb_table") {
                    state.insert("lockTable".into(), json!(table));
                }
                self.needless(tree, &["key"], "Strata's states have names of their own");
                self.needless(
                    tree,
                    &[
                        "encrypt",
                        "use_lockfile",
                        "skip_credentials_validation",
                        "skip_metadata_api_check",
                        "skip_region_validation",
                        "skip_requesting_account_id",
                        "skip_s3_checksum",
                        "use_path_style",
                        "force_path_style",
                        "type",
                    ],
                    "Strata finds out how a bucket is reached",
                );
            }
            "http" => {
                let Some(address) = tree.text("address") else { return };
                let server = address.split("/states/").next().unwrap_or(&address).to_owned();
                state.insert("backend".into(), json!("http"));
                state.insert("url".into(), json!(server));
                self.needless(
                    tree,
                    &["lock_address", "unlock_address", "lock_method", "unlock_method"],
                    "Strata knows how to lock there",
                );
                self.note(
                    Some(&tree.place),
                    "the state's server is taken over; Strata's states get names of their own there",
                );
            }
            "local" => {
                tree.take_all();
                return;
            }
            other => {
                self.note(Some(&tree.place), format!("the backend `{other}` is none of Strata's: the state is kept in the repository until strata.yaml says otherwise"));
                tree.take_all();
                return;
            }
        }
        self.state = Some(Json::Object(state));
    }
}

/// An endpoint as it is written down: without the path.
fn base(endpoint: &str) -> String {
    let endpoint = endpoint.trim_end_matches('/');
    endpoint.strip_suffix("/api2/json").unwrap_or(endpoint).trim_end_matches('/').to_owned()
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// A name that Strata takes: lower case, digits and dashes.
pub(crate) fn name(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' })
        .take(60)
        .collect();
    let trimmed = plain.trim_matches('-');
    if trimmed.is_empty() { "imported".to_owned() } else { trimmed.to_owned() }
}

/// A version with the `v` before it.
fn with_v(version: String) -> String {
    format!("v{}", version.trim_start_matches('v'))
}

/// Whether a text is a version such as `v1.13.9`.
fn is_version(text: &str) -> bool {
    let plain = text.trim_start_matches('v');
    let core = plain.split(['-', '+']).next().unwrap_or_default();
    core.split('.').count() == 3 && core.split('.').all(|part| part.parse::<u32>().is_ok())
}

/// Whether a content is a scalar.
fn is_scalar(content: &Content) -> bool {
    matches!(content, Content::Bool(_) | Content::Number(_) | Content::Text(_))
}
