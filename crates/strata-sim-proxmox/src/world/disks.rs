//! The disks of a node, and what was made of them: pools, volume groups, directories.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Disk {
    /// `/dev/sdb`.
    pub path: String,
    pub model: String,
    pub serial: String,
    pub size: u64,
    /// What it is used for, in the words of the list of disks.
    pub used: Option<String>,
    pub gpt: bool,
}

impl Disk {
    /// The other name of a disk that does not change when disks are plugged in elsewhere.
    pub fn by_id(&self) -> Option<String> {
        (!self.serial.is_empty()).then(|| format!("/dev/disk/by-id/ata-{}_{}", self.model, self.serial))
    }
}

/// What disks were made into.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Made {
    /// `zfs`, `lvm`, `lvmthin` or `directory`.
    pub kind: String,
    pub name: String,
    /// The paths of its disks.
    pub disks: Vec<String>,
    /// How disks of a pool stand for each other; the file system of a directory.
    pub layout: String,
    pub size: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Disks {
    pub all: Vec<Disk>,
    pub made: Vec<Made>,
}

impl Disks {
    /// A disk by one of its names.
    pub fn find(&self, name: &str) -> Option<&Disk> {
        self.all.iter().find(|disk| disk.path == name || disk.by_id().as_deref() == Some(name))
    }

    pub fn find_mut(&mut self, path: &str) -> Option<&mut Disk> {
        self.all.iter_mut().find(|disk| disk.path == path)
    }

    pub fn made(&self, kind: &str, name: &str) -> Option<&Made> {
        self.made.iter().find(|made| made.kind == kind && made.name == name)
    }

    /// All that was made of a kind.
    pub fn of<'d>(&'d self, kind: &'d str) -> impl Iterator<Item = &'d Made> {
        self.made.iter().filter(move |made| made.kind == kind)
    }

    /// The bytes that a pool of these disks has for data.
    pub fn capacity(&self, level: &str, disks: &[String]) -> u64 {
        let sizes = disks.iter().filter_map(|path| self.find(path)).map(|disk| disk.size);
        let smallest = sizes.clone().min().unwrap_or_default();
        let count = u64::try_from(disks.len()).unwrap_or_default();
        let data = match level {
            "mirror" => 1,
            "raid10" => count / 2,
            "raidz" | "draid" => count.saturating_sub(1),
            "raidz2" | "draid2" => count.saturating_sub(2),
            "raidz3" | "draid3" => count.saturating_sub(3),
            _ => return sizes.sum(),
        };
        smallest * data.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_has_what_its_level_leaves() {
        let disk = |n: u64| Disk { path: format!("/dev/sd{n}"), size: 100 + n, ..Disk::default() };
        let disks = Disks { all: (0..4).map(disk).collect(), made: vec![] };
        let all: Vec<String> = disks.all.iter().map(|disk| disk.path.clone()).collect();
        assert_eq!(disks.capacity("mirror", &all), 100);
        assert_eq!(disks.capacity("raid10", &all), 200);
        assert_eq!(disks.capacity("raidz2", &all), 200);
        assert_eq!(disks.capacity("single", &all[..1]), 100);
    }
}
