//! Disks as the provider has described them over the years: `disk` by its bus, `disk` by its slot, and `disks` with a block for each slot.

use crate::output::only;
use crate::records::{Disk, Hardware};
use serde_json::{Value as Json, json};
use strata_source::machine::disk::DiskAio;
use strata_yaml::Choice;

use super::super::Import;
use super::super::output::{self, Object, Put};
use super::super::tree::Tree;

const BUSES: [&str; 4] = ["ide", "sata", "scsi", "virtio"];

/// Writes the disks of a machine, and tells of its drive of cloud-init.
pub(super) fn disks(import: &mut Import<'_>, body: &Tree, own: &str, vm: &mut Object) -> Option<Drive> {
    let mut found = FoundDisks { own, disks: Object::new(), cloud_init: None };
    for disk in body.several("disk") {
        match disk.get("type").and_then(Tree::peek) {
            Some(bus) if BUSES.contains(&bus.as_str()) => found.by_bus(import, disk, &bus),
            kind => found.by_slot(import, disk, kind.as_deref().unwrap_or("disk")),
        }
    }
    if let Some(block) = body.one("disks") {
        for bus in BUSES {
            let Some(slots) = block.one(bus) else { continue };
            for (slot, _) in slots.entries() {
                if let Some(inner) = slots.one(slot).filter(|_| output::is_slot(slot)) {
                    found.nested(import, slot, inner);
                }
            }
        }
    }
    if let Some(iso) = body.text_if("iso", |iso| iso.contains(':')) {
        found.disks.insert("ide2".into(), only(Disk::iso, iso));
    }
    vm.put_full(Hardware::disks, Json::Object(found.disks));
    found.cloud_init
}

/// The drive of cloud-init.
pub(super) struct Drive {
    pub(super) slot: String,
    pub(super) storage: Option<String>,
}

struct FoundDisks<'n> {
    own: &'n str,
    disks: Object,
    cloud_init: Option<Drive>,
}

