//! Edits that are tried: each is drawn, and stays only if it says what is live and changes nothing else.

use std::collections::BTreeMap;

use strata_adopt::accept::{Edit, guesses, key_changes, ways, with_live};
use strata_adopt::{StackDefaults, container, vm};
use strata_blueprint::kinds;
use strata_diagnostics::{Diagnostic, LARGEST_FILE, read_text_file};
use strata_resource::{Address, FieldChange, FieldPath, Resource, ResourceGraph, Spec, Value, drift_between};
use strata_session::{SessionError, Workspace, key};
use strata_source::EffectiveStack;
use strata_source::machine::container::Container;
use strata_source::machine::vm::Vm;
use strata_yaml::{Decode as _, edit};

use super::places::{Place, places};
use super::ways_out;
use crate::adopt::{FileEdit, stack_defaults, stack_of};

/// What is accepted, by the key of its state and its address.
type Accepted = BTreeMap<(String, Address), Spec>;
type FileEdits = BTreeMap<String, FileEdit>;
type Refusals = BTreeMap<Address, SessionError>;

pub(super) struct Trial<'w> {
    workspace: &'w Workspace,
    wanted: &'w BTreeMap<Address, Vec<FieldChange>>,
    /// What each of them is to be drawn to.
    live: Accepted,
    /// The files as they would be.
    texts: BTreeMap<String, String>,
    /// The repository with them; the one on the disk at first.
    edited: Option<Workspace>,
}

/// Why an edit was not kept.
enum Unfit {
    /// It does not say it, or cannot be read.
    Useless,
    /// It would change this, too.
    Changes(String, Address),
}

impl<'w> Trial<'w> {
    pub(super) fn new(
        workspace: &'w Workspace,
        wanted: &'w BTreeMap<Address, Vec<FieldChange>>,
    ) -> Result<Self, SessionError> {
        let mut live = Accepted::new();
        for (address, changes) in wanted {
            let Some(stack) = stack_of(workspace, address.stack()) else { continue };
            let graph = drawn(workspace, stack)?;
            if let Some(resource) = graph.get(address) {
                live.insert((key(stack), address.clone()), with_live(&resource.spec, changes));
            }
        }
        Ok(Self { workspace, wanted, live, texts: BTreeMap::new(), edited: None })
    }

    /// The files that say all of it, or what cannot be said.
    pub(super) fn run(mut self) -> Result<(FileEdits, Refusals), SessionError> {
        let mut refused = BTreeMap::new();
        for (address, changes) in self.wanted {
            for change in changes {
                if let Some(error) = self.write(address, change)? {
                    refused.insert(address.clone(), error);
                    break;
                }
            }
        }
        let mut files = BTreeMap::new();
        for (path, after) in self.texts {
            let before = read(self.workspace, &path);
            if before != after {
                files.insert(path, FileEdit { before, after });
            }
        }
        Ok((files, refused))
    }

    fn current(&self) -> &Workspace {
        self.edited.as_ref().unwrap_or(self.workspace)
    }

    fn text(&self, path: &str) -> String {
        self.texts.get(path).cloned().unwrap_or_else(|| read(self.workspace, path))
    }

    /// Has the source say one field. Gives the reason where it cannot.
    fn write(
        &mut self,
        address: &Address,
        change: &FieldChange,
    ) -> Result<Option<SessionError>, SessionError> {
        let current = self.current();
        let Some(stack) = stack_of(current, address.stack()) else { return Ok(None) };
        let state = key(stack);
        let Some(live) = self.live.get(&(state.clone(), address.clone())) else { return Ok(None) };
        let graph = drawn(current, stack)?;
        let Some(resource) = graph.get(address) else { return Ok(None) };
        if says(address, &resource.spec, live, &change.path) {
            return Ok(None);
        }
        let places = places(current, stack, address, &|path| self.text(path));
        let defaults = stack.machines().map(stack_defaults).unwrap_or_default();
        let (mut blocked, mut shared) = (None, None);
        for place in &places {
            for edit in edits(place, &self.text(&place.file), resource, change, &defaults) {
                let Ok(text) = edit.apply(&self.text(&place.file)) else { continue };
                match self.attempt(&place.file, text, address, change, &state)? {
                    Ok(()) => return Ok(None),
                    Err(Unfit::Useless) => {}
                    Err(Unfit::Changes(key, other)) => {
                        blocked.get_or_insert((key, other));
                        shared = shared.or_else(|| place.shared.clone());
                    }
                }
            }
        }
        let origin = resource.origin.clone();
        Ok(Some(refusal(address, change, &state, blocked, shared, origin)))
    }

    /// Draws the repository with one more edit, and keeps it if it fits.
    fn attempt(
        &mut self,
        path: &str,
        text: String,
        address: &Address,
        change: &FieldChange,
        state: &str,
    ) -> Result<Result<(), Unfit>, SessionError> {
        let mut texts = self.texts.clone();
        texts.insert(path.to_owned(), text);
        let (edited, diagnostics) = self.workspace.edited(texts.clone())?;
        if diagnostics.has_errors() {
            return Ok(Err(Unfit::Useless));
        }
        let mut before: BTreeMap<String, &EffectiveStack> = BTreeMap::new();
        before.extend(self.current().repository().effective().map(|stack| (key(stack), stack)));
        let mut said = false;
        for stack in edited.repository().effective() {
            let Some(former) = before.remove(&key(stack)) else { return Ok(Err(Unfit::Useless)) };
            if stack.says_the_same(former) {
                continue;
            }
            if edited.drawing_errors(stack)?.iter().any(Diagnostic::is_error) {
                return Ok(Err(Unfit::Useless));
            }
            let (old, new) = (drawn(self.current(), former)?, drawn(&edited, stack)?);
            if let Some(other) = self.touched(&key(stack), &old, &new) {
                return Ok(Err(Unfit::Changes(key(stack), other)));
            }
            if key(stack) == state {
                let live = self.live.get(&(state.to_owned(), address.clone()));
                said = new
                    .get(address)
                    .zip(live)
                    .is_some_and(|(resource, live)| says(address, &resource.spec, live, &change.path));
            }
        }
        if !said || !before.is_empty() {
            return Ok(Err(Unfit::Useless));
        }
        (self.texts, self.edited) = (texts, Some(edited));
        Ok(Ok(()))
    }

