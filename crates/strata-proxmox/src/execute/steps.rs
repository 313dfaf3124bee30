//! What a list of changes means in calls. No IO, no choices.

use std::collections::{BTreeMap, BTreeSet};

use strata_resource::{FieldChange, FieldPath, Spec, Value};

use crate::api::Params;
use crate::codec::{
    CodecError, Edit, GuestKind, KeyChange, LiveConfig, edit_key, is_root_only, keys_of, table,
};

/// The calls that changes ask for, other than those about the configuration's keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Steps {
    pub(super) migrate_to: Option<String>,
    /// Slot and storage.
    pub(super) moves: Vec<(String, String)>,
    pub(super) firewall: bool,
    /// From one pool to another.
    pub(super) pool: Option<(Option<String>, Option<String>)>,
    pub(super) template: Option<bool>,
    /// Running or not.
    pub(super) power: Option<bool>,
}

impl Steps {
    pub(super) fn of(changes: &[FieldChange]) -> Self {
        let mut steps = Self::default();
        for change in changes {
            let path: Vec<&str> = change.path.keys().iter().map(String::as_str).collect();
            let text = |value: &Option<Value>| value.as_ref().and_then(Value::as_text).map(str::to_owned);
            match path[..] {
                ["node"] => steps.migrate_to = text(&change.after),
                ["disks" | "mounts", slot, "storage"] if change.before.is_some() => {
                    steps.moves.extend(text(&change.after).map(|storage| (slot.to_owned(), storage)));
                }
                ["efidisk" | "tpm" | "rootfs", "storage"] if change.before.is_some() => {
                    steps
                        .moves
                        .extend(text(&change.after).map(|storage| (volume_key(path[0]).to_owned(), storage)));
                }
                ["firewall", ..] => steps.firewall = true,
                ["pool"] => steps.pool = Some((text(&change.before), text(&change.after))),
                ["template"] => {
                    steps.template = Some(change.after.as_ref().and_then(Value::as_bool).unwrap_or(false));
                }
                ["power"] => steps.power = text(&change.after).map(|power| power == "running"),
                _ => {}
            }
        }
        steps
    }
}

fn volume_key(field: &str) -> &str {
    match field {
        "efidisk" => "efidisk0",
        "tpm" => "tpmstate0",
        other => other,
    }
}

/// What a write of the configuration sends.
#[derive(Debug, Clone, Default)]
pub(super) struct ConfigWrite {
    pub(super) set: Params,
    pub(super) delete: Vec<String>,
    /// Keys whose live value cannot be compared: sent once and then taken as set.
    pub(super) secrets: usize,
    /// Some key makes a new volume, which takes time.
    pub(super) allocates: bool,
    pub(super) needs_root: bool,
}

impl ConfigWrite {
    pub(super) fn of(
        kind: GuestKind,
        spec: &Spec,
        changes: &[FieldChange],
        live: &LiveConfig,
        reattached: &BTreeMap<String, String>,
    ) -> Result<Self, CodecError> {
        let removed: BTreeSet<FieldPath> = changes
            .iter()
            .filter(|change| change.after.is_none())
            .map(|change| change.path.clone())
            .collect();
        let keys: BTreeSet<String> = changes.iter().flat_map(|change| keys_of(kind, change, spec)).collect();
        let edit = Edit { table: table(kind), spec, removed: &removed };
        let mut write = Self::default();
        for key in keys {
            // The value that goes needs the same rights as the one that comes.
            let goes = live.get(&key).is_some_and(|value| is_root_only(kind, &key, value));
            let change = match reattached.get(&key).filter(|_| live.get(&key).is_none()) {
                // The same volume as before, as if it had never left.
                Some(volume) => match edit_key(&edit, &key, Some(volume))? {
                    KeyChange::Keep => KeyChange::Set { value: volume.clone(), secret: false },
                    other => other,
                },
                None => edit_key(&edit, &key, live.get(&key))?,
            };
            match change {
                KeyChange::Set { value, secret } => {
                    write.needs_root |= goes || is_root_only(kind, &key, &value);
                    write.allocates |= asks_for_volume(&value);
                    if secret {
                        write.secrets += 1;
                        write.set.set_secret(&key, &value);
                    } else {
                        write.set.set(&key, value);
                    }
                }
                KeyChange::Delete => {
                    write.needs_root |= goes;
                    write.delete.push(key);
                }
                KeyChange::Keep => {}
            }
        }
        Ok(write)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.set.is_empty() && self.delete.is_empty()
    }

    /// Nothing is left that a look at the configuration could tell from done.
    pub(super) fn is_only_secrets(&self) -> bool {
        self.delete.is_empty() && self.set.keys().count() == self.secrets
    }

