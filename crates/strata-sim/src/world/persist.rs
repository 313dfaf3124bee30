//! Keeps the objects in a file across runs. Tasks are not kept: a restart ends them.

use std::io;
use std::path::{Path, PathBuf};

use super::World;

fn file(dir: &Path) -> PathBuf {
    dir.join("world.json")
}

impl World {
    /// The world a directory holds, if it holds one.
    pub fn load(dir: &Path) -> io::Result<Option<Self>> {
        match std::fs::read(file(dir)) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(io::Error::other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The bytes to save; writing them needs no hold on the world.
    pub fn to_bytes(&self) -> io::Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(io::Error::other)
    }
}

/// Replaces the saved world as a whole, or not at all.
pub fn save(dir: &Path, bytes: &[u8]) -> io::Result<()> {
    std::fs::create_dir_all(dir)?;
    let next = dir.join("world.json.new");
    std::fs::write(&next, bytes)?;
    std::fs::rename(next, file(dir))
}
