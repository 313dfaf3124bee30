//! Which keys a change of a field is written with, and which field a key is about.

use strata_resource::{FieldChange, Spec, Value};

use super::drive;
use super::rule::{Content, GuestKind, Key, table};

/// Fields of a volume that are not changed by writing its key: it is resized or moved.
const BY_CALL: [&str; 2] = ["size", "storage"];

/// The keys that a change of a field is written with; none for what has a call of its own.
pub(crate) fn keys_of(kind: GuestKind, change: &FieldChange, spec: &Spec) -> Vec<String> {
    let path: Vec<&str> = change.path.keys().iter().map(String::as_str).collect();
    match path[..] {
        [] => return Vec::new(),
        ["mark" | "notes"] => return vec!["description".to_owned()],
        ["options", key] => return vec![key.to_owned()],
        ["cloudinit", "drive", ..] => return drive_slots(change, spec),
        ["disks", _, field] | ["mounts", _, field] | ["efidisk" | "tpm" | "rootfs", field]
            if BY_CALL.contains(&field) =>
        {
            return Vec::new();
        }
        ["disks" | "cdroms", slot, ..] => return vec![slot.to_owned()],
        _ => {}
    }
    let mut keys = Vec::new();
    for rule in table(kind).keys.iter().filter(|rule| !rule.path.is_empty() && !rule.create_only) {
        let shared = rule.path.len().min(path.len());
        if rule.path[..shared] != path[..shared] {
            continue;
        }
        let below = &path[shared..];
        match (rule.key, rule.content) {
            (Key::Slot(_), _) => {
                keys.extend(below.first().filter(|slot| rule.matches(slot)).map(|slot| (*slot).to_owned()))
            }
            (Key::Exact(key), Content::Parts(property)) => {
                if below.first().is_none_or(|field| property.parts.iter().any(|part| part.field == *field)) {
                    keys.push(key.to_owned());
                }
            }
            (Key::Exact(key), _) => keys.push(key.to_owned()),
        }
    }
    keys
}

/// A cloud-init drive that moves leaves one slot and takes another.
fn drive_slots(change: &FieldChange, spec: &Spec) -> Vec<String> {
    let in_value = |value: &Option<Value>| -> Option<String> {
        let value = value.as_ref()?;
        let slot = value.as_map().map_or(Some(value), |drive| drive.get("slot"))?;
        slot.as_text().map(str::to_owned)
    };
    let mut slots: Vec<String> = Vec::new();
    let is_storage = change.path.last() == Some("storage");
    if !is_storage {
        slots.extend(in_value(&change.before));
        slots.extend(in_value(&change.after));
    }
    slots.extend(drive::cloudinit_drive(spec).map(|(slot, _)| slot.to_owned()));
    slots.sort();
    slots.dedup();
    slots
}

/// The field that a key of the API is about, dotted: where a message can point to.
pub(crate) fn field_of(kind: GuestKind, key: &str) -> Option<String> {
    let rule = table(kind).rule(key)?;
    if matches!(rule.content, Content::Description) {
        return Some("notes".to_owned());
    }
    let path = rule.path.join(".");
    Some(if matches!(rule.key, Key::Slot(_)) { format!("{path}.{key}") } else { path })
}

#[cfg(test)]
mod tests {
    use strata_resource::FieldPath;

    use super::*;

    #[test]
    fn each_change_finds_its_keys() {
        let change = |path: &str, before: Option<Value>, after: Option<Value>| FieldChange {
            path: FieldPath::dotted(path),
            before,
            after,
            drift: false,
        };
        let keys = |path: &str| keys_of(GuestKind::Qemu, &change(path, None, None), &Spec::new());
        for (path, expected) in [
            ("cpu.cores", vec!["cores"]),
            ("cpu.type", vec!["cpu"]),
            ("memory.size", vec!["memory"]),
            ("disks.scsi0.ssd", vec!["scsi0"]),
            ("disks.scsi0.size", vec![]),
            ("disks.scsi0.storage", vec![]),
            ("disks.scsi1", vec!["scsi1"]),
            ("cdroms.ide2.volume", vec!["ide2"]),
            ("networks.net0.vlan", vec!["net0"]),
            ("cloudinit.ipconfig.ipconfig0.ip", vec!["ipconfig0"]),
            ("cloudinit.user", vec!["ciuser"]),
            ("vga", vec!["vga"]),
            ("efidisk.storage", vec![]),
            ("mark", vec!["description"]),
            ("options.args", vec!["args"]),
            ("node", vec![]),
            ("pool", vec![]),
            ("power", vec![]),
            ("firewall.rules", vec![]),
        ] {
            assert_eq!(keys(path), expected, "{path}");
        }
        let drive = |slot: &str| {
            Value::Map(
                [("slot".to_owned(), Value::text(slot)), ("storage".to_owned(), "local".into())].into(),
            )
        };
        let moved = change("cloudinit.drive.slot", Some("ide2".into()), Some("ide0".into()));
        assert_eq!(keys_of(GuestKind::Qemu, &moved, &Spec::new()), ["ide0", "ide2"]);
        let gone = change("cloudinit.drive", Some(drive("ide2")), None);
        assert_eq!(keys_of(GuestKind::Qemu, &gone, &Spec::new()), ["ide2"]);
    }

    #[test]
    fn a_key_of_an_error_points_to_its_field() {
        for (key, field) in
            [("cores", "cpu.cores"), ("net0", "networks.net0"), ("scsi0", "disks.scsi0"), ("name", "name")]
        {
            assert_eq!(field_of(GuestKind::Qemu, key).as_deref(), Some(field));
        }
        assert_eq!(field_of(GuestKind::Lxc, "hostname").as_deref(), Some("name"));
        assert_eq!(field_of(GuestKind::Qemu, "bogus"), None);
    }
}
