//! Disks and CD drives of a VM, and the small disks beside them.

use serde_json::Value as Json;
use strata_source::machine::device::{Efi, Tpm};
use strata_source::machine::disk::{Disk, DiskAio, DiskCache};
use strata_yaml::Choice;

use crate::StackDefaults;
use crate::fields::{Fields, Object, Put, short, size};

/// The disk that a VM boots from unless it says otherwise.
const BOOT_DISK: &str = "scsi0";

/// The disks by slot, and the storage that what is made beside them goes to.
pub(crate) fn disks(left: &mut Fields, stack: &StackDefaults, notes: &mut Vec<String>) -> (Object, String) {
    let mut yaml = Object::new();
    let mut storages: Vec<(String, String)> = Vec::new();
    for (slot, disk) in left.slots("disks") {
        let written = one(disk, stack, &slot, &mut storages);
        yaml.insert(slot, written);
    }
    for (slot, mut drive) in left.slots("cdroms") {
        match drive.text("volume").filter(|volume| volume.contains(':')) {
            Some(volume) => {
                let mut cd = Object::new();
                cd.set(Disk::iso, volume);
                yaml.insert(slot, Json::Object(cd));
            }
            None => {
                notes.push(format!("the empty CD drive `{slot}` has no key in the YAML: it stays as it is"))
            }
        }
    }
    // As the blueprint looks for it: the boot disk, else the first that names a storage.
    storages.sort();
    let boot = storages.iter().find(|(slot, _)| slot == BOOT_DISK);
    let home = boot.or_else(|| storages.first()).map(|(_, storage)| storage.clone());
    (yaml, home.unwrap_or_else(|| stack.disks().to_owned()))
}

fn one(mut disk: Fields, stack: &StackDefaults, slot: &str, storages: &mut Vec<(String, String)>) -> Json {
    let mut yaml = Object::new();
    let (volume, storage) = (disk.text("volume"), disk.text("storage"));
    match (disk.int("size").and_then(size), storage) {
        (Some(size), Some(storage)) => {
            yaml.set(Disk::size, size);
            storages.push((slot.to_owned(), storage.clone()));
            yaml.put(Disk::storage, Some(storage).filter(|storage| storage != stack.disks()));
        }
        // A device of the host, or a size that a disk of ours cannot have.
        _ => yaml.put(Disk::volume, volume),
    }
    yaml.put(Disk::ssd, disk.unless("ssd", false));
    yaml.put(Disk::discard, disk.unless("discard", false));
    yaml.put(Disk::iothread, disk.unless("iothread", false));
    yaml.put(Disk::cache, disk.word("cache", DiskCache::WORDS));
    yaml.put(Disk::backup, disk.unless("backup", true));
    yaml.put(Disk::replicate, disk.unless("replicate", true));
    yaml.put(Disk::aio, disk.word("aio", DiskAio::WORDS));
    yaml.put(Disk::read_only, disk.unless("readonly", false));
    yaml.put(Disk::serial, disk.text("serial"));
    disk.forget(&["format", "import"]);
    yaml.put_full(Disk::options, disk.raw());
    short(yaml, Disk::size)
}

pub(crate) fn efi(left: &mut Fields, home: &str) -> Option<Json> {
    let mut disk = left.map("efidisk")?;
    let mut yaml = Object::new();
    yaml.put(Efi::storage, disk.text("storage").filter(|storage| storage != home));
    yaml.put(Efi::kind, disk.text("type").filter(|kind| kind != "4m"));
    yaml.put(Efi::pre_enrolled_keys, disk.unless("pre_enrolled_keys", false));
    Some(Json::Object(yaml))
}

pub(crate) fn tpm(left: &mut Fields, home: &str) -> Option<Json> {
    let mut disk = left.map("tpm")?;
    let mut yaml = Object::new();
    yaml.put(Tpm::storage, disk.text("storage").filter(|storage| storage != home));
    yaml.set(Tpm::version, disk.text("version").unwrap_or_else(|| "v1.2".to_owned()));
    Some(Json::Object(yaml))
}
