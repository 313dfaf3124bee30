//! Volumes: disk images, ISOs, templates, backups; and how much room they take on each storage.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use strata_sim_core::Medium;

/// One volume. Content is kept only when it is small enough to matter.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Volume {
    /// `images`, `rootdir`, `iso`, `vztmpl`, `import`, `snippets` or `backup`.
    pub content: String,
    pub format: String,
    /// What the guest sees; for files their length.
    pub size: u64,
    /// For a file that holds a disk image: the size of that disk.
    pub virtual_size: Option<u64>,
    pub vmid: Option<u32>,
    /// The volume name of the base image of a linked clone.
    pub parent: Option<String>,
    pub snapshots: Vec<String>,
    pub notes: Option<String>,
    pub protected: bool,
    pub ctime: i64,
    /// The SHA-256 of the content of a file, where it was seen.
    pub sha256: Option<String>,
    /// There is an operating system on it: a guest with it reacts to ACPI.
    pub bootable: bool,
    /// The configuration inside a backup.
    pub inner: Option<String>,
    /// Where a file was downloaded from.
    #[serde(default)]
    pub url: Option<String>,
    /// How often an image outgrew its list of tables.
    #[serde(default)]
    pub relisted: u32,
    /// The size up to which an image has its tables, if that is not its size.
    #[serde(default)]
    pub tabled: Option<u64>,
    /// What the system inside a guest wrote on it. Copies of the disk have it too.
    #[serde(default, alias = "talos")]
    pub medium: Option<Medium>,
}

/// Where a volume is: storage, node (empty on shared storages), name.
pub type VolumeKey = (String, String, String);

/// All volumes, with the room they take kept up to date.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(from = "Vec<(VolumeKey, Volume)>", into = "Vec<(VolumeKey, Volume)>")]
pub struct Volumes {
    all: BTreeMap<VolumeKey, Volume>,
    used: HashMap<(String, String), u64>,
}

impl Clone for Volumes {
    fn clone(&self) -> Self {
        Self { all: self.all.clone(), used: self.used.clone() }
    }
}

impl From<Vec<(VolumeKey, Volume)>> for Volumes {
    fn from(list: Vec<(VolumeKey, Volume)>) -> Self {
        let mut volumes = Self::default();
        for (place, volume) in list {
            volumes.insert(place, volume);
        }
        volumes
    }
}

impl From<Volumes> for Vec<(VolumeKey, Volume)> {
    fn from(volumes: Volumes) -> Self {
        volumes.all.into_iter().collect()
    }
}

impl Volumes {
    pub fn insert(&mut self, place: VolumeKey, volume: Volume) {
        self.remove(&place);
        *self.used.entry((place.0.clone(), place.1.clone())).or_default() += volume.size;
        self.all.insert(place, volume);
    }

    pub fn remove(&mut self, place: &VolumeKey) -> Option<Volume> {
        let volume = self.all.remove(place)?;
        if let Some(used) = self.used.get_mut(&(place.0.clone(), place.1.clone())) {
            *used = used.saturating_sub(volume.size);
        }
        Some(volume)
    }

    pub fn get(&self, place: &VolumeKey) -> Option<&Volume> {
        self.all.get(place)
    }

    /// Changes a volume in place, keeping the books.
    pub fn edit(&mut self, place: &VolumeKey, change: impl FnOnce(&mut Volume)) -> bool {
        let Some(mut volume) = self.remove(place) else { return false };
        change(&mut volume);
        self.insert(place.clone(), volume);
        true
    }

    /// The volumes of one storage on one node (or of a shared one), by name.
    pub fn on<'v>(
        &'v self,
        storage: &str,
        scope: &str,
    ) -> impl Iterator<Item = (&'v str, &'v Volume)> + use<'v> {
        let from = (storage.to_owned(), scope.to_owned(), String::new());
        let (storage, scope) = (storage.to_owned(), scope.to_owned());
        self.all
            .range(from..)
            .take_while(move |((s, n, _), _)| *s == storage && *n == scope)
            .map(|((_, _, name), volume)| (name.as_str(), volume))
    }

    pub fn iter(&self) -> impl Iterator<Item = (&VolumeKey, &Volume)> {
        self.all.iter()
    }

    /// Bytes taken on a storage.
    pub fn used(&self, storage: &str, scope: &str) -> u64 {
        self.used.get(&(storage.to_owned(), scope.to_owned())).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_books_follow_every_change() {
        let mut volumes = Volumes::default();
        let place = |name: &str| ("local".to_owned(), "pve".to_owned(), name.to_owned());
        volumes.insert(place("a"), Volume { size: 10, ..Volume::default() });
        volumes.insert(place("b"), Volume { size: 5, ..Volume::default() });
        volumes.edit(&place("a"), |v| v.size = 20);
        assert_eq!(volumes.used("local", "pve"), 25);
        volumes.remove(&place("b"));
        assert_eq!(volumes.used("local", "pve"), 20);
        assert_eq!(volumes.on("local", "pve").count(), 1);
        assert_eq!(volumes.on("local", "other").count(), 0);
    }
}