    /// The first object that an edit changes in another way than to what is live.
    fn touched(&self, state: &str, old: &ResourceGraph, new: &ResourceGraph) -> Option<Address> {
        let unlike = |resource: &&Resource| {
            let Some(former) = old.get(&resource.address) else { return true };
            let mut paths = Vec::new();
            differing(&FieldPath::root(), &former.spec, &resource.spec, &mut paths);
            let live = self.live.get(&(state.to_owned(), resource.address.clone()));
            match live {
                Some(live) => !paths.iter().all(|path| says(&resource.address, &resource.spec, live, path)),
                None => !paths.is_empty(),
            }
        };
        let gone = old.iter().find(|resource| new.get(&resource.address).is_none());
        new.iter().find(unlike).or(gone).map(|resource| resource.address.clone())
    }
}

/// Whether a spec says what is live, in one field.
fn says(address: &Address, spec: &Spec, live: &Spec, path: &FieldPath) -> bool {
    let differs = |one: &Spec, other: &Spec| {
        drift_between(address.kind().rules(), one, other).iter().any(|change| change.path.overlaps(path))
    };
    !differs(spec, live) && !differs(live, spec)
}

/// Where two specs differ.
fn differing(path: &FieldPath, one: &Spec, other: &Spec, found: &mut Vec<FieldPath>) {
    let keys: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    for key in keys {
        let here = path.child(key);
        match (one.get(key), other.get(key)) {
            (Some(Value::Map(one)), Some(Value::Map(other))) => differing(&here, one, other, found),
            (Some(one), Some(other)) if same(one, other) => {}
            _ => found.push(here),
        }
    }
}

/// A secret is the same where its text is.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Secret(one), Value::Secret(other)) => match (one.plain(), other.plain()) {
            (Some(one), Some(other)) => one == other,
            _ => one == other,
        },
        (Value::List(one), Value::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Map(one), Value::Map(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| same(value, other)))
        }
        (one, other) => one == other,
    }
}

/// What could be written in one place.
fn edits(
    place: &Place,
    text: &str,
    resource: &Resource,
    change: &FieldChange,
    defaults: &StackDefaults,
) -> Vec<Edit> {
    let Ok(file) = edit::value_of(text) else { return Vec::new() };
    if !place.is_guest || !matches!(resource.kind(), kinds::VM | kinds::CONTAINER) {
        return guesses(&file, &place.entry, change);
    }
    let name = place.entry.path.last().map(String::as_str).unwrap_or_default();
    let (shape, written): (_, fn(&str, &Spec, &StackDefaults) -> strata_adopt::Written) =
        match resource.kind() == kinds::CONTAINER {
            true => (Container::shape(), container),
            false => (Vm::shape(), vm),
        };
    let as_yaml = |spec: &Spec| written(name, spec, defaults).yaml;
    let live = with_live(&resource.spec, std::slice::from_ref(change));
    let (changes, after) = key_changes(&shape, &as_yaml(&resource.spec), &as_yaml(&live));
    match changes.as_slice() {
        [one] => ways(&file, &place.entry, one, &after, change),
        _ => changes.iter().flat_map(|one| ways(&file, &place.entry, one, &after, change)).collect(),
    }
}

fn refusal(
    address: &Address,
    change: &FieldChange,
    state: &str,
    blocked: Option<(String, Address)>,
    shared: Option<String>,
    origin: Option<String>,
) -> SessionError {
    let (field, at) = (&change.path, origin.map(|origin| format!(" (`{origin}`)")).unwrap_or_default());
    match (blocked, shared) {
        (Some((_, other)), Some(shared)) if other != *address => SessionError::refused(format!(
            "`{address}`: `{field}` is written once for all of {shared}{at}, and would change `{other}` too"
        ))
        .hint(format!(
            "accept them together where all are alike, or give each its own entry with `each`; `strata apply {address}` reverts it"
        )),
        (Some((key, other)), _) if key != state => SessionError::refused(format!(
            "`{address}`: `{field}` cannot be written{at} without a change of `{other}` in `{key}`"
        ))
        .hint(ways_out(address)),
        (Some((_, other)), _) if other != *address => SessionError::refused(format!(
            "`{address}`: `{field}` cannot be written{at} without a change of `{other}`"
        ))
        .hint(ways_out(address)),
        _ => SessionError::refused(format!("`{address}`: no key{at} says `{field}` as it is live"))
            .hint(ways_out(address)),
    }
}

fn drawn(workspace: &Workspace, stack: &EffectiveStack) -> Result<ResourceGraph, SessionError> {
    Ok(workspace.blueprint_by_names(stack)?.graph)
}

/// A file that is not there is empty.
fn read(workspace: &Workspace, path: &str) -> String {
    read_text_file(&workspace.root().join(path), LARGEST_FILE).unwrap_or_default()
}
