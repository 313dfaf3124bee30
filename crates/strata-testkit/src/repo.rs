//! A user's repository in a temporary folder.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::TestSim;

pub struct Repo {
    folder: TempDir,
}

impl Default for Repo {
    fn default() -> Self {
        Self::empty()
    }
}

impl Repo {
    pub fn empty() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A repository whose target `pve` is the simulator.
    pub fn on(sim: &TestSim) -> Self {
        let repo = Self::empty();
        repo.write("sim-token", sim.token());
        repo.write(
            "strata.yaml",
            &format!(
                "repository: test\ntargets:\n  pve:\n    proxmox:\n      endpoint: {}\n      token: {{file: sim-token}}\n      tls: {{fingerprint: \"{}\"}}\n",
                sim.endpoint(),
                sim.fingerprint()
            ),
        );
        repo
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.file(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.file(path)).unwrap()
    }

    pub fn remove(&self, path: &str) {
        fs::remove_file(self.file(path)).unwrap();
    }

    /// Replaces a text that must be there.
    pub fn edit(&self, path: &str, from: &str, to: &str) {
        let text = self.read(path);
        assert!(text.contains(from), "`{path}` has no `{from}`");
        self.write(path, &text.replace(from, to));
    }

    pub fn file(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Every file below the folder with its bytes, for tests that search them.
    pub fn all_files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let bytes = fs::read(&path).unwrap();
                    found.push((path, bytes));
                }
            }
        }
        found.sort();
        found
    }
}
