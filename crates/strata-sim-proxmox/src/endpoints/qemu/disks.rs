//! Makes the volumes that drives ask for: new ones, imports, cloud-init drives; or finds the existing ones.

use super::drive::{Drive, Wanted};
use crate::api::format::parse_volume_id;
use crate::api::{Refusal, no};
use crate::endpoints::guest::parse_name;
use crate::world::guest::Config;
use crate::world::{Storage, Volume, World};

pub const CLOUDINIT_SIZE: u64 = 4 << 20;
const TPM_SIZE: u64 = 4 << 20;
const GIB: f64 = (1_u64 << 30) as f64;

/// A VM for which disks are made.
pub struct Maker<'w> {
    pub world: &'w mut World,
    pub node: &'w str,
    pub vmid: u32,
    /// The options of the VM that the disks depend on.
    pub config: &'w Config,
    /// For `SIZE` without a storage.
    pub default: Option<&'w str>,
    /// What was allocated, to be freed if a later disk fails.
    pub made: Vec<String>,
    pub log: Vec<String>,
}

impl Maker<'_> {
    /// Makes every drive in order of its slot; frees all again if one fails.
    pub fn make_all(&mut self, drives: &[Drive]) -> Result<Config, Refusal> {
        let mut done = Config::new();
        for drive in drives {
            match self.make(drive.clone(), &done) {
                Ok(drive) => {
                    done.insert(drive.slot.clone(), drive.print());
                }
                Err(refusal) => {
                    for volid in self.made.drain(..) {
                        self.world.free(&volid, self.node);
                    }
                    return Err(refusal);
                }
            }
        }
        Ok(done)
    }

    fn make(&mut self, mut drive: Drive, done: &Config) -> Result<Drive, Refusal> {
        match drive.wanted() {
            Wanted::Nothing => {
                drive.props.remove("size");
            }
            Wanted::CloudInit(storage) => self.cloudinit(&mut drive, &storage, done)?,
            Wanted::New(storage, gib) => {
                let storage = storage.or_else(|| self.default.map(str::to_owned));
                let Some(storage) = storage else {
                    return Err(no("no storage ID specified (and no default storage)"));
                };
                match drive.props.remove("import-from") {
                    Some(source) => self.import(&mut drive, &storage, &source)?,
                    None => self.create(&mut drive, &storage, gib)?,
                }
            }
            Wanted::Existing => self.existing(&mut drive, done)?,
        }
        Ok(drive)
    }

    /// There can be only one cloud-init drive.
    fn check_single(&self, slot: &str, done: &Config) -> Result<(), Refusal> {
        let pending = self.world.guests.get(&self.vmid).map(|g| &g.pending);
        let pending = pending.into_iter().flatten().filter_map(|(key, change)| match change {
            crate::world::guest::Pending::Set(value) => Some((key, value)),
            crate::world::guest::Pending::Delete { .. } => None,
        });
        let other = self.config.iter().chain(done).chain(pending).find(|(key, value)| {
            *key != slot
                && super::drive::is_slot(key)
                && Drive::parse(key, value).is_some_and(|d| d.is_cloudinit() && d.is_cdrom())
        });
        match other {
            Some((key, _)) => Err(no(format!("{slot} - cloud-init drive is already attached at '{key}'"))),
            None => Ok(()),
        }
    }

    fn cloudinit(&mut self, drive: &mut Drive, storage: &str, done: &Config) -> Result<(), Refusal> {
        self.check_single(&drive.slot, done)?;
        let default = if self.world.storage(storage)?.is_file_based() { "qcow2" } else { "raw" };
        let format = drive.props.remove("format").unwrap_or_else(|| default.to_owned());
        let name = format!("vm-{}-cloudinit", self.vmid);
        let volid = self.allocate(storage, self.image(&format, CLOUDINIT_SIZE), &name)?;
        drive.props.set("file", volid);
        drive.props.set("media", "cdrom");
        self.created(drive);
        Ok(())
    }

    fn image(&self, format: &str, size: u64) -> Volume {
        Volume {
            content: "images".to_owned(),
            format: format.to_owned(),
            size,
            vmid: Some(self.vmid),
            ctime: self.world.now(),
            ..Volume::default()
        }
    }

    fn allocate(&mut self, storage: &str, volume: Volume, name: &str) -> Result<String, Refusal> {
        let size = volume.size;
        let format = volume.format.clone();
        let volid = self.world.allocate(storage, self.node, volume, name)?;
        let storage = self.world.storage(storage)?;
        if storage.is_file_based() {
            let path = storage.path(volid.split_once(':').map_or("", |(_, name)| name));
            self.log.push(format!("Formatting '{path}', {}", formatting(&format, size)));
        }
        self.made.push(volid.clone());
        Ok(volid)
    }

    fn created(&mut self, drive: &Drive) {
        self.log.push(format!("{}: successfully created disk '{}'", drive.slot, drive.print()));
    }

    fn create(&mut self, drive: &mut Drive, storage_id: &str, gib: f64) -> Result<(), Refusal> {
        let storage = self.world.storage_on(storage_id, self.node)?.clone();
        let format = self.format_for(&storage, drive.props.remove("format").as_deref())?;
        let size = match drive.slot.as_str() {
            "efidisk0" if drive.props.get("efitype") == Some("4m") => 528 << 10,
            "efidisk0" => 128 << 10,
            "tpmstate0" => TPM_SIZE,
            _ => (gib * GIB) as u64 / 1024 * 1024,
        };
        let name = self.world.free_disk_name(&storage, self.node, self.vmid);
        let volid = self.allocate(storage_id, self.image(&format, size), &name)?;
        if drive.slot == "efidisk0" {
            self.log.extend(progress(size));
        }
        // The firmware's variables take what the storage gave, everything else what was asked for.
        let actual = self.world.volume(&volid, self.node).map_or(size, |v| v.size);
        drive.props.set("file", volid);
        drive.set_size(if drive.slot == "efidisk0" { actual } else { size });
        self.created(drive);
        Ok(())
    }

    fn format_for(&self, storage: &Storage, asked: Option<&str>) -> Result<String, Refusal> {
        let format = asked.unwrap_or_else(|| storage.default_format());
        if storage.takes_format(format) {
            return Ok(format.to_owned());
        }
        Err(no(format!("unsupported format '{format}'")))
    }

    fn import(&mut self, drive: &mut Drive, storage_id: &str, source: &str) -> Result<(), Refusal> {
        let Some((source_storage, name)) = parse_volume_id(source) else {
            return Err(no(format!("can't find file '{source}'")));
        };
        let named = parse_name(self.world, source_storage, name)?;
        self.world.storage_on(source_storage, self.node)?;
        let Some(volume) = self.world.volume(source, self.node).cloned() else {
            let path = self.world.storage(source_storage)?.path(name);
            return Err(no(match named.content {
                "import" => format!("failed to stat '{path}'"),
                _ => format!("cannot import from '{source}' - could not get size of {source}"),
            }));
        };
        let storage = self.world.storage_on(storage_id, self.node)?.clone();
        let asked = drive.props.remove("format");
        let format = target_format(&storage, asked.as_deref(), &volume.format);
        let size = round_up(volume.virtual_size.unwrap_or(volume.size));
        let file = self.world.free_disk_name(&storage, self.node, self.vmid);
        let copy =
            Volume { bootable: named.content == "import" || volume.bootable, ..self.image(&format, size) };
        self.log.push(format!("create full clone of drive ({source})"));
        let volid = self.allocate(storage_id, copy, &file)?;
        self.log.push(format!("allocated target volume '{volid}'"));
        self.log.extend(progress(size));
        let size = self.world.volume(&volid, self.node).map_or(size, |v| v.size);
        drive.props.set("file", volid);
        drive.set_size(size);
        self.created(drive);
        Ok(())
    }

    fn existing(&mut self, drive: &mut Drive, done: &Config) -> Result<(), Refusal> {
        let volid = drive.file().to_owned();
        let Some((storage, name)) = parse_volume_id(&volid) else {
            // A path on the host: root may name it, but this host has no such device.
            return Err(no(format!("volume '{volid}' does not exist")));
        };
        let named = parse_name(self.world, storage, name)?;
        if let Some(format) = drive.props.get("format")
            && format != named.format
        {
            return Err(no(format!(
                "drive '{}' - volume '{volid}' - 'format={format}' option different from storage format '{}'",
                drive.slot, named.format
            )));
        }
        if drive.is_cloudinit() {
            self.check_single(&drive.slot, done)?;
        }
        self.world.storage_on(storage, self.node)?;
        let Some(volume) = self.world.volume(&volid, self.node) else {
            return Err(no(format!("volume '{volid}' does not exist")));
        };
        let size = round_up(volume.size);
        drive.set_size(size);
        Ok(())
    }
}

