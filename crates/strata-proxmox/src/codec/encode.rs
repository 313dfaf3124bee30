//! From a spec to the keys of a request: all of them for a create, the changed ones for an update.

use std::collections::{BTreeMap, BTreeSet};

use strata_resource::{FieldPath, Spec, Value};

use super::decode::{net_from_wire, net_to_wire};
use super::form::Form;
use super::property::PropertyString;
use super::rule::{Content, GuestKind, Key, KeyRule, Part, Table, table};
use super::{drive, notes, volume};
use crate::api::Params;

/// A spec to be written, and the fields that are to go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edit<'a> {
    pub(crate) table: &'static Table,
    pub(crate) spec: &'a Spec,
    pub(crate) removed: &'a BTreeSet<FieldPath>,
}

/// What happens to one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyChange {
    Set { value: String, secret: bool },
    Delete,
    Keep,
}

impl KeyChange {
    pub(super) fn set(value: String) -> Self {
        Self::Set { value, secret: false }
    }

    pub(super) fn unless_same(value: String, live: Option<&str>) -> Self {
        if live == Some(value.as_str()) { Self::Keep } else { Self::set(value) }
    }
}

/// A field whose value cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` cannot be sent: {reason}")]
pub struct CodecError {
    /// Dotted, as in the table of its kind.
    pub field: String,
    /// What is wrong with the value.
    pub reason: String,
}

impl CodecError {
    pub(super) fn new(field: &FieldPath, reason: impl Into<String>) -> Self {
        Self { field: field.to_string(), reason: reason.into() }
    }
}

/// All keys of a new guest.
pub(crate) fn create_params(kind: GuestKind, spec: &Spec) -> Result<Params, CodecError> {
    params_by(table(kind), spec)
}

fn params_by(table: &'static Table, spec: &Spec) -> Result<Params, CodecError> {
    let removed = BTreeSet::new();
    let edit = Edit { table, spec, removed: &removed };
    let mut params = Params::new();
    for rule in table.keys {
        for key in keys_in(rule, spec) {
            let change = match edit_by(&edit, rule, &key, None) {
                // A disk that comes along with a clone stays where its template's is.
                Err(error) if spec.contains_key("clone") && error.field.ends_with(".storage") => continue,
                other => other?,
            };
            if let KeyChange::Set { value, secret } = change {
                if secret { params.set_secret(&key, &value) } else { params.set(&key, value) }
            }
        }
    }
    for (key, value) in options(spec) {
        let text = Form::Text.write(value).map_err(|bad| CodecError::new(&option_path(key), bad.0))?;
        params.set(key, text);
    }
    // Only what a new guest boots from; what is in the drive later is nobody's business here.
    if let Some(media) = spec.get("boot_media").and_then(Value::as_map)
        && let (Some(slot), Some(volume)) = (media.get("slot"), media.get("volume"))
        && let (Some(slot), Some(volume)) = (slot.as_text(), volume.as_text())
    {
        params.set(slot, format!("{volume},media=cdrom"));
    }
    Ok(params)
}

/// A spec as the keys of a new object, without its secrets: those leave in requests alone.
pub fn write(table: &'static Table, spec: &Spec) -> Result<BTreeMap<String, String>, CodecError> {
    let params = params_by(table, spec)?;
    Ok(params.plain_pairs().map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
}

/// What an update does to one key, given its live text.
pub(crate) fn edit_key(edit: &Edit<'_>, key: &str, live: Option<&str>) -> Result<KeyChange, CodecError> {
    if let Some(value) = options(edit.spec).find_map(|(name, value)| (name == key).then_some(value)) {
        let text = Form::Text.write(value).map_err(|bad| CodecError::new(&option_path(key), bad.0))?;
        return Ok(KeyChange::unless_same(text, live));
    }
    if edit.removed.contains(&option_path(key)) {
        return Ok(if live.is_some() { KeyChange::Delete } else { KeyChange::Keep });
    }
    match edit.table.rule(key) {
        Some(rule) if !rule.create_only => edit_by(edit, rule, key, live),
        _ => Ok(KeyChange::Keep),
    }
}

fn options(spec: &Spec) -> impl Iterator<Item = (&str, &Value)> {
    spec.get("options")
        .and_then(Value::as_map)
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), value))
}

fn option_path(key: &str) -> FieldPath {
    FieldPath::root().child("options").child(key)
}

/// The keys of a rule that a spec says something about.
fn keys_in(rule: &KeyRule, spec: &Spec) -> Vec<String> {
    match rule.key {
        Key::Exact(key) => vec![key.to_owned()],
        Key::Slot(_) => {
            let mut slots: Vec<String> = match rule.content {
                Content::Drive(_) => {
                    ["disks", "cdroms"].into_iter().flat_map(|name| slots_at(spec, &[name])).collect()
                }
                _ => slots_at(spec, rule.path),
            };
            if let (Content::Drive(_), Some((slot, _))) = (rule.content, drive::cloudinit_drive(spec)) {
                slots.push(slot.to_owned());
            }
            slots.retain(|slot| rule.matches(slot));
            slots.sort_by_key(|slot| (slot.len(), slot.clone()));
            slots.dedup();
            slots
        }
    }
}

