//! What a repository pins, as every stack has it in each of its environments.

mod clusters;
mod images;
mod tofu;

use std::collections::{BTreeMap, BTreeSet};

use strata_source::world::World;
use strata_source::{EffectiveStack, Repository};
use strata_yaml::edit;
use strata_yaml::{Spanned, edit::Step};

use crate::pin::{At, Group, Pin, Place, What};

/// Every pin once, in the order of files and lines.
pub fn pins(repository: &Repository, world: &dyn World) -> Vec<Pin> {
    let mut found = Pins { repository, pins: BTreeMap::new() };
    for stack in repository.effective() {
        images::of(&mut found, stack);
        clusters::of(&mut found, stack);
    }
    let mut pins: Vec<Pin> = found.pins.into_values().collect();
    pins.extend(tofu::pins(repository, world));
    pins.sort_by(|one, other| one.place.cmp(&other.place));
    pins
}

/// A value that several stacks have is written once: in a profile, a default, the file that an environment is laid over.
struct Pins<'r> {
    repository: &'r Repository,
    pins: BTreeMap<Place, Pin>,
}

impl Pins<'_> {
    fn add(&mut self, stack: &EffectiveStack, group: Group, name: &str, value: &Spanned<String>, what: What) {
        let file = self.repository.sources.file(value.span.file);
        let byte = value.span.range().start;
        let place = Place { file: file.path().to_owned(), line: file.line_column(byte).0, byte };
        let used = format!("{}/{}", stack.environment, stack.name);
        match self.pins.get_mut(&place) {
            Some(pin) => {
                pin.stacks.insert(used);
                pin.what.also(what);
            }
            None => {
                let at = edit::path_at(file.text(), byte);
                let at = at.map(At::Yaml).map_err(|error| error.to_string());
                let (name, current) = (name.to_owned(), value.value.clone());
                let stacks = BTreeSet::from([used]);
                self.pins.insert(place.clone(), Pin { group, name, current, place, stacks, what, at });
            }
        }
    }

    /// The value of a key beside another value, in the same mapping of the same file.
    fn beside(&self, value: &Spanned<String>, key: &str, text: &str) -> Option<At> {
        let file = self.repository.sources.file(value.span.file);
        let mut path = edit::path_at(file.text(), value.span.range().start).ok()?;
        *path.last_mut()? = Step::from(key);
        let written =
            path.iter().try_fold(edit::value_of(file.text()).ok()?, |mut value, step| match step {
                Step::Key(key) => value.get_mut(key).map(serde_json::Value::take),
                Step::Index(index) => value.get_mut(index).map(serde_json::Value::take),
            })?;
        written.as_str().filter(|written| written.eq_ignore_ascii_case(text)).map(|_| At::Yaml(path))
    }
}

impl What {
    /// What decides for one user decides for all.
    fn also(&mut self, other: Self) {
        match (self, other) {
            (Self::Talos { kubernetes, extensions }, Self::Talos { kubernetes: more, extensions: names }) => {
                kubernetes.extend(more);
                extensions.extend(names);
            }
            (Self::Kubernetes { talos }, Self::Kubernetes { talos: more }) => talos.extend(more),
            _ => {}
        }
    }
}