/// Sizes are counted in blocks of 512 bytes.
pub fn round_up(bytes: u64) -> u64 {
    bytes.div_ceil(512) * 512
}

/// The format of a copy: what was asked, else that of the source, else what the storage has.
pub fn target_format(storage: &Storage, asked: Option<&str>, source: &str) -> String {
    asked
        .into_iter()
        .chain(std::iter::once(source))
        .find(|format| storage.takes_format(format))
        .unwrap_or_else(|| storage.default_format())
        .to_owned()
}

/// What the log says while data is copied.
pub fn progress(size: u64) -> [String; 2] {
    let mut value = size as f64;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    [
        format!("transferred 0.0 B of {value:.1} {unit} (0.00%)"),
        format!("transferred {value:.1} {unit} of {value:.1} {unit} (100.00%)"),
    ]
}

/// How `qemu-img` announces a new image.
pub fn formatting(format: &str, size: u64) -> String {
    match format {
        "qcow2" => format!(
            "fmt=qcow2 cluster_size=65536 extended_l2=off preallocation=metadata compression_type=zlib \
             size={size} lazy_refcounts=off refcount_bits=16"
        ),
        "vmdk" => format!("fmt=vmdk size={size} compat6=off hwversion=undefined"),
        _ => format!("fmt={format} size={size} preallocation=off"),
    }
}
