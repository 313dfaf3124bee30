//! Drives of a VM: the same key is a disk, a CD-ROM or Proxmox' own cloud-init drive.

use strata_resource::{FieldPath, Spec, Value};

use super::decode::extras;
use super::encode::{CodecError, Edit, KeyChange, apply_extras};
use super::property::PropertyString;
use super::rule::Property;
use super::volume;
pub(crate) use super::volume::storage_of;

/// What a drive's text says it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Drive {
    Disk,
    Cdrom { volume: String },
    CloudInit { storage: String },
}

pub(super) fn classify(text: &str) -> Drive {
    let parts = PropertyString::parse(text, "file");
    let volume = parts.get("file").or_else(|| parts.get("volume")).unwrap_or_default();
    if let Some(storage) = storage_of(volume).filter(|_| is_cloudinit(volume)) {
        return Drive::CloudInit { storage: storage.to_owned() };
    }
    if parts.get("media") == Some("cdrom") {
        return Drive::Cdrom { volume: volume.to_owned() };
    }
    Drive::Disk
}

/// `local:112/vm-112-cloudinit.qcow2`, `local-lvm:vm-112-cloudinit`, or `local:cloudinit` in a request.
fn is_cloudinit(volume: &str) -> bool {
    let name = volume.rsplit(['/', ':']).next().unwrap_or_default();
    let stem = name.split('.').next().unwrap_or_default();
    stem == "cloudinit" || (stem.starts_with("vm-") && stem.ends_with("-cloudinit"))
}

/// Whether a volume is a NoCloud ISO of ours: `storage:iso/strata-<lineage>-<vmid>-<hash>.iso`.
pub(crate) fn is_strata_cidata(volume: &str, vmid: u32) -> bool {
    let Some((_, name)) = volume.rsplit_once('/') else { return false };
    let parts: Vec<&str> = name.trim_end_matches(".iso").split('-').collect();
    parts.len() == 4 && parts[0] == "strata" && parts[2] == vmid.to_string()
}

pub(super) fn decode(key: &str, text: &str, property: &'static Property, spec: &mut Spec) {
    let map = |spec: &'_ mut Spec, name: &str, slot: &str, value: Spec| {
        let entry = spec.entry(name.to_owned()).or_insert_with(|| Value::Map(Spec::new()));
        if let Value::Map(map) = entry {
            map.insert(slot.to_owned(), Value::Map(value));
        }
    };
    match classify(text) {
        Drive::Disk => map(spec, "disks", key, decode_disk(text, property)),
        Drive::Cdrom { volume } => {
            map(spec, "cdroms", key, [("volume".to_owned(), Value::Text(volume))].into())
        }
        Drive::CloudInit { storage } => map(
            spec,
            "cloudinit",
            "drive",
            [("slot".to_owned(), Value::text(key)), ("storage".to_owned(), Value::Text(storage))].into(),
        ),
    }
}

/// Parts of a disk that are no options: where it is, how large, and how it was made.
const NO_OPTIONS: [&str; 6] = ["file", "volume", "size", "format", "media", "import-from"];

fn decode_disk(text: &str, property: &'static Property) -> Spec {
    let mut disk = volume::decode(text, property);
    let parts = PropertyString::parse(text, property.default_key);
    disk.extend(extras(&parts, property.parts, &NO_OPTIONS));
    disk
}

/// Fields of a disk's spec that are no options of the same name.
const NO_EXTRAS: [&str; 5] = ["storage", "size", "format", "import", "volume"];

pub(super) fn encode(
    edit: &Edit<'_>,
    key: &str,
    property: &'static Property,
    live: Option<&str>,
) -> Result<KeyChange, CodecError> {
    let slot = |name: &str| edit.spec.get(name).and_then(Value::as_map)?.get(key)?.as_map();
    let is = live.map(classify);
    if let Some(disk) = slot("disks") {
        let path = FieldPath::root().child("disks").child(key);
        let attached = live.filter(|_| is == Some(Drive::Disk));
        let text = volume::encode(edit, &path, disk, property, attached)?;
        let mut text = PropertyString::parse(&text, property.default_key);
        apply_extras(edit, &path, disk, property.parts, &NO_EXTRAS, &mut text)?;
        return Ok(KeyChange::unless_same(text.to_string(), live));
    }
    if let Some(cdrom) = slot("cdroms") {
        let wanted = cdrom.get("volume").and_then(Value::as_text).unwrap_or("none");
        if is == Some(Drive::Cdrom { volume: wanted.to_owned() }) {
            return Ok(KeyChange::Keep);
        }
        return Ok(KeyChange::set(format!("{wanted},media=cdrom")));
    }
    if let Some(storage) =
        cloudinit_drive(edit.spec).and_then(|(slot, storage)| (slot == key).then_some(storage))
    {
        if is == Some(Drive::CloudInit { storage: storage.to_owned() }) {
            return Ok(KeyChange::Keep);
        }
        return Ok(KeyChange::set(format!("{storage}:cloudinit")));
    }
    Ok(if live.is_some() { KeyChange::Delete } else { KeyChange::Keep })
}

/// The slot and the storage of Proxmox' own cloud-init drive, if the spec has one.
pub(super) fn cloudinit_drive(spec: &Spec) -> Option<(&str, &str)> {
    let drive = spec.get("cloudinit")?.as_map()?.get("drive")?.as_map()?;
    Some((drive.get("slot")?.as_text()?, drive.get("storage")?.as_text()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_the_three_kinds_of_drives_apart() {
        let cloudinit = |storage: &str| Drive::CloudInit { storage: storage.to_owned() };
        for (text, drive) in [
            ("local:110/vm-110-disk-0.qcow2,size=2G", Drive::Disk),
            ("local:130/base-130-disk-0.qcow2/133/vm-133-disk-0.qcow2,size=1G", Drive::Disk),
            (
                "local:iso/test.iso,media=cdrom,size=2930K",
                Drive::Cdrom { volume: "local:iso/test.iso".into() },
            ),
            ("none,media=cdrom", Drive::Cdrom { volume: "none".into() }),
            ("local:112/vm-112-cloudinit.qcow2,media=cdrom", cloudinit("local")),
            ("local-lvm:vm-112-cloudinit,media=cdrom,size=4M", cloudinit("local-lvm")),
        ] {
            assert_eq!(classify(text), drive, "{text}");
        }
    }

    #[test]
    fn our_own_iso_is_known_by_its_name() {
        assert!(is_strata_cidata("local:iso/strata-0123456789ab-9100-fedcba987654.iso", 9100));
        assert!(!is_strata_cidata("local:iso/strata-0123456789ab-9101-fedcba987654.iso", 9100));
        assert!(!is_strata_cidata("local:iso/debian.iso", 9100));
    }
}
