//! Any spec, sent as a create and read back from what a server makes of it, leaves nothing to do; and so does an edit from any
//! spec to any other.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use strata_resource::{Spec, Value, diff_specs};

use super::encode::{Edit, KeyChange, create_params, edit_key};
use super::keys::keys_of;
use super::live::{LiveConfig, live};
use super::rule::{GuestKind, table};
use super::size::from_size_text;
use super::{decode, size};

/// A server's idea of a configuration: volumes get ids and sizes, parts get sorted, and so on.
#[derive(Default)]
struct Server {
    config: BTreeMap<String, String>,
}

impl Server {
    fn set(&mut self, kind: GuestKind, key: &str, value: &str) {
        let stored = match (kind, key) {
            (_, "password" | "ssh-public-keys" | "ostemplate") => return,
            (_, "cipassword") => "**********".to_owned(),
            (GuestKind::Lxc, "description") => format!("{value}\n"),
            (GuestKind::Lxc, _) if key.starts_with("net") => format!("{},type=veth", sorted(value, 1)),
            (GuestKind::Qemu, _) if key.starts_with("net") => sorted(value, 1),
            _ if is_volume_key(key) => volume(value),
            _ => value.to_owned(),
        };
        self.config.insert(key.to_owned(), stored);
    }

    fn live(&self) -> LiveConfig {
        let pairs: Vec<(&str, &str)> =
            self.config.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        live(&pairs)
    }
}

