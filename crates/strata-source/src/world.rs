//! The world outside the source: files and the environment, passed in so that a load can be repeated anywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use strata_diagnostics::{LARGEST_FILE, read_file};

/// What a repository is loaded from. Paths are from its root, with `/`, or absolute.
pub trait World {
    fn read(&self, path: &str) -> io::Result<Vec<u8>>;

    /// What a folder holds, in the order of names; an absent folder holds nothing.
    fn list(&self, folder: &str) -> io::Result<Vec<Listed>>;

    fn env(&self, name: &str) -> Option<String>;
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    pub name: String,
    pub is_folder: bool,
}

/// A repository on disk.
#[derive(Debug, Clone)]
pub struct Disk {
    root: PathBuf,
    env: BTreeMap<String, String>,
    /// Files as they would be, by their paths from the root.
    edited: BTreeMap<String, String>,
}

impl Disk {
    /// The environment is a copy: whoever calls decides what of it may be seen.
    pub fn new(root: impl Into<PathBuf>, env: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { root: root.into(), env: env.into_iter().collect(), edited: BTreeMap::new() }
    }

    /// The same with some files as they would be, which nobody has written yet.
    #[must_use]
    pub fn with_edits(self, edited: BTreeMap<String, String>) -> Self {
        Self { edited, ..self }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }
}

impl World for Disk {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        if let Some(text) = self.edited.get(path) {
            return Ok(text.clone().into_bytes());
        }
        read_file(&self.root.join(path), LARGEST_FILE)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Listed>> {
        let mut listed = below(self.edited.keys(), folder);
        let entries = match std::fs::read_dir(self.root.join(folder)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(listed),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            // The type of the link itself: following links to folders could lead in circles.
            let is_folder = entry.file_type()?.is_dir();
            if let Ok(name) = entry.file_name().into_string() {
                listed.push(Listed { name, is_folder });
            }
        }
        listed.sort();
        listed.dedup();
        Ok(listed)
    }

    fn env(&self, name: &str) -> Option<String> {
        self.env.get(name).cloned()
    }
}

/// A repository in memory, for tests and for what was never written to disk.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    files: BTreeMap<String, Vec<u8>>,
    env: BTreeMap<String, String>,
}

impl Memory {
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn file(mut self, path: &str, content: impl Into<Vec<u8>>) -> Self {
        self.files.insert(path.to_owned(), content.into());
        self
    }

    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }
}

impl World for Memory {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.files.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Listed>> {
        Ok(below(self.files.keys(), folder))
    }

    fn env(&self, name: &str) -> Option<String> {
        self.env.get(name).cloned()
    }
}

/// A world with one file as it is about to be.
pub struct Edited<'w> {
    world: &'w dyn World,
    path: &'w str,
    content: &'w [u8],
}

impl<'w> Edited<'w> {
    pub fn new(world: &'w dyn World, path: &'w str, content: &'w [u8]) -> Self {
        Self { world, path, content }
    }
}

impl World for Edited<'_> {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        if path == self.path { Ok(self.content.to_vec()) } else { self.world.read(path) }
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Listed>> {
        let mut listed = self.world.list(folder)?;
        if let Some((_, name)) = self.path.rsplit_once('/').filter(|(parent, _)| *parent == folder)
            && !listed.iter().any(|entry| entry.name == name)
        {
            listed.push(Listed { name: name.to_owned(), is_folder: false });
            listed.sort();
        }
        Ok(listed)
    }

    fn env(&self, name: &str) -> Option<String> {
        self.world.env(name)
    }
}

/// What a folder holds by the paths of files, in the order of names.
fn below<'p>(paths: impl Iterator<Item = &'p String>, folder: &str) -> Vec<Listed> {
    let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    let below = paths.filter_map(|path| path.strip_prefix(&prefix));
    let listed: BTreeSet<Listed> = below
        .map(|rest| match rest.split_once('/') {
            Some((name, _)) => Listed { name: name.to_owned(), is_folder: true },
            None => Listed { name: rest.to_owned(), is_folder: false },
        })
        .collect();
    listed.into_iter().collect()
}

/// A name in a folder; the root is the folder without a name.
pub fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Where a path that the source names may lie: beside the file that names it, or at the root.
pub(crate) fn candidates(world: &dyn World, folder: &str, path: &str) -> Vec<String> {
    if let Some(rest) = path.strip_prefix("~/") {
        return world
            .env("HOME")
            .map(|home| format!("{}/{rest}", home.trim_end_matches('/')))
            .into_iter()
            .collect();
    }
    if path.starts_with('/') || folder.is_empty() {
        return vec![path.to_owned()];
    }
    vec![format!("{folder}/{path}"), path.to_owned()]
}

/// The first of the places where a named file is, with its content.
pub(crate) fn find(world: &dyn World, folder: &str, path: &str) -> Result<(String, Vec<u8>), String> {
    let places = candidates(world, folder, path);
    for place in &places {
        match world.read(place) {
            Ok(content) => return Ok((place.clone(), content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("`{place}` cannot be read: {error}")),
        }
    }
    Err(match places.as_slice() {
        [] => format!("`{path}` needs the variable `HOME`, which is not set"),
        [one] => format!("there is no file `{one}`"),
        several => format!("there is no file `{}`", several.join("` and no `")),
    })
}
