//! Keeps the objects in a file across runs. Tasks are not kept: a restart ends them.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use strata_sim_kubernetes::Kubernetes;
use strata_sim_proxmox::World;
use strata_sim_talos::Talos;
use strata_sim_truenas::TrueNas;

use crate::whole::Parts;

/// What each part keeps.
pub(crate) struct Kept {
    /// Nothing, if the directory holds nothing.
    pub(crate) world: Option<World>,
    pub(crate) talos: Talos,
    pub(crate) kubernetes: Kubernetes,
    pub(crate) truenas: TrueNas,
}

/// The same, to be written: one object, with what the other parts keep beside the keys of the world.
#[derive(Serialize)]
struct File<'a> {
    #[serde(flatten)]
    world: &'a World,
    talos: &'a Talos,
    kubernetes: &'a Kubernetes,
    truenas: &'a TrueNas,
}

fn file(dir: &Path) -> PathBuf {
    dir.join("world.json")
}

/// What a part keeps, if it kept something.
fn part<T: DeserializeOwned + Default>(saved: &mut Map<String, Value>, name: &str) -> io::Result<T> {
    match saved.remove(name) {
        Some(value) => serde_json::from_value(value).map_err(io::Error::other),
        None => Ok(T::default()),
    }
}

impl Kept {
    /// What a directory holds.
    pub(crate) fn load(dir: Option<&Path>) -> io::Result<Self> {
        let mut saved = match dir.map(|dir| std::fs::read(file(dir))) {
            Some(Ok(bytes)) => {
                serde_json::from_slice::<Map<String, Value>>(&bytes).map_err(io::Error::other)?
            }
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => Map::new(),
        };
        let talos = part(&mut saved, "talos")?;
        let kubernetes = part(&mut saved, "kubernetes")?;
        let truenas = part(&mut saved, "truenas")?;
        let world = match saved.is_empty() {
            true => None,
            false => Some(serde_json::from_value(Value::Object(saved)).map_err(io::Error::other)?),
        };
        Ok(Self { world, talos, kubernetes, truenas })
    }
}

/// Replaces what is saved as a whole, or not at all. The parts are held only while their bytes are made.
pub(crate) fn save(parts: &Parts, dir: &Path) -> io::Result<()> {
    let bytes = {
        let (talos, world) = (parts.machines.talos(), parts.datacenter.world());
        let (kubernetes, truenas) = (parts.clusters.state(), parts.nas.content());
        let file = File { world: &world, talos: &talos, kubernetes: &kubernetes, truenas: &truenas };
        serde_json::to_vec(&file).map_err(io::Error::other)?
    };
    std::fs::create_dir_all(dir)?;
    let next = dir.join("world.json.new");
    std::fs::write(&next, bytes)?;
    std::fs::rename(next, file(dir))
}