impl FoundDisks<'_> {
    /// Up to 2.9: the bus, with a number or in the order of writing.
    fn by_bus(&mut self, import: &mut Import<'_>, disk: &Tree, bus: &str) {
        let _ = disk.text("type");
        let mut number = disk.int_in("slot", 0..=30).or_else(|| disk.int_in("id", 0..=30));
        if number.is_none() {
            number = (0..31).find(|number| !self.disks.contains_key(&format!("{bus}{number}")));
        }
        let slot = format!("{bus}{}", number.unwrap_or(0));
        if disk.text_if("media", |media| media == "cdrom").is_some() {
            self.cd(&slot, ["volume", "file", "iso"].iter().find_map(|key| iso(disk, key)));
            let _ = disk.text("storage");
            return;
        }
        let _ = disk.text_if("media", |media| media == "disk");
        self.disk(import, &slot, disk);
    }

    /// From 3 on: the slot, and what is in it.
    fn by_slot(&mut self, import: &mut Import<'_>, disk: &Tree, kind: &str) {
        let Some(slot) = disk.text_if("slot", output::is_slot) else { return };
        match kind {
            "cdrom" => {
                let _ = disk.text("type");
                self.cd(&slot, iso(disk, "iso"));
            }
            "cloudinit" => {
                let _ = disk.text("type");
                self.cloud_init = Some(Drive { slot, storage: disk.text("storage") });
            }
            "ignore" => {
                disk.take_all();
                let message =
                    format!("`{slot}` of `{}` is nobody's there, and not Strata's either", self.own);
                import.note(Some(&disk.place), message);
            }
            "disk" => {
                let _ = disk.text("type");
                self.disk(import, &slot, disk);
            }
            _ => {}
        }
    }

    /// `scsi0 { disk { … } }`.
    fn nested(&mut self, import: &mut Import<'_>, slot: &str, inner: &Tree) {
        if let Some(drive) = inner.one("cdrom") {
            self.cd(slot, iso(drive, "iso"));
        } else if let Some(drive) = inner.one("cloudinit") {
            self.cloud_init = Some(Drive { slot: slot.to_owned(), storage: drive.text("storage") });
        } else if let Some(disk) = inner.one("disk").or_else(|| inner.one("passthrough")) {
            self.disk(import, slot, disk);
        } else if inner.flag("ignore") == Some(true) {
            let message = format!("`{slot}` of `{}` is nobody's there, and not Strata's either", self.own);
            import.note(Some(&inner.place), message);
        }
    }

    /// A drive with nothing in it is none.
    fn cd(&mut self, slot: &str, iso: Option<String>) {
        if let Some(iso) = iso {
            self.disks.insert(slot.to_owned(), only(Disk::iso, iso));
        }
    }

    fn disk(&mut self, import: &mut Import<'_>, slot: &str, disk: &Tree) {
        let mut written = Object::new();
        let there = ["disk_file", "file", "volume"]
            .iter()
            .find_map(|key| disk.text_if(key, |volume| volume.starts_with('/') || volume.contains(':')));
        match there {
            Some(volume) => {
                let _ = (output::size(disk, "size"), disk.flag("passthrough"), disk.text("storage"));
                written.set(Disk::volume, json!(volume));
            }
            None => {
                written.put(Disk::size, output::size(disk, "size"));
                written.put(Disk::storage, disk.text("storage"));
            }
        }
        written.put(Disk::ssd, disk.flag("ssd").or_else(|| disk.flag("emulatessd")));
        written.put(Disk::discard, output::discard(disk, "discard").or_else(|| disk.flag("discard")));
        for (key, word) in [
            (Disk::iothread, "iothread"),
            (Disk::backup, "backup"),
            (Disk::replicate, "replicate"),
            (Disk::read_only, "readonly"),
        ] {
            written.put(key, disk.flag(word));
        }
        written.put(Disk::cache, disk.text_if("cache", |cache| output::CACHES.contains(&cache)));
        let aio =
            ["asyncio", "aio"].iter().find_map(|key| disk.text_if(key, |aio| DiskAio::WORDS.contains(&aio)));
        written.put(Disk::aio, aio);
        written.put(Disk::format, disk.text_if("format", |format| output::FORMATS.contains(&format)));
        written.put(Disk::serial, disk.text("serial"));
        written.put_full(Disk::options, Json::Object(limits(disk)));
        import.needless(disk, &["storage_type"], "Proxmox knows the kind of a storage");
        if !written.contains_key(Disk::size.name()) && !written.contains_key(Disk::volume.name()) {
            import.note(
                Some(&disk.place),
                format!("the size of `{slot}` of `{}` is not known here: 8 GiB were written down", self.own),
            );
            written.set(Disk::size, json!(8));
        }
        self.disks.insert(slot.to_owned(), Json::Object(written));
    }
}

/// A CD image; `none` is an empty drive.
fn iso(tree: &Tree, key: &str) -> Option<String> {
    let text = tree.text_if(key, |text| text == "none" || text.contains(':'))?;
    (text != "none").then_some(text)
}

/// Limits of speed, as Proxmox calls them. Zero is none.
fn limits(disk: &Tree) -> Object {
    let mut limits = Object::new();
    for (there, key) in [
        ("mbps", "mbps"),
        ("mbps_rd", "mbps_rd"),
        ("mbps_rd_max", "mbps_rd_max"),
        ("mbps_wr", "mbps_wr"),
        ("mbps_wr_max", "mbps_wr_max"),
        ("iops", "iops"),
        ("iops_max", "iops_max"),
        ("iops_rd", "iops_rd"),
        ("iops_rd_max", "iops_rd_max"),
        ("iops_wr", "iops_wr"),
        ("iops_wr_max", "iops_wr_max"),
        ("mbps_r_concurrent", "mbps_rd"),
        ("mbps_r_burst", "mbps_rd_max"),
        ("mbps_wr_concurrent", "mbps_wr"),
        ("mbps_wr_burst", "mbps_wr_max"),
        ("iops_r_concurrent", "iops_rd"),
        ("iops_r_burst", "iops_rd_max"),
        ("iops_r_burst_length", "iops_rd_max_length"),
        ("iops_wr_concurrent", "iops_wr"),
        ("iops_wr_burst", "iops_wr_max"),
        ("iops_wr_burst_length", "iops_wr_max_length"),
    ] {
        let limit = disk.get(there).and_then(Tree::as_number).filter(|limit| *limit > 0.0);
        limits.put_option(key, limit.map(output::number));
    }
    limits.put_option("wwn", disk.text("wwn"));
    limits
}
