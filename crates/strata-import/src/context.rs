//! An import while it is made: what was read, what was written so far, and the notes on what was left out.

use crate::output::Put as _;
use crate::output::only;
use crate::records::{SecretSource, Settings, State};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::{Value as Json, json};
use strata_source::world::World;

use crate::files::Files;
use crate::hcl::{self, Attribute, Block};
use crate::model::Model;
use crate::module::Library;
use crate::output::Object;
use crate::tree::{Content, Marks, SourceLine, Tree};
use crate::{Imported, Note, OpenVault, parse};

/// An import while it is made.
pub(crate) struct Import<'w> {
    pub(crate) world: &'w dyn World,
    pub(crate) open: Option<OpenVault<'w>>,
    pub(crate) library: Rc<Library<'w>>,
    pub(crate) marks: Rc<Marks>,
    pub(crate) files: Files,
    pub(crate) imported: Imported,
    pub(crate) model: Model,
    /// The names of what is in encrypted files that are kept.
    pub(crate) kept_names: BTreeSet<String>,
    /// VMIDs that are taken, by endpoint.
    pub(crate) taken: BTreeMap<(String, i64), String>,
    /// Fixed addresses that are taken, by endpoint.
    pub(crate) addresses: BTreeMap<(String, String), String>,
    /// Names of machines, by endpoint.
    pub(crate) names: BTreeSet<(String, String)>,
    /// How many addresses stand in for real ones.
    pub(crate) stand_ins: usize,
    /// Folders that were not looked at.
    pub(crate) passed_by: Vec<Note>,
    /// Names of stacks.
    pub(crate) stacks: BTreeSet<String>,
    /// Templates by endpoint and VMID: `stack/template`.
    pub(crate) templates: BTreeMap<(String, i64), String>,
    /// What was written of them.
    pub(crate) template_bodies: BTreeMap<(String, i64), Object>,
    /// The folders of code that were evaluated.
    pub(crate) evaluated: BTreeSet<String>,
    /// What is reported in the end unless somebody takes it, with what stands before its path.
    pub(crate) pending: Vec<(String, Tree)>,
}

impl<'w> Import<'w> {
    pub(crate) fn new(world: &'w dyn World, open: Option<OpenVault<'w>>) -> Self {
        Self {
            world,
            open,
            library: Rc::new(Library::new(world)),
            marks: Rc::default(),
            files: Files::of(world),
            imported: Imported { secrets_file: "secrets.sops.yaml".to_owned(), ..Imported::default() },
            model: Model::default(),
            kept_names: BTreeSet::new(),
            taken: BTreeMap::new(),
            addresses: BTreeMap::new(),
            names: BTreeSet::new(),
            stand_ins: 0,
            passed_by: Vec::new(),
            stacks: BTreeSet::new(),
            templates: BTreeMap::new(),
            template_bodies: BTreeMap::new(),
            evaluated: BTreeSet::new(),
            pending: Vec::new(),
        }
    }

    pub(crate) fn note(&mut self, place: Option<&SourceLine>, message: impl Into<String>) {
        let note = Note { place: place.cloned(), message: message.into() };
        if !self.imported.notes.contains(&note) {
            self.imported.notes.push(note);
        }
    }

    pub(crate) fn found(&mut self, kind: &'static str) {
        if !self.imported.found.contains(&kind) {
            self.imported.found.push(kind);
        }
    }

    /// Takes what Strata needs nobody to say, and says why.
    pub(crate) fn needless(&mut self, tree: &Tree, keys: &[&str], why: &str) {
        for key in keys {
            let Some(found) = tree.get(key) else { continue };
            if let Some(left) = tree.left().into_iter().find(|left| left.path == *key) {
                self.note(Some(&left.place), format!("`{key}` is not needed: {why}"));
            }
            found.take_all();
        }
    }

    /// Reports in the end what nobody took of this.
    pub(crate) fn watch(&mut self, prefix: &str, tree: &Tree) {
        self.pending.push((prefix.to_owned(), tree.clone()));
    }