fn is_volume_key(key: &str) -> bool {
    ["scsi", "virtio", "sata", "ide", "efidisk", "tpmstate", "rootfs", "mp"].iter().any(|prefix| {
        key.strip_prefix(prefix).is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// Everything after the first parts in the order of the alphabet.
fn sorted(value: &str, first: usize) -> String {
    let mut parts: Vec<&str> = value.split(',').collect();
    parts[first..].sort_unstable();
    parts.join(",")
}

/// `local:8,ssd=1` becomes `local:9100/vm-9100-disk-0.raw,size=8G,ssd=1`.
fn volume(value: &str) -> String {
    let (head, rest) = value.split_once(',').unwrap_or((value, ""));
    let Some((storage, asked)) = head.split_once(':') else { return value.to_owned() };
    let kept = rest
        .split(',')
        .filter(|part| !part.is_empty() && !part.starts_with("import-from=") && !part.starts_with("format="));
    let mut parts: Vec<String> = kept.map(str::to_owned).collect();
    let head = if asked == "cloudinit" {
        parts.push("media=cdrom".to_owned());
        format!("{storage}:9100/vm-9100-cloudinit.qcow2")
    } else if asked.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        let bytes = from_size_text(&format!("{asked}G")).unwrap();
        parts.push(format!("size={}", size::to_size_text(bytes)));
        format!("{storage}:9100/vm-9100-disk-0.raw")
    } else {
        head.to_owned()
    };
    parts.sort();
    std::iter::once(head).chain(parts).collect::<Vec<_>>().join(",")
}

fn text(pattern: &'static str) -> impl Strategy<Value = Value> {
    proptest::string::string_regex(pattern).unwrap().prop_map(Value::Text)
}

fn int(range: std::ops::Range<i64>) -> BoxedStrategy<Value> {
    range.prop_map(Value::Int).boxed()
}

fn flag() -> BoxedStrategy<Value> {
    any::<bool>().prop_map(Value::Bool).boxed()
}

fn texts(pattern: &'static str, most: usize) -> BoxedStrategy<Value> {
    prop::collection::btree_set(proptest::string::string_regex(pattern).unwrap(), 0..most)
        .prop_map(|set| Value::List(set.into_iter().map(Value::Text).collect()))
        .boxed()
}

fn word() -> BoxedStrategy<Value> {
    text("[a-z][a-z0-9]{0,6}").boxed()
}

fn mac() -> BoxedStrategy<Value> {
    text("BC:24:11(:[0-9A-F]{2}){3}").boxed()
}

fn gib() -> BoxedStrategy<Value> {
    (1i64..500).prop_map(|gib| Value::Int(gib << 30)).boxed()
}

/// A map of which any fields may be missing, but never the first `needed`.
fn fields(needed: usize, fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let some: Vec<_> = fields
        .into_iter()
        .enumerate()
        .map(|(index, (name, value))| {
            let value =
                if index < needed { value.prop_map(Some).boxed() } else { prop::option::of(value).boxed() };
            value.prop_map(move |value| value.map(|value| (name.to_owned(), value)))
        })
        .collect();
    some.prop_map(|some| Value::Map(some.into_iter().flatten().collect())).boxed()
}

fn slots(prefix: &'static str, slot: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    prop::collection::btree_map(0u8..4, slot, 0..3)
        .prop_map(move |map| {
            Value::Map(map.into_iter().map(|(n, value)| (format!("{prefix}{n}"), value)).collect())
        })
        .boxed()
}

fn shared_fields() -> Vec<(&'static str, BoxedStrategy<Value>)> {
    vec![
        ("name", word()),
        ("mark", Just(Value::text("strata: 0123 web/vm/web-1 vmid=9100")).boxed()),
        ("notes", text("[a-z]{1,9}(\n[a-z]{1,9}){0,2}").boxed()),
        ("tags", texts("[a-z0-9]{1,5}", 4)),
        ("onboot", flag()),
        ("protection", flag()),
        ("startup", fields(0, vec![("order", int(1..99)), ("up", int(1..99)), ("down", int(1..99))])),
        ("options", fields(0, vec![("lock-free", word()), ("another", word())])),
    ]
}

fn vm() -> BoxedStrategy<Value> {
    let disk = || {
        fields(
            2,
            vec![
                ("storage", word()),
                ("size", gib()),
                ("ssd", flag()),
                ("discard", flag()),
                ("iothread", flag()),
                ("readonly", flag()),
                ("backup", flag()),
                ("replicate", flag()),
                ("cache", word()),
                ("aio", word()),
                ("serial", word()),
                ("wwn", word()),
                ("iops", text("[1-9]{1,3}").boxed()),
                ("mbps_rd", text("[1-9]0").boxed()),
            ],
        )
    };
    let net = fields(
        2,
        vec![
            ("model", prop_oneof![Just("virtio".into()), Just("e1000".into())].boxed()),
            ("mac", mac()),
            ("bridge", word()),
            ("vlan", int(1..4000)),
            ("mtu", int(1..9000)),
            ("queues", int(1..9)),
            ("firewall", flag()),
            ("link_down", flag()),
            ("rate", text("[1-9][0-9]?(\\.5)?").boxed()),
            ("trunks", text("[1-9](;[1-9])?").boxed()),
        ],
    );
    let address = fields(
        1,
        vec![
            ("ip", text("192\\.0\\.2\\.[1-9]/24").boxed()),
            ("gateway", text("192\\.0\\.2\\.[1-9]").boxed()),
            ("ip6", word()),
        ],
    );
    let mut all = shared_fields();
    all.extend(vec![
        (
            "cpu",
            fields(
                0,
                vec![
                    ("type", word()),
                    ("cores", int(1..9)),
                    ("sockets", int(1..3)),
                    ("units", int(1..999)),
                    ("limit", text("[1-9](\\.5)?").boxed()),
                    ("numa", flag()),
                    ("flags", texts("[+-][a-z]{2,5}", 3)),
                    ("affinity", text("[0-9]-[0-9]").boxed()),
                ],
            ),
        ),
        ("memory", fields(0, vec![("size", int(16..9999)), ("balloon", int(0..9999))])),
        ("bios", word()),
        ("machine", word()),
        ("ostype", word()),
        ("scsihw", word()),
        ("local_time", flag()),
        ("tablet", flag()),
        ("acpi", flag()),
        ("kvm", flag()),
        ("hotplug", texts("disk|network|usb|cpu", 4)),
        ("efidisk", fields(1, vec![("storage", word()), ("type", word()), ("pre_enrolled_keys", flag())])),
        ("tpm", fields(1, vec![("storage", word()), ("version", word())])),
        ("disks", slots("scsi", disk())),
        (
            "cdroms",
            slots(
                "sata",
                fields(
                    1,
                    vec![(
                        "volume",
                        prop_oneof![Just("none".into()), text("local:iso/[a-z]{3}\\.iso")].boxed(),
                    )],
                ),
            ),
        ),
        ("networks", slots("net", net)),
        (
            "cloudinit",
            fields(
                0,
                vec![
                    (
                        "drive",
                        fields(
                            2,
                            vec![
                                ("slot", prop_oneof![Just("ide0".into()), Just("ide2".into())].boxed()),
                                ("storage", word()),
                            ],
                        ),
                    ),
                    ("user", word()),
                    ("ssh_keys", texts("ssh-ed25519 [A-Za-z0-9+/=]{4,9} [a-z]{2}@[a-z]{2}", 3)),
                    ("nameservers", texts("192\\.0\\.2\\.[0-9]", 3)),
                    ("searchdomain", word()),
                    ("upgrade", flag()),
                    ("type", word()),
                    ("ipconfig", slots("ipconfig", address)),
                ],
            ),
        ),
        (
            "pci",
            slots(
                "hostpci",
                fields(
                    1,
                    vec![
                        ("mapping", word()),
                        ("pcie", flag()),
                        ("rombar", flag()),
                        ("xvga", flag()),
                        ("mdev", word()),
                    ],
                ),
            ),
        ),
        (
            "usb",
            slots("usb", fields(1, vec![("device", text("[0-9]{4}:[0-9]{4}").boxed()), ("usb3", flag())])),
        ),
        ("serial", slots("serial", Just(Value::text("socket")).boxed())),
        ("vga", fields(1, vec![("type", word()), ("memory", int(4..512))])),
        (
            "agent",
            fields(0, vec![("enabled", flag()), ("trim", flag()), ("freeze", flag()), ("type", word())]),
        ),
        ("boot", texts("(scsi|net)[0-3]", 4)),
    ]);
    fields(0, all)
}

fn container() -> BoxedStrategy<Value> {
    let net = fields(
        2,
        vec![
            ("name", word()),
            ("mac", mac()),
            ("bridge", word()),
            ("vlan", int(1..4000)),
            ("mtu", int(64..9000)),
            ("firewall", flag()),
            ("link_down", flag()),
            ("rate", text("[1-9](\\.5)?").boxed()),
            ("ip", word()),
            ("gateway", word()),
            ("ip6", word()),
        ],
    );
    let mount = fields(
        3,
        vec![
            ("storage", word()),
            ("size", gib()),
            ("path", text("/[a-z]{1,4}").boxed()),
            ("backup", flag()),
            ("readonly", flag()),
            ("quota", flag()),
            ("acl", flag()),
            ("replicate", flag()),
            ("shared", flag()),
            ("mountoptions", text("noatime(;discard)?").boxed()),
        ],
    );
    let mut all = shared_fields();
    all.extend(vec![
        ("image", Just(Value::text("local:vztmpl/a.tar.zst")).boxed()),
        ("unprivileged", flag()),
        ("ssh_keys", texts("ssh-rsa [a-z]{3}", 2)),
        (
            "cpu",
            fields(
                0,
                vec![("cores", int(1..9)), ("units", int(1..999)), ("limit", text("[1-9](\\.5)?").boxed())],
            ),
        ),
        ("memory", fields(0, vec![("size", int(16..999)), ("swap", int(0..999))])),
        (
            "rootfs",
            fields(
                2,
                vec![
                    ("storage", word()),
                    ("size", gib()),
                    ("readonly", flag()),
                    ("quota", flag()),
                    ("replicate", flag()),
                    ("acl", flag()),
                ],
            ),
        ),
        ("mounts", slots("mp", mount)),
        ("networks", slots("net", net)),
        (
            "features",
            fields(
                0,
                vec![
                    ("nesting", flag()),
                    ("keyctl", flag()),
                    ("fuse", flag()),
                    ("mknod", flag()),
                    ("mount", texts("nfs|cifs", 3)),
                ],
            ),
        ),
        ("nameservers", texts("192\\.0\\.2\\.[0-9]", 3)),
        ("searchdomain", word()),
        ("timezone", word()),
        ("console", fields(0, vec![("enabled", flag()), ("mode", word()), ("tty", int(0..6))])),
    ]);
    fields(0, all)
}

fn as_spec(value: &Value) -> Spec {
    value.as_map().unwrap().clone()
}

fn options(spec: &Spec) -> BTreeSet<&str> {
    spec.get("options")
        .and_then(Value::as_map)
        .into_iter()
        .flat_map(|map| map.keys().map(String::as_str))
        .collect()
}

fn created(kind: GuestKind, spec: &Spec) -> Server {
    crate::kinds::register();
    let mut server = Server::default();
    for (key, value) in create_params(kind, spec).unwrap().pairs() {
        server.set(kind, key, value);
    }
    server
}

fn left(kind: GuestKind, desired: &Spec, applied: &Spec, server: &Server) -> Vec<String> {
    let options: BTreeSet<&str> = options(desired).into_iter().chain(options(applied)).collect();
    let live = decode(kind, &server.live(), &options).spec;
    let diff = diff_specs(kind.resource_kind().rules(), desired, Some(applied), &live);
    diff.changes
        .iter()
        .map(|change| format!("{} {:?} -> {:?}", change.path, change.before, change.after))
        .collect()
}

/// What an update does that sends only the changed keys; sizes and storages have calls of their own.
fn update(kind: GuestKind, from: &Spec, to: &Spec, server: &mut Server) -> Vec<String> {
    let options: BTreeSet<&str> = options(to).into_iter().chain(options(from)).collect();
    let before = decode(kind, &server.live(), &options).spec;
    let changes = diff_specs(kind.resource_kind().rules(), to, Some(from), &before).changes;
    let removed =
        changes.iter().filter(|change| change.after.is_none()).map(|change| change.path.clone()).collect();
    let keys: BTreeSet<String> = changes.iter().flat_map(|change| keys_of(kind, change, to)).collect();
    let edit = Edit { table: table(kind), spec: to, removed: &removed };
    for key in keys {
        let was = server.config.get(&key).cloned();
        match edit_key(&edit, &key, was.as_deref()).unwrap() {
            KeyChange::Set { value, .. } => server.set(kind, &key, &value),
            KeyChange::Delete => drop(server.config.remove(&key)),
            KeyChange::Keep => {}
        }
    }
    let by_call = |line: &String| {
        line.split(' ').next().is_some_and(|path| path.ends_with(".size") || path.ends_with(".storage"))
    };
    left(kind, to, from, server).into_iter().filter(|line| !by_call(line)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_created_vm_reads_back(spec in vm()) {
        let spec = as_spec(&spec);
        prop_assert_eq!(left(GuestKind::Qemu, &spec, &spec, &created(GuestKind::Qemu, &spec)), Vec::<String>::new());
    }

    #[test]
    fn a_created_container_reads_back(spec in container()) {
        let spec = as_spec(&spec);
        prop_assert_eq!(left(GuestKind::Lxc, &spec, &spec, &created(GuestKind::Lxc, &spec)), Vec::<String>::new());
    }

    #[test]
    fn an_edited_vm_reads_back(from in vm(), to in vm()) {
        let (from, to) = (as_spec(&from), as_spec(&to));
        let mut server = created(GuestKind::Qemu, &from);
        prop_assert_eq!(update(GuestKind::Qemu, &from, &to, &mut server), Vec::<String>::new());
    }

    #[test]
    fn an_edited_container_reads_back(from in container(), to in container()) {
        let (mut from, mut to) = (as_spec(&from), as_spec(&to));
        // A change of this is a replacement, never an edit.
        from.remove("unprivileged");
        to.remove("unprivileged");
        let mut server = created(GuestKind::Lxc, &from);
        prop_assert_eq!(update(GuestKind::Lxc, &from, &to, &mut server), Vec::<String>::new());
    }
}
