//! `strata import`: the repositories that users come from, as a repository of Strata.
//!
//! What is there is read in its own words; what cannot be carried over is reported with file and line, and the rest is imported. The
//! result is loaded as Strata loads any repository, and what that refuses is left out and reported as well.

mod backend;
mod claims;
mod clusters;
mod environments;
mod eval;
mod files;
mod firewall;
mod flat;
mod functions;
mod gotemplate;
mod groups;
mod guest;
mod hcl;
pub(crate) mod host;
mod kept;
mod layered;
mod merge;
mod module;
pub(crate) mod output;
pub(crate) mod parse;
mod provider_talos;
mod roots;
mod settle;
mod sparing;
mod stacks;
mod talconfig;
mod talos;
mod telmate;
mod topf;
pub(crate) mod tree;
mod unused;

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

/// What stands for an API token that nobody wrote down.
pub const NO_TOKEN: &str = "user@realm!name=00000000-0000-0000-0000-000000000000";

/// The comment behind what was written down in place of what nobody said.
pub const STANDS_IN: &str = "stands in for the real one";

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
    /// The file that they go to: another one where the repository has its own of the usual name.
    pub secrets_file: String,
    /// The kinds of source that were found.
    pub found: Vec<&'static str>,
}

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
    /// The names of what is in them.
    kept_names: BTreeSet<String>,
    /// VMIDs that are taken, by endpoint.
    taken: BTreeMap<(String, i64), String>,
    /// Fixed addresses that are taken, by endpoint.
    addresses: BTreeMap<(String, String), String>,
    /// Names of machines, by endpoint.
    names: BTreeSet<(String, String)>,
    /// How many addresses stand in for real ones.
    stand_ins: usize,
    /// What was written down in place of what nobody said.
    stood_in: BTreeSet<String>,
    /// Folders that were not looked at.
    passed_by: Vec<Note>,
    /// Names of stacks.
    stacks: BTreeSet<String>,
    /// Templates by endpoint and VMID: `stack/template`.
    templates: BTreeMap<(String, i64), String>,
    /// What was written of them.
    template_bodies: BTreeMap<(String, i64), Object>,
    /// The machine of a stack that a node of a cluster runs on: document and name of the node, document and key of the machine.
    links: BTreeMap<(String, String), (String, String)>,
    /// The folders of code that were evaluated.
    evaluated: BTreeSet<String>,
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
        imported: Imported { secrets_file: "secrets.sops.yaml".to_owned(), ..Imported::default() },
        documents: BTreeMap::new(),
        origins: BTreeMap::new(),
        targets: Object::new(),
        state: None,
        secret_files: Vec::new(),
        kept_names: BTreeSet::new(),
        taken: BTreeMap::new(),
        addresses: BTreeMap::new(),
        names: BTreeSet::new(),
        stand_ins: 0,
        stood_in: BTreeSet::new(),
        passed_by: Vec::new(),
        stacks: BTreeSet::new(),
        templates: BTreeMap::new(),
        template_bodies: BTreeMap::new(),
        links: BTreeMap::new(),
        evaluated: BTreeSet::new(),
        pending: Vec::new(),
    };
    flat::import(&mut import);
    kept::keep(&mut import);
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
    unused::report(&mut import);
    import.unread();
    import.settings(repository);
    sparing::spare(&mut import);
    settle::settle(&mut import);
    let mut imported = import.imported;
    imported.notes.sort_by(|one, other| one.place.cmp(&other.place));
    imported.notes = together(imported.notes);
    // What nobody has to do anything about comes last.
    imported.notes.extend(import.passed_by);
    imported
}

/// Notes that say the same of several machines at one place, as one.
fn together(notes: Vec<Note>) -> Vec<Note> {
    // The name that a message begins with, and the rest of it.
    fn parts(message: &str) -> Option<(&str, &str)> {
        message.strip_prefix('`')?.split_once('`')
    }
    let mut found: Vec<(Note, Vec<String>)> = Vec::new();
    for note in notes {
        let same =
            found.iter_mut().rev().take_while(|(known, _)| known.place == note.place).find(|(known, _)| {
                let pair = parts(&known.message).zip(parts(&note.message));
                pair.is_some_and(|((_, one), (_, other))| one == other)
            });
        match (same, parts(&note.message)) {
            (Some((_, others)), Some((own, _))) => others.push(format!("`{own}`")),
            _ => found.push((note, Vec::new())),
        }
    }
    let whole = |(note, others): (Note, Vec<String>)| match parts(&note.message) {
        Some((own, rest)) if !others.is_empty() => {
            let message = format!("`{own}` (and {}){rest}", others.join(", "));
            Note { place: note.place, message }
        }
        _ => note,
    };
    found.into_iter().map(whole).collect()
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
            // What a type adds to variables is the code's word.
            let left = if prefix.is_empty() { tree.left_of_user() } else { tree.left() };
            for left in left {
                let path = format!("{prefix}{}", left.path);
                // Instances of one block, and what is made of a value, say the same at the same place.
                let last = path.rsplit('.').next().unwrap_or(&path).to_owned();
                let known = |note: &Note| {
                    note.place.as_ref() == Some(&left.place) && note.message.contains(&format!("`{last}`"))
                };
                if self.imported.notes.iter().any(known) || !told.insert((left.place.clone(), last)) {
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
            let message = match count {
                1 => "1 file there has nothing to say to Strata and stays where it is".to_owned(),
                _ => format!("{count} files there have nothing to say to Strata and stay where they are"),
            };
            self.passed_by.push(Note { place: Some(Place::new(&folder, 1)), message });
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
                    format!("it was opened with the password of the vault: secrets of it are in {} now, the rest is readable", self.imported.secrets_file),
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

    fn settings(&mut self, repository: &str) {
        self.tokens();
        let mut settings = Object::new();
        settings.insert("repository".into(), json!(repository));
        settings.insert("state".into(), self.state.clone().unwrap_or_else(|| json!({"backend": "local"})));
        let mut secrets: Vec<Json> = self.secret_files.iter().map(|path| json!({"sops": path})).collect();
        if !self.imported.secrets.is_empty() {
            secrets.insert(0, json!({"sops": self.imported.secrets_file}));
        }
        if !secrets.is_empty() {
            settings.insert("secrets".into(), json!(secrets));
        }
        if !self.targets.is_empty() {
            settings.insert("targets".into(), Json::Object(self.targets.clone()));
        }
        self.write("strata.yaml".to_owned(), settings, &Place::new("strata.yaml", 1));
    }
}

/// An endpoint as it is written down: without the path.
fn base(endpoint: &str) -> String {
    let endpoint = endpoint.trim_end_matches('/');
    endpoint.strip_suffix("/api2/json").unwrap_or(endpoint).trim_end_matches('/').to_owned()
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