fn slots_at(spec: &Spec, path: &[&str]) -> Vec<String> {
    map_at(spec, path).map(|map| map.keys().cloned().collect()).unwrap_or_default()
}

fn value_at<'s>(spec: &'s Spec, path: &[&str]) -> Option<&'s Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(spec.get(*first)?, |value, key| value.as_map()?.get(*key))
}

fn map_at<'s>(spec: &'s Spec, path: &[&str]) -> Option<&'s Spec> {
    value_at(spec, path)?.as_map()
}

fn edit_by(edit: &Edit<'_>, rule: &KeyRule, key: &str, live: Option<&str>) -> Result<KeyChange, CodecError> {
    let mut keys: Vec<&str> = rule.path.to_vec();
    if matches!(rule.key, Key::Slot(_)) {
        keys.push(key);
    }
    let path = keys.iter().fold(FieldPath::root(), |path, key| path.child(key));
    let gone = || {
        Ok(if edit.removed.contains(&path) && live.is_some() { KeyChange::Delete } else { KeyChange::Keep })
    };
    match rule.content {
        Content::Value(form) => match value_at(edit.spec, &keys) {
            // An empty list reads back as a blank; without the key there is nothing to misread.
            Some(Value::List(list)) if list.is_empty() && form != Form::Hotplug => {
                Ok(if live.is_some() { KeyChange::Delete } else { KeyChange::Keep })
            }
            Some(value) => {
                let text = form.write(value).map_err(|bad| CodecError::new(&path, bad.0))?;
                Ok(match form == Form::Secret || value.has_secret() {
                    true if live == Some(text.as_str()) => KeyChange::Keep,
                    true => KeyChange::Set { value: text, secret: true },
                    false => KeyChange::unless_same(text, live),
                })
            }
            None => gone(),
        },
        Content::Parts(property) | Content::QemuNet(property) => {
            let map = map_at(edit.spec, &keys);
            if map.is_none() && edit.removed.contains(&path) {
                return gone();
            }
            let is_net = matches!(rule.content, Content::QemuNet(_));
            let mut text = match live {
                Some(live) if is_net => net_from_wire(live),
                Some(live) => PropertyString::parse(live, property.default_key),
                None => PropertyString::new(property.default_key),
            };
            let before = text.clone();
            apply_parts(edit, &path, map, property.parts, &mut text)?;
            if let (Key::Slot(_), Some(map)) = (rule.key, map) {
                apply_extras(edit, &path, map, property.parts, &[], &mut text)?;
            }
            Ok(match (text == before, text.is_empty()) {
                (true, _) => KeyChange::Keep,
                (false, true) => KeyChange::Delete,
                (false, false) if is_net => KeyChange::set(net_to_wire(&text)),
                (false, false) => KeyChange::set(text.to_string()),
            })
        }
        Content::Volume(property) => match (map_at(edit.spec, &keys), live) {
            (Some(map), live) => {
                let text = volume::encode(edit, &path, map, property, live)?;
                Ok(KeyChange::unless_same(text, live))
            }
            // The volume stays; single options of it may go.
            (None, Some(live)) if !edit.removed.contains(&path) => {
                let text = volume::encode(edit, &path, &Spec::new(), property, Some(live))?;
                Ok(KeyChange::unless_same(text, Some(live)))
            }
            (None, _) => gone(),
        },
        Content::Drive(property) => drive::encode(edit, key, property, live),
        Content::Description => Ok(notes::encode(edit, live)),
        Content::ReadOnly(_) => Ok(KeyChange::Keep),
    }
}

/// Puts a spec's fields into a property string: only what differs from what is there.
pub(super) fn apply_parts(
    edit: &Edit<'_>,
    path: &FieldPath,
    map: Option<&Spec>,
    parts: &[Part],
    text: &mut PropertyString,
) -> Result<(), CodecError> {
    let rules = edit.table.kind.rules();
    for part in parts {
        let field = path.child(part.field);
        match map.and_then(|map| map.get(part.field)) {
            Some(value) => {
                let live = part.read(text);
                let is_default = rules.rule(&field).default.is_some_and(|default| default.equals(value));
                if live.as_ref() != Some(value) && !(live.is_none() && is_default) {
                    let written = part.form.write(value).map_err(|bad| CodecError::new(&field, bad.0))?;
                    let name = part.name_in(text);
                    text.set(name, written);
                }
            }
            None if edit.removed.contains(&field) => {
                let name = part.name_in(text);
                text.remove(name);
            }
            None => {}
        }
    }
    Ok(())
}

