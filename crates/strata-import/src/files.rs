//! The files of the repository that is read: listed once, without what tools put there, and which of them somebody looked at.

use std::collections::{BTreeMap, BTreeSet};

use strata_source::world::{World, join};

/// Folders of tools and of packages, which nobody wrote by hand.
const SKIPPED: [&str; 8] =
    ["node_modules", "vendor", "target", "__pycache__", "venv", "clusterconfig", "dist", "build"];
/// The endings of OpenTofu's code; of two files with one name, OpenTofu takes the one with its own ending.
pub(super) const CODE: [&str; 2] = [".tf", ".tofu"];
const MAX_DEPTH: usize = 12;
const MAX_FILES: usize = 100_000;

#[derive(Debug, Default)]
pub(super) struct Files {
    all: BTreeSet<String>,
    read: BTreeSet<String>,
}

impl Files {
    pub(super) fn of(world: &dyn World) -> Self {
        let mut files = Self::default();
        files.list(world, "", 0);
        files
    }

    fn list(&mut self, world: &dyn World, folder: &str, depth: usize) {
        for entry in world.list(folder).unwrap_or_default() {
            if self.all.len() >= MAX_FILES {
                return;
            }
            let path = join(folder, &entry.name);
            if !entry.is_folder {
                self.all.insert(path);
            } else if depth < MAX_DEPTH
                && !entry.name.starts_with('.')
                && !SKIPPED.contains(&entry.name.as_str())
            {
                self.list(world, &path, depth + 1);
            }
        }
    }

    /// The paths of files with a name, those nearer to the root first.
    pub(super) fn named(&self, name: &str) -> Vec<String> {
        let mut found: Vec<String> =
            self.all.iter().filter(|path| path.rsplit('/').next() == Some(name)).cloned().collect();
        found.sort_by_key(|path| (path.matches('/').count(), path.clone()));
        found
    }

    /// The folders that hold a file with an ending.
    pub(super) fn folders_with(&self, ending: &str) -> BTreeSet<String> {
        self.all.iter().filter(|path| path.ends_with(ending)).map(|path| folder_of(path).to_owned()).collect()
    }

    /// The folders that hold code of OpenTofu.
    pub(super) fn folders_with_code(&self) -> BTreeSet<String> {
        CODE.iter().flat_map(|ending| self.folders_with(ending)).collect()
    }

    /// The code of one folder.
    pub(super) fn code(&self, folder: &str) -> Vec<String> {
        CODE.iter().flat_map(|ending| self.inside(folder, ending)).collect()
    }

    /// The files of one folder with an ending.
    pub(super) fn inside(&self, folder: &str, ending: &str) -> Vec<String> {
        let is_it = |path: &&String| folder_of(path) == folder && path.ends_with(ending);
        self.all.iter().filter(is_it).cloned().collect()
    }

    /// Every file below a folder.
    pub(super) fn below(&self, folder: &str) -> Vec<String> {
        let prefix = format!("{folder}/");
        self.all.range(prefix.clone()..).take_while(|path| path.starts_with(&prefix)).cloned().collect()
    }

    /// Every file.
    pub(super) fn inside_all(&self) -> Vec<String> {
        self.all.iter().cloned().collect()
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.all.contains(path)
    }

    pub(super) fn read(&mut self, path: &str) {
        self.read.insert(path.to_owned());
    }

    pub(super) fn was_read(&self, path: &str) -> bool {
        self.read.contains(path)
    }

    /// Counts everything below a folder as looked at.
    pub(super) fn read_below(&mut self, folder: &str) {
        self.read.extend(self.below(folder));
    }

    /// The topmost folders of which nothing was looked at, with how many files they hold.
    pub(super) fn unread(&self) -> Vec<(String, usize)> {
        let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for path in &self.all {
            let read = usize::from(self.read.contains(path));
            let mut folder = folder_of(path);
            while !folder.is_empty() {
                let count = counts.entry(folder).or_default();
                count.0 += 1;
                count.1 += read;
                folder = folder_of(folder);
            }
        }
        let untouched = |folder: &str| counts.get(folder).is_some_and(|count| count.1 == 0);
        counts
            .iter()
            .filter(|(folder, _)| untouched(folder) && !untouched(folder_of(folder)))
            .map(|(folder, count)| ((*folder).to_owned(), count.0))
            .collect()
    }
}

pub(super) fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

#[cfg(test)]
mod tests {
    use strata_source::world::Memory;

    use super::*;

    #[test]
    fn tools_are_passed_by_and_what_nobody_read_is_known() {
        let world = Memory::new()
            .file("a/x.tf", "")
            .file("a/.terraform/modules/x.tf", "")
            .file("node_modules/y.tf", "")
            .file("b/c/y.yaml", "")
            .file("b/z.yaml", "");
        let mut files = Files::of(&world);
        assert_eq!(files.folders_with(".tf").into_iter().collect::<Vec<_>>(), ["a"]);
        files.read("a/x.tf");
        assert_eq!(files.unread(), [("b".to_owned(), 2)]);
        files.read("b/z.yaml");
        assert_eq!(files.unread(), [("b/c".to_owned(), 1)]);
    }
}
