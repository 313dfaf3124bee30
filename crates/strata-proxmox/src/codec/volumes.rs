//! The volumes of a guest by name: those in its slots, and those that it keeps without using them.

use std::collections::{BTreeMap, BTreeSet};

use strata_resource::FieldPath;

use super::drive::{Drive, classify};
use super::live::LiveConfig;
use super::property::PropertyString;
use super::volume::storage_of;

/// The key of the configuration that a field's volume is in; none if the field is no whole volume.
pub(crate) fn volume_key(path: &FieldPath) -> Option<&str> {
    match path.keys() {
        [field, slot] if field == "disks" || field == "mounts" => Some(slot),
        [field] if field == "efidisk" => Some("efidisk0"),
        [field] if field == "tpm" => Some("tpmstate0"),
        _ => None,
    }
}

fn is_slot(key: &str) -> bool {
    let stem = key.trim_end_matches(|digit: char| digit.is_ascii_digit());
    let numbered = stem.len() < key.len();
    key == "rootfs"
        || (numbered && matches!(stem, "ide" | "sata" | "scsi" | "virtio" | "efidisk" | "tpmstate" | "mp"))
}

fn is_unused(key: &str) -> bool {
    key.strip_prefix("unused")
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The volume in a slot's text; none for CD-ROMs, cloud-init drives, and what a host lends.
fn volume_in(text: &str) -> Option<String> {
    if classify(text) != Drive::Disk {
        return None;
    }
    let parts = PropertyString::parse(text, "file");
    let volume = ["file", "volume"].into_iter().find_map(|key| parts.get(key))?;
    storage_of(volume).map(|_| volume.to_owned())
}

/// What is in each slot.
pub(crate) fn attached_now(live: &LiveConfig) -> BTreeMap<String, String> {
    let slots = live.keys().filter(|(key, _)| is_slot(key));
    slots.filter_map(|(key, text)| Some((key.to_owned(), volume_in(text)?))).collect()
}

/// What the guest has without using it, and what a restart would detach from its slot.
pub(crate) fn detached_now(live: &LiveConfig) -> BTreeSet<String> {
    let unused = live.keys().filter(|(key, _)| is_unused(key)).map(|(_, volume)| volume.to_owned());
    let mut found: BTreeSet<String> = unused.collect();
    let effective = attached_now(live);
    let leaving = attached_now(&live.running());
    found.extend(
        leaving.into_iter().filter(|(key, _)| !effective.contains_key(key)).map(|(_, volume)| volume),
    );
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::live;

    #[test]
    fn volumes_are_known_by_their_slots() {
        let config = live(&[
            ("scsi0", "local-lvm:vm-9100-disk-0,size=20G,ssd=1"),
            ("ide2", "local:iso/x.iso,media=cdrom"),
            ("ide0", "local-lvm:vm-9100-cloudinit,media=cdrom"),
            ("efidisk0", "local-lvm:vm-9100-disk-1,efitype=4m"),
            ("mp0", "/srv,mp=/srv"),
            ("scsihw", "virtio-scsi-single"),
            ("unused0", "tank:vm-9100-disk-3"),
        ]);
        let attached: Vec<(String, String)> = attached_now(&config).into_iter().collect();
        assert_eq!(
            attached,
            [
                ("efidisk0".to_owned(), "local-lvm:vm-9100-disk-1".to_owned()),
                ("scsi0".to_owned(), "local-lvm:vm-9100-disk-0".to_owned()),
            ]
        );
        assert_eq!(detached_now(&config), ["tank:vm-9100-disk-3".to_owned()].into());
    }
}