/// Parts of a slot that the table does not know go through under their own names.
pub(super) fn apply_extras(
    edit: &Edit<'_>,
    path: &FieldPath,
    map: &Spec,
    parts: &[Part],
    not: &[&str],
    text: &mut PropertyString,
) -> Result<(), CodecError> {
    let is_extra = |field: &str| !not.contains(&field) && !parts.iter().any(|part| part.field == field);
    for (field, value) in map.iter().filter(|(field, _)| is_extra(field)) {
        let written = Form::Text.write(value).map_err(|bad| CodecError::new(&path.child(field), bad.0))?;
        text.set(field, written);
    }
    let below = |gone: &&FieldPath| {
        gone.keys().len() == path.keys().len() + 1 && gone.keys()[..path.keys().len()] == *path.keys()
    };
    for field in edit.removed.iter().filter(below).filter_map(FieldPath::last).filter(|field| is_extra(field))
    {
        text.remove(field);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(json: serde_json::Value) -> Spec {
        crate::kinds::register();
        serde_json::from_value(json).unwrap()
    }

    fn create(kind: GuestKind, json: serde_json::Value) -> Vec<String> {
        let params = create_params(kind, &spec(json)).unwrap();
        params.pairs().map(|(key, value)| format!("{key}={value}")).collect()
    }

    fn edited(json: serde_json::Value, removed: &[&str], key: &str, live: Option<&str>) -> KeyChange {
        let (spec, removed) = (spec(json), removed.iter().map(|path| FieldPath::dotted(path)).collect());
        edit_key(&Edit { table: table(GuestKind::Qemu), spec: &spec, removed: &removed }, key, live).unwrap()
    }

    #[test]
    fn a_new_vm() {
        assert_eq!(
            create(
                GuestKind::Qemu,
                json!({
                    "vmid": 9100, "node": "pve1", "name": "web-1", "mark": "strata: ab web/vm/web-1 vmid=9100", "notes": "hello",
                    "cpu": {"cores": 2, "type": "host", "flags": ["+aes"]}, "memory": {"size": 4096, "balloon": 0},
                    "scsihw": "virtio-scsi-single", "bios": "ovmf", "machine": "q35",
                    "efidisk": {"storage": "local-lvm", "type": "4m", "pre_enrolled_keys": true},
                    "tpm": {"storage": "local-lvm", "version": "v2.0"},
                    "disks": {
                        "scsi0": {"storage": "local-lvm", "size": 40i64 << 30, "ssd": true, "discard": true, "backup": true},
                        "scsi10": {"storage": "tank", "size": 1i64 << 29, "import": "local:import/d.qcow2", "ssd": false}},
                    "cdroms": {"ide2": {"volume": "local:iso/talos.iso"}, "ide0": {"volume": "none"}},
                    "networks": {"net0": {"model": "virtio", "mac": "bc:24:11:00:00:01", "bridge": "vmbr0", "vlan": 30, "firewall": false}},
                    "agent": {"enabled": true, "trim": true}, "boot": ["scsi0", "ide2"], "tags": ["web", "prod"], "onboot": true,
                    "serial": {"serial0": "socket"}, "startup": {"order": 3, "up": 10},
                    "options": {"watchdog": "model=i6300esb"}, "power": "running", "pool": "p"
                })
            ),
            [
                "name=web-1",
                "description=hello\n\nstrata: ab web/vm/web-1 vmid=9100",
                "tags=prod;web",
                "onboot=1",
                "startup=3,up=10",
                "agent=1,fstrim_cloned_disks=1",
                "bios=ovmf",
                "cpu=host,flags=+aes",
                "cores=2",
                "memory=4096",
                "balloon=0",
                "machine=q35",
                "scsihw=virtio-scsi-single",
                "serial0=socket",
                "efidisk0=local-lvm:1,efitype=4m,pre-enrolled-keys=1",
                "tpmstate0=local-lvm:1,version=v2.0",
                "scsi0=local-lvm:40,ssd=1,discard=on",
                "scsi10=tank:0,import-from=local:import/d.qcow2",
                "ide0=none,media=cdrom",
                "ide2=local:iso/talos.iso,media=cdrom",
                "boot=order=scsi0;ide2",
                "net0=virtio=BC:24:11:00:00:01,bridge=vmbr0,tag=30",
                "watchdog=model=i6300esb",
            ]
        );
    }

    #[test]
    fn a_new_container() {
        assert_eq!(
            create(
                GuestKind::Lxc,
                json!({
                    "vmid": 9200, "name": "monitor", "image": "local:vztmpl/d.tar.zst", "unprivileged": true, "ssh_keys": ["ssh-ed25519 A a", "ssh-ed25519 B b"],
                    "rootfs": {"storage": "local-lvm", "size": 8i64 << 30},
                    "mounts": {"mp0": {"storage": "tank", "size": 10i64 << 30, "path": "/data", "backup": true}, "mp1": {"volume": "/srv", "path": "/srv"}},
                    "networks": {"net0": {"name": "eth0", "mac": "BC:24:11:00:00:02", "bridge": "vmbr0", "ip": "192.0.2.90/24", "gateway": "192.0.2.1"}},
                    "features": {"nesting": true, "fuse": false}, "memory": {"size": 512, "swap": 0}, "nameservers": ["192.0.2.53"]
                })
            ),
            [
                "ostemplate=local:vztmpl/d.tar.zst",
                "ssh-public-keys=ssh-ed25519 A a\nssh-ed25519 B b",
                "unprivileged=1",
                "hostname=monitor",
                "features=nesting=1",
                "memory=512",
                "swap=0",
                "rootfs=local-lvm:8",
                "mp0=tank:10,mp=/data,backup=1",
                "mp1=/srv,mp=/srv",
                "net0=name=eth0,hwaddr=BC:24:11:00:00:02,bridge=vmbr0,ip=192.0.2.90/24,gw=192.0.2.1",
                "nameserver=192.0.2.53",
            ]
        );
    }

    #[test]
    fn an_edit_changes_only_what_the_spec_says() {
        let disk = Some("local:110/vm-110-disk-0.qcow2,mbps_rd=100,size=2G,ssd=1");
        let wanted =
            json!({"disks": {"scsi0": {"storage": "elsewhere", "size": 1, "ssd": true, "iothread": true}}});
        assert_eq!(
            edited(wanted, &[], "scsi0", disk),
            KeyChange::set("local:110/vm-110-disk-0.qcow2,mbps_rd=100,size=2G,ssd=1,iothread=1".into())
        );
        // A field that left the source goes; one that was never ours stays.
        let net = Some("virtio=bc:24:11:00:00:0f,bridge=vmbr0,firewall=1,tag=7");
        let wanted = json!({"networks": {"net0": {"model": "virtio", "bridge": "vmbr1"}}});
        assert_eq!(
            edited(wanted, &["networks.net0.vlan"], "net0", net),
            KeyChange::set("virtio=bc:24:11:00:00:0f,bridge=vmbr1,firewall=1".into())
        );
        let same = json!({"networks": {"net0": {"mac": "BC:24:11:00:00:0F", "bridge": "vmbr0"}}});
        assert_eq!(edited(same, &[], "net0", net), KeyChange::Keep);
    }

    #[test]
    fn slots_and_fields_go_by_delete() {
        assert_eq!(
            edited(json!({}), &["networks.net1"], "net1", Some("virtio,bridge=vmbr0")),
            KeyChange::Delete
        );
        assert_eq!(edited(json!({}), &["disks.scsi1"], "scsi1", Some("local:1/x.raw")), KeyChange::Delete);
        assert_eq!(edited(json!({}), &["cpu.units"], "cpuunits", Some("200")), KeyChange::Delete);
        assert_eq!(edited(json!({"tags": []}), &[], "tags", Some("a;b")), KeyChange::Delete);
        assert_eq!(edited(json!({}), &["agent.enabled"], "agent", Some("1")), KeyChange::Delete);
        assert_eq!(edited(json!({}), &["options.args"], "args", Some("-S")), KeyChange::Delete);
        assert_eq!(edited(json!({}), &[], "net1", Some("virtio,bridge=vmbr0")), KeyChange::Keep);
    }

    #[test]
    fn a_template_s_cloud_init_drive_makes_room_for_an_iso() {
        let live = Some("local:9100/vm-9100-cloudinit.qcow2,media=cdrom,size=4M");
        let wanted = json!({"cdroms": {"ide2": {"volume": "local:iso/a.iso"}}});
        assert_eq!(edited(wanted, &[], "ide2", live), KeyChange::set("local:iso/a.iso,media=cdrom".into()));
        let same = json!({"cloudinit": {"drive": {"slot": "ide2", "storage": "local"}}});
        assert_eq!(edited(same, &[], "ide2", live), KeyChange::Keep);
    }

    #[test]
    fn notes_edited_by_hand_get_their_mark_back() {
        let mark = "strata: ab web/vm/web-1 vmid=9100";
        assert_eq!(
            edited(json!({"mark": mark}), &[], "description", Some("written by hand")),
            KeyChange::set(format!("written by hand\n\n{mark}"))
        );
        let both = json!({"mark": mark, "notes": "ours"});
        assert_eq!(edited(both, &[], "description", Some(&format!("ours\n\n{mark}\n"))), KeyChange::Keep);
    }
}
