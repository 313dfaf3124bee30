//! From a guest's configuration to a spec in canonical form.

use std::collections::{BTreeMap, BTreeSet};

use strata_resource::{FieldPath, Spec, Value};

use super::form::Form;
use super::live::LiveConfig;
use super::property::PropertyString;
use super::rule::{Content, GuestKind, Key, Part, Property, Table, table};
use super::{drive, notes, volume};

/// What a configuration says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Decoded {
    pub(crate) spec: Spec,
    /// Fields whose value waits for a restart, dotted.
    pub(crate) pending: Vec<String>,
    /// Where something waits: the spec without it.
    pub(crate) running: Option<Spec>,
}

/// Reads every field that a spec can have; raw keys only where `options` asks for them.
pub(crate) fn decode(kind: GuestKind, live: &LiveConfig, options: &BTreeSet<&str>) -> Decoded {
    let table = table(kind);
    let spec = decode_spec(table, live, options);
    let mut pending = Vec::new();
    let running = live.has_pending().then(|| decode_spec(table, &live.running(), options));
    if let Some(running) = &running {
        differing(&FieldPath::root(), &spec, running, &mut pending);
    }
    Decoded { spec, running: running.filter(|_| !pending.is_empty()), pending }
}

/// The keys of a live object as a spec. What the table does not have is left out: it is not ours.
pub fn read(table: &'static Table, keys: &BTreeMap<String, String>) -> Spec {
    let live = LiveConfig::of(keys);
    decode_spec(table, &live, &BTreeSet::new())
}

fn decode_spec(table: &'static Table, live: &LiveConfig, options: &BTreeSet<&str>) -> Spec {
    let mut spec = Spec::new();
    for (key, text) in live.keys() {
        if let Some(rule) = table.rule(key) {
            let mut path: Vec<&str> = rule.path.to_vec();
            if matches!(rule.key, Key::Slot(_)) {
                path.push(key);
            }
            match rule.content {
                Content::Value(form) | Content::ReadOnly(form) => {
                    if let Some(value) = form.read(text) {
                        put(&mut spec, &path, value);
                    }
                }
                Content::Parts(property) => {
                    let text = PropertyString::parse(text, property.default_key);
                    put_parts(&mut spec, &path, &text, property, matches!(rule.key, Key::Slot(_)));
                }
                Content::QemuNet(property) => {
                    put_parts(&mut spec, &path, &net_from_wire(text), property, true)
                }
                Content::Volume(property) => {
                    put(&mut spec, &path, Value::Map(volume::decode(text, property)))
                }
                Content::Drive(property) => drive::decode(key, text, property, &mut spec),
                Content::Description => notes::decode(text, &mut spec),
            }
        }
        if options.contains(key) {
            put(&mut spec, &["options", key], Value::text(text));
        }
    }
    spec
}

/// What a configuration says and no field of a spec does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beyond {
    /// Keys that the table does not have.
    pub(crate) keys: BTreeSet<String>,
    /// Parts of keys that it does have, as they are written.
    pub(crate) parts: Vec<String>,
}

pub(crate) fn beyond(kind: GuestKind, live: &LiveConfig) -> Beyond {
    let mut beyond = Beyond::default();
    for (key, text) in live.keys() {
        let Some(rule) = table(kind).rule(key) else {
            beyond.keys.insert(key.to_owned());
            continue;
        };
        let parts = match rule.content {
            Content::Parts(property) if matches!(rule.key, Key::Exact(_)) => {
                extras(&PropertyString::parse(text, property.default_key), property.parts, &[])
            }
            Content::Volume(property) => extras(
                &PropertyString::parse(text, property.default_key),
                property.parts,
                &["file", "volume", "size", "format"],
            ),
            Content::Value(Form::Secret) => Vec::new(),
            Content::Value(form) if form.read(text).is_none() => {
                beyond.parts.push(format!("{key}: {text}"));
                continue;
            }
            _ => Vec::new(),
        };
        let text =
            |(part, value): (String, Value)| format!("{key}: {part}={}", value.as_text().unwrap_or_default());
        beyond.parts.extend(parts.into_iter().map(text));
    }
    beyond
}

/// The parts of a property string; those of a slot that the table does not know come under their own names.
fn put_parts(
    spec: &mut Spec,
    path: &[&str],
    text: &PropertyString,
    property: &'static Property,
    is_slot: bool,
) {
    let known = property.parts.iter().filter_map(|part| Some((part.field.to_owned(), part.read(text)?)));
    let others = if is_slot { extras(text, property.parts, &[]) } else { Vec::new() };
    for (field, value) in known.chain(others) {
        let mut path = path.to_vec();
        path.push(&field);
        put(spec, &path, value);
    }
}