    pub(super) fn params(&self, digest: &str) -> Params {
        let mut params = self.set.clone();
        if !self.delete.is_empty() {
            params.set("delete", self.delete.join(","));
        }
        if !digest.is_empty() {
            params.set("digest", digest);
        }
        params
    }
}

/// `local:40`, `local:0,import-from=…`, `local:cloudinit`
fn asks_for_volume(value: &str) -> bool {
    let head = value.split(',').next().unwrap_or_default();
    let Some((_, volume)) = head.split_once(':') else { return false };
    volume == "cloudinit"
        || (!volume.is_empty() && volume.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

/// Volumes that changes touch and that are smaller than wanted, with the size they should have.
pub(super) fn volumes_to_grow(
    kind: GuestKind,
    spec: &Spec,
    changes: &[FieldChange],
    live: &Spec,
) -> Vec<(String, i64)> {
    let touched = |slot: &[&str]| {
        changes.iter().any(|change| {
            let whole = change.path.keys().len() == slot.len() && change.path.starts_with(slot);
            whole || (change.path.starts_with(slot) && change.path.last() == Some("size"))
        })
    };
    let size = |spec: &Spec, slot: &[&str]| -> Option<i64> {
        let (first, rest) = slot.split_first()?;
        let map = rest.iter().try_fold(spec.get(*first)?, |value, key| value.as_map()?.get(*key))?;
        map.as_map()?.get("size")?.as_int()
    };
    let slots_of = |name: &'static str| -> Vec<Vec<&str>> {
        let map = spec.get(name).and_then(Value::as_map);
        map.into_iter().flat_map(|map| map.keys()).map(|slot| vec![name, slot.as_str()]).collect()
    };
    let mut slots: Vec<Vec<&str>> = match kind {
        GuestKind::Qemu => slots_of("disks"),
        GuestKind::Lxc => slots_of("mounts"),
    };
    if kind == GuestKind::Lxc {
        slots.push(vec!["rootfs"]);
    }
    let grows = slots.into_iter().filter(|slot| touched(slot)).filter_map(|slot| {
        let (wanted, live) = (size(spec, &slot)?, size(live, &slot)?);
        (wanted > live).then(|| (slot[slot.len() - 1].to_owned(), wanted))
    });
    grows.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::codec::live;

    fn spec(json: serde_json::Value) -> Spec {
        serde_json::from_value(json).unwrap()
    }

    fn changes(list: &[(&str, serde_json::Value, serde_json::Value)]) -> Vec<FieldChange> {
        let value = |json: &serde_json::Value| {
            (!json.is_null()).then(|| serde_json::from_value(json.clone()).unwrap())
        };
        list.iter()
            .map(|(path, before, after)| FieldChange {
                path: FieldPath::dotted(path),
                before: value(before),
                after: value(after),
                drift: false,
            })
            .collect()
    }

    #[test]
    fn each_change_has_its_call() {
        let steps = Steps::of(&changes(&[
            ("node", json!("pve1"), json!("pve2")),
            ("disks.scsi0.storage", json!("local"), json!("tank")),
            ("efidisk.storage", json!("local"), json!("tank")),
            ("firewall.options.enable", json!(null), json!(true)),
            ("pool", json!("a"), json!(null)),
            ("template", json!(null), json!(true)),
            ("power", json!("stopped"), json!("running")),
            ("cpu.cores", json!(1), json!(2)),
        ]));
        assert_eq!(
            steps,
            Steps {
                migrate_to: Some("pve2".into()),
                moves: vec![("scsi0".into(), "tank".into()), ("efidisk0".into(), "tank".into())],
                firewall: true,
                pool: Some((Some("a".into()), None)),
                template: Some(true),
                power: Some(true),
            }
        );
    }

    /// A disk that comes with its storage is made there; only one that has another is moved.
    #[test]
    fn a_new_volume_is_not_moved() {
        for path in ["disks.scsi1.storage", "mounts.mp0.storage", "efidisk.storage", "rootfs.storage"] {
            let steps = Steps::of(&changes(&[(path, json!(null), json!("tank"))]));
            assert_eq!(steps, Steps::default(), "{path}");
        }
    }

    #[test]
    fn a_value_that_makes_a_volume_is_told_from_one_that_names_it() {
        for value in
            ["local:40", "local:0.5", "local:0,import-from=nas:import/a.qcow2", "local:cloudinit,media=cdrom"]
        {
            assert!(asks_for_volume(value), "{value}");
        }
        for value in
            ["local:vm-1-disk-0,size=4G", "local:iso/a.iso,media=cdrom", "none,media=cdrom", "local:", "40"]
        {
            assert!(!asks_for_volume(value), "{value}");
        }
    }

    /// Secrets cannot be read back: once they are sent, only what else is left says that something is not done.
    #[test]
    fn only_secrets_are_left_when_nothing_else_is() {
        let mut write = ConfigWrite { secrets: 1, ..ConfigWrite::default() };
        write.set.set_secret("cipassword", "hunter2");
        assert!(write.is_only_secrets());
        let deletes = ConfigWrite { delete: vec!["net1".to_owned()], ..write.clone() };
        assert!(!deletes.is_only_secrets());
        write.set.set("cores", "4");
        assert!(!write.is_only_secrets());
    }

    #[test]
    fn only_changed_keys_are_sent() {
        let wanted = spec(
            json!({"cpu": {"cores": 4, "type": "host"}, "name": "web", "networks": {"net0": {"bridge": "vmbr1"}},
            "disks": {"scsi1": {"storage": "tank", "size": 8i64 << 30}}}),
        );
        let live = live(&[
            ("cores", "2"),
            ("cpu", "host"),
            ("name", "web"),
            ("net0", "virtio=AA:BB:CC:00:00:01,bridge=vmbr0,tag=4"),
            ("cpuunits", "200"),
        ]);
        let changes = changes(&[
            ("cpu.cores", json!(2), json!(4)),
            ("cpu.units", json!(200), json!(null)),
            ("networks.net0.bridge", json!("vmbr0"), json!("vmbr1")),
            ("disks.scsi1", json!(null), json!({})),
        ]);
        let write = ConfigWrite::of(GuestKind::Qemu, &wanted, &changes, &live, &BTreeMap::new()).unwrap();
        assert_eq!(
            write.params("d1").pairs().collect::<Vec<_>>(),
            [
                ("cores", "4"),
                ("net0", "virtio=AA:BB:CC:00:00:01,bridge=vmbr1,tag=4"),
                ("scsi1", "tank:8"),
                ("delete", "cpuunits"),
                ("digest", "d1")
            ]
        );
        assert!(write.allocates && !write.needs_root);
    }

    #[test]
    fn a_device_by_its_address_needs_root_to_come_and_to_go() {
        let live = live(&[("hostpci0", "0000:01:00.0"), ("hostpci1", "mapping=a")]);
        for (slot, device, root) in [
            ("hostpci0", json!({"mapping": "a"}), true),
            ("hostpci1", json!({"mapping": "b"}), false),
            ("hostpci2", json!({"device": "0000:02:00.0"}), true),
        ] {
            let path = format!("pci.{slot}");
            let wanted = spec(json!({"pci": {slot: device.clone()}}));
            let changes = changes(&[(&path, json!({"mapping": "x"}), device)]);
            let write = ConfigWrite::of(GuestKind::Qemu, &wanted, &changes, &live, &BTreeMap::new()).unwrap();
            assert_eq!(write.needs_root, root, "{slot}");
        }
        let gone = changes(&[("pci.hostpci0", json!({"device": "0000:01:00.0"}), json!(null))]);
        let write =
            ConfigWrite::of(GuestKind::Qemu, &spec(json!({})), &gone, &live, &BTreeMap::new()).unwrap();
        assert!(write.needs_root && write.delete == ["hostpci0"]);
    }

    #[test]
    fn volumes_grow_after_the_configuration_is_in() {
        let wanted =
            spec(json!({"disks": {"scsi0": {"size": 40}, "scsi1": {"size": 10}, "scsi2": {"size": 9}}}));
        let live =
            spec(json!({"disks": {"scsi0": {"size": 20}, "scsi1": {"size": 10}, "scsi2": {"size": 1}}}));
        let changes =
            changes(&[("disks.scsi0.size", json!(20), json!(40)), ("disks.scsi1", json!(null), json!({}))]);
        assert_eq!(volumes_to_grow(GuestKind::Qemu, &wanted, &changes, &live), [("scsi0".to_owned(), 40)]);
    }

    /// A clone's disk grows with the slot that came; one of which only something else changes stays as large as it is.
    #[test]
    fn a_volume_grows_with_its_slot_or_its_size_only() {
        let wanted = spec(json!({"disks": {"scsi2": {"size": 9}}}));
        let live = spec(json!({"disks": {"scsi2": {"size": 1}}}));
        let grows = |path: &str| {
            volumes_to_grow(GuestKind::Qemu, &wanted, &changes(&[(path, json!(null), json!({}))]), &live)
        };
        assert_eq!(grows("disks.scsi2"), [("scsi2".to_owned(), 9)]);
        assert_eq!(grows("disks.scsi2.size"), [("scsi2".to_owned(), 9)]);
        assert_eq!((grows("disks.scsi2.cache"), grows("disks.scsi0.size")), (vec![], vec![]));
    }
}