    pub(crate) fn report(&mut self) {
        let mut told: BTreeSet<(SourceLine, String)> = BTreeSet::new();
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
                            "which only running the code would show"
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
    pub(crate) fn unread(&mut self) {
        for (folder, count) in self.files.unread() {
            let message = match count {
                1 => "1 file there has nothing to say to Strata and stays where it is".to_owned(),
                _ => format!("{count} files there have nothing to say to Strata and stay where they are"),
            };
            self.passed_by.push(Note { place: Some(SourceLine::new(&folder, 1)), message });
        }
    }

    /// The text of a file; not if it is no text at all.
    pub(crate) fn read(&mut self, path: &str) -> Option<String> {
        let content = self.world.read(path).ok()?;
        self.files.read(path);
        if content.contains(&0) {
            self.note(Some(&SourceLine::new(path, 1)), "it is not text and was not read");
            return None;
        }
        let (text, damaged) = parse::text(&content);
        if damaged {
            self.note(
                Some(&SourceLine::new(path, 1)),
                "it is not UTF-8: letters that cannot be read were replaced",
            );
        }
        Some(text)
    }

    /// The text of a file that may be encrypted by ansible-vault; not if it cannot be opened.
    pub(crate) fn read_opened(&mut self, path: &str) -> Option<String> {
        let text = self.read(path)?;
        if !text.starts_with("$ANSIBLE_VAULT") {
            return Some(text);
        }
        let opened = self.open.map(|open| open(path, text.as_bytes()));
        let place = SourceLine::new(path, 1);
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

    pub(crate) fn yaml(&mut self, path: &str) -> Option<Tree> {
        let text = self.read(path)?;
        self.yaml_text(path, &text)
    }

    pub(crate) fn yaml_text(&mut self, path: &str, text: &str) -> Option<Tree> {
        let (tree, problems) = parse::yaml(path, text);
        for (place, reason) in problems {
            let how = if tree.is_some() { "not all of it was read" } else { "it was not read" };
            self.note(Some(&place), format!("{how}: {reason}"));
        }
        tree
    }

    /// A file of variables: its attributes, and the blocks that have no place in one.
    pub(crate) fn variables(&mut self, path: &str) -> Option<(Vec<Attribute>, Vec<Block>)> {
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
    pub(crate) fn write(&mut self, path: String, document: Object, place: &SourceLine) {
        self.model.documents.insert(path, (Json::Object(document), place.clone()));
    }

    /// Remembers where a machine came from.
    pub(crate) fn origin(&mut self, document: &str, section: &str, own: &str, place: &SourceLine) {
        self.model.origins.insert((document.to_owned(), section.to_owned(), own.to_owned()), place.clone());
    }

    pub(crate) fn secret(&mut self, name: &str, value: &str) -> Json {
        let mut unique = name.to_owned();
        let mut number = 2;
        while self.imported.secrets.get(&unique).is_some_and(|known| known != value) {
            unique = format!("{name}_{number}");
            number += 1;
        }
        self.imported.secrets.insert(unique.clone(), value.to_owned());
        json!({"secret": unique})
    }

    pub(crate) fn settings(&mut self, repository: &str) {
        self.tokens();
        let mut settings = Object::new();
        settings.set(Settings::repository, json!(repository));
        settings
            .set(Settings::state, self.model.state.clone().unwrap_or_else(|| only(State::backend, "local")));
        let mut secrets: Vec<Json> =
            self.model.secret_files.iter().map(|path| only(SecretSource::sops, path.as_str())).collect();
        if !self.imported.secrets.is_empty() {
            secrets.insert(0, only(SecretSource::sops, self.imported.secrets_file.as_str()));
        }
        if !secrets.is_empty() {
            settings.set(Settings::secrets, json!(secrets));
        }
        if !self.model.targets.is_empty() {
            settings.set(Settings::targets, Json::Object(self.model.targets.clone()));
        }
        self.write("strata.yaml".to_owned(), settings, &SourceLine::new("strata.yaml", 1));
    }
}

/// An endpoint as it is written down: without the path.
pub(crate) fn base(endpoint: &str) -> String {
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
pub(crate) fn with_v(version: String) -> String {
    format!("v{}", version.trim_start_matches('v'))
}

/// Whether a text is a version such as `v1.13.9`.
pub(crate) fn is_version(text: &str) -> bool {
    let plain = text.trim_start_matches('v');
    let core = plain.split(['-', '+']).next().unwrap_or_default();
    core.split('.').count() == 3 && core.split('.').all(|part| part.parse::<u32>().is_ok())
}

/// Whether a content is a scalar.
pub(crate) fn is_scalar(content: &Content) -> bool {
    matches!(content, Content::Bool(_) | Content::Number(_) | Content::Text(_))
}