/// Parts that the table does not know, as they are written.
pub(super) fn extras(text: &PropertyString, parts: &[Part], not: &[&str]) -> Vec<(String, Value)> {
    let unknown =
        text.parts().filter(|(key, _)| !not.contains(key) && !parts.iter().any(|part| part.is(key)));
    unknown.map(|(key, value)| (key.to_owned(), Value::text(value))).collect()
}

fn put(spec: &mut Spec, path: &[&str], value: Value) {
    let Some((first, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        spec.insert((*first).to_owned(), value);
        return;
    }
    let entry = spec.entry((*first).to_owned()).or_insert_with(|| Value::Map(Spec::new()));
    if let Value::Map(map) = entry {
        put(map, rest, value);
    }
}

const MODELS: [&str; 14] = [
    "virtio",
    "e1000",
    "e1000-82540em",
    "e1000-82544gc",
    "e1000-82545em",
    "e1000e",
    "i82551",
    "i82557b",
    "i82559er",
    "ne2k_isa",
    "ne2k_pci",
    "pcnet",
    "rtl8139",
    "vmxnet3",
];

/// `virtio=BC:24:…,bridge=vmbr0` with the model and the MAC as parts of their own.
pub(super) fn net_from_wire(text: &str) -> PropertyString {
    let mut parts = PropertyString::parse(text, "model");
    let found = parts.parts().find(|(key, _)| MODELS.contains(key));
    if let Some((model, mac)) = found.map(|(model, mac)| (model.to_owned(), mac.to_owned())) {
        parts.remove(&model);
        parts.set("macaddr", mac);
        parts.set("model", model);
    }
    parts
}

/// The other way round.
pub(super) fn net_to_wire(parts: &PropertyString) -> String {
    let model = parts.get("model").unwrap_or("virtio");
    let head = match parts.get("macaddr") {
        Some(mac) => format!("{model}={mac}"),
        None => model.to_owned(),
    };
    let rest = parts.parts().filter(|(key, _)| !matches!(*key, "model" | "macaddr"));
    rest.fold(head, |text, (key, value)| format!("{text},{key}={value}"))
}

/// The leaves that differ between two specs.
fn differing(path: &FieldPath, one: &Spec, other: &Spec, found: &mut Vec<String>) {
    let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    for key in keys {
        let path = path.child(key);
        match (one.get(key), other.get(key)) {
            (Some(Value::Map(one)), Some(Value::Map(other))) => differing(&path, one, other, found),
            (one, other) if one == other => {}
            _ => found.push(path.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::live::live;
    use super::*;

    fn json_of(kind: GuestKind, pairs: &[(&str, &str)], options: &[&str]) -> serde_json::Value {
        let options = options.iter().copied().collect();
        serde_json::to_value(decode(kind, &live(pairs), &options).spec).unwrap()
    }

    #[test]
    fn a_vm_of_the_real_server() {
        let mark = "strata: 00112233445566778899aabbccddeeff web/vm/web-1 vmid=110";
        let description = format!("line1\nline2 ü\n\n{mark}");
        let spec = json_of(
            GuestKind::Qemu,
            &[
                ("name", "full110"),
                ("description", &description),
                ("memory", "256"),
                ("balloon", "128"),
                ("cores", "2"),
                ("cpu", "x86-64-v2-AES,flags=+aes;-pcid"),
                ("numa", "0"),
                ("cpulimit", "1.5"),
                (
                    "scsi0",
                    "local:110/vm-110-disk-0.qcow2,cache=writeback,discard=on,iothread=1,mbps_rd=100,serial=abc,size=2G,ssd=1,wwn=0x1",
                ),
                ("ide2", "local:iso/test.iso,media=cdrom,size=2930K"),
                ("ide0", "local:110/vm-110-cloudinit.qcow2,media=cdrom"),
                ("net0", "virtio=bc:24:11:b5:58:de,bridge=vmbr0,firewall=1,mtu=1,queues=2,rate=12.5,tag=10"),
                ("agent", "1"),
                ("startup", "5"),
                ("tags", "Zeta;alpha"),
                ("ciupgrade", "0"),
                ("cipassword", "**********"),
                ("ipconfig0", "ip=192.0.2.50/24,gw=192.0.2.1,ip6=auto"),
                ("efidisk0", "local:110/vm-110-disk-1.raw,efitype=4m,pre-enrolled-keys=1,size=528K"),
                ("hostpci0", "mapping=gpu,pcie=1"),
                ("watchdog", "model=i6300esb"),
                ("rng0", "source=/dev/urandom"),
                ("unused0", "local:110/vm-110-disk-9.raw"),
            ],
            &["rng0"],
        );
        assert_eq!(
            spec,
            json!({
                "name": "full110", "notes": "line1\nline2 ü", "mark": mark,
                "memory": {"size": 256, "balloon": 128},
                "cpu": {"cores": 2, "type": "x86-64-v2-AES", "flags": ["+aes", "-pcid"], "numa": false, "limit": "1.5"},
                "disks": {"scsi0": {"storage": "local", "volume": "local:110/vm-110-disk-0.qcow2", "size": 2147483648u64, "cache": "writeback", "discard": true,
                    "iothread": true, "mbps_rd": "100", "serial": "abc", "ssd": true, "wwn": "0x1"}},
                "cdroms": {"ide2": {"volume": "local:iso/test.iso"}},
                "cloudinit": {"drive": {"slot": "ide0", "storage": "local"}, "upgrade": false,
                    "ipconfig": {"ipconfig0": {"ip": "192.0.2.50/24", "gateway": "192.0.2.1", "ip6": "auto"}}},
                "networks": {"net0": {"model": "virtio", "mac": "BC:24:11:B5:58:DE", "bridge": "vmbr0", "firewall": true,
                    "mtu": 1, "queues": 2, "rate": "12.5", "vlan": 10}},
                "agent": {"enabled": true}, "startup": {"order": 5}, "tags": ["alpha", "zeta"],
                "efidisk": {"storage": "local", "volume": "local:110/vm-110-disk-1.raw", "size": 540672, "type": "4m",
                    "pre_enrolled_keys": true},
                "pci": {"hostpci0": {"mapping": "gpu", "pcie": true}},
                "options": {"rng0": "source=/dev/urandom"},
            })
        );
    }

    #[test]
    fn a_container_of_the_real_server() {
        let spec = json_of(
            GuestKind::Lxc,
            &[
                ("hostname", "ct200"),
                ("description", "ct desc\n"),
                ("rootfs", "local:200/vm-200-disk-0.raw,size=1G"),
                ("mp0", "local:200/vm-200-disk-1.raw,mp=/data,backup=1,size=1G"),
                ("net0", "name=eth0,bridge=vmbr0,firewall=1,hwaddr=BC:24:11:C8:07:DA,ip=dhcp,type=veth"),
                ("memory", "128"),
                ("swap", "0"),
                ("cores", "1"),
                ("unprivileged", "1"),
                ("features", "nesting=1"),
                ("tags", "ct;lx"),
                ("startup", "order=1"),
                ("nameserver", "192.0.2.53"),
                ("ostype", "debian"),
                ("arch", "amd64"),
            ],
            &[],
        );
        assert_eq!(
            spec,
            json!({
                "name": "ct200", "notes": "ct desc", "memory": {"size": 128, "swap": 0}, "cpu": {"cores": 1},
                "rootfs": {"storage": "local", "volume": "local:200/vm-200-disk-0.raw", "size": 1 << 30},
                "mounts": {"mp0": {"storage": "local", "volume": "local:200/vm-200-disk-1.raw", "path": "/data",
                    "backup": true, "size": 1 << 30}},
                "networks": {"net0": {"name": "eth0", "bridge": "vmbr0", "firewall": true, "mac": "BC:24:11:C8:07:DA",
                    "ip": "dhcp", "type": "veth"}},
                "unprivileged": true, "features": {"nesting": true}, "tags": ["ct", "lx"], "startup": {"order": 1},
                "nameservers": ["192.0.2.53"], "ostype": "debian",
            })
        );
    }

    #[test]
    fn fields_that_wait_for_a_restart_are_named() {
        let rows = r#"[{"key":"memory","value":"64","pending":"128"},{"key":"cores","pending":2},
            {"key":"net0","value":"virtio=BC:24:11:00:00:01,bridge=vmbr0","pending":"virtio=BC:24:11:00:00:01,bridge=vmbr1"}]"#;
        let live = LiveConfig::new(serde_json::from_str(rows).unwrap());
        let decoded = decode(GuestKind::Qemu, &live, &BTreeSet::new());
        assert_eq!(decoded.pending, ["cpu", "memory.size", "networks.net0.bridge"]);
    }
}
