//! A virtual machine or a template.

use strata_resource::{Resource, Spec, Value};

use super::{Reading, by_slot, description, firewall, nested_gaps, not_rendered, startup};
use crate::hcl::Expr;
use crate::project::Files;

/// Fields that are written under another name, or with others.
const WRITTEN: [&str; 3] = ["mark", "notes", "timeouts"];

/// Fields that a clone has of its template where it says nothing; the provider would put defaults of its own there.
const INHERITED: [&str; 13] = [
    "cpu", "memory", "bios", "machine", "ostype", "scsihw", "tablet", "hotplug", "agent", "vga", "serial",
    "boot", "disks",
];

/// The data of a VM under the names of the module's inputs; `template` is what it is cloned from.
pub(crate) fn vm(resource: &Resource, template: Option<&Resource>, files: &mut Files) -> Expr {
    let what = resource.address.to_string();
    let mut whole = resource.spec.clone();
    if let Some(template) = template {
        for field in INHERITED {
            let Some(below) = template.spec.get(field) else { continue };
            let own = whole.remove(field);
            whole.insert(field.to_owned(), inherit(own, below));
        }
    }
    let spec = &whole;
    let mut reading = Reading::new(spec);
    reading.put("vm_id", "vmid");
    reading.put("name", "name");
    reading.put("node_name", "node");
    reading.set("description", description(spec));
    reading.put("tags", "tags");
    reading.put("pool_id", "pool");
    let power = reading.take("power").and_then(Value::as_text);
    reading.set("started", power.map(|power| Expr::Bool(power == "running")));
    reading.put("on_boot", "onboot");
    reading.put("protection", "protection");
    // The module of templates says so itself.
    reading.take("template");
    for (name, field) in [
        ("bios", "bios"),
        ("machine", "machine"),
        ("os_type", "ostype"),
        ("scsi_hardware", "scsihw"),
        ("tablet_device", "tablet"),
        ("boot_order", "boot"),
    ] {
        reading.put(name, field);
    }
    let hotplug = reading.take("hotplug").and_then(Value::as_list).map(|items| {
        let items: Vec<&str> = items.iter().filter_map(Value::as_text).collect();
        Expr::text(items.join(","))
    });
    reading.set("hotplug", hotplug);
    let clone = reading.take("clone").and_then(Value::as_map).and_then(clone);
    reading.set("clone", clone);
    let cpu = reading.take("cpu").and_then(Value::as_map).and_then(cpu);
    reading.set("cpu", cpu);
    let memory = reading.take("memory").and_then(Value::as_map).and_then(memory);
    reading.set("memory", memory);
    let agent = reading.take("agent").and_then(Value::as_map).and_then(agent);
    reading.set("agent", agent);
    let disks = reading.take("disks").and_then(Value::as_map).map(|disks| disk_map(disks, resource, files));
    reading.set("disks", disks);
    let cdroms = reading.take("cdroms").and_then(Value::as_map);
    let cdrom = cdroms.and_then(|cdroms| cdrom(cdroms, &what, files));
    let media = reading.take("boot_media").and_then(Value::as_map).and_then(boot_media);
    reading.set("cdrom", cdrom.or(media));
    let efi = reading.take("efidisk").and_then(Value::as_map).and_then(efi_disk);
    reading.set("efi_disk", efi);
    let tpm = reading.take("tpm").and_then(Value::as_map).and_then(tpm_state);
    reading.set("tpm_state", tpm);
    let hole = Expr::Object(vec![("enabled".to_owned(), Expr::Bool(false))]);
    let networks = reading.take("networks").and_then(Value::as_map);
    reading.set("network_devices", networks.map(|map| Expr::List(by_slot(map, "net", &hole, network))));
    let cloudinit = reading.take("cloudinit").and_then(Value::as_map);
    reading.set("initialization", cloudinit.and_then(initialization));
    let pci = reading.take("pci").and_then(Value::as_map);
    reading.set("hostpci", pci.map(|map| slots(map, host_pci)));
    let usb = reading.take("usb").and_then(Value::as_map);
    let none = Expr::Object(Vec::new());
    reading.set("usb", usb.map(|map| Expr::List(by_slot(map, "usb", &none, host_usb))));
    let serial = reading.take("serial").and_then(Value::as_map);
    reading
        .set("serial_devices", serial.map(|map| Expr::List(map.values().filter_map(super::plain).collect())));
    let vga = reading.take("vga").and_then(Value::as_map).and_then(vga);
    reading.set("vga", vga);
    reading.take("startup");
    reading.set("startup", startup(spec));
    reading.take("firewall");
    reading.set("firewall", firewall(spec));
    let timeouts = spec.get("timeouts").and_then(Value::as_map).and_then(timeouts);
    reading.set("timeouts", timeouts);
    for field in reading.left().into_iter().filter(|field| !WRITTEN.contains(field)) {
        not_rendered(resource, &[field], files);
    }
    nested_gaps(&Resource { spec: whole.clone(), ..resource.clone() }, &NESTED, files);
    Expr::Object(reading.entries)
}

/// The fields below others that the provider has a word for; a `*` stands for each slot.
const NESTED: [(&str, &[&str]); 9] = [
    ("agent", &["enabled", "trim", "type"]),
    ("cpu", &["type", "cores", "sockets", "units", "numa", "flags", "affinity", "limit"]),
    ("memory", &["size", "balloon"]),
    ("efidisk", &["storage", "type", "pre_enrolled_keys", "format"]),
    ("tpm", &["storage", "version"]),
    ("vga", &["type", "memory"]),
    (
        "networks.*",
        &["bridge", "model", "mac", "vlan", "trunks", "mtu", "queues", "firewall", "link_down", "rate"],
    ),
    ("pci.*", &["device", "mapping", "pcie", "rombar", "xvga", "mdev"]),
    ("usb.*", &["device", "mapping", "usb3"]),
];

/// What is said, and below it what the template has; a copy is not imported again.
fn inherit(own: Option<Value>, below: &Value) -> Value {
    match (own, below) {
        (Some(Value::Map(mut own)), Value::Map(below)) => {
            for (key, value) in below.iter().filter(|(key, _)| *key != "import") {
                let mine = own.remove(key);
                own.insert(key.clone(), inherit(mine, value));
            }
            Value::Map(own)
        }
        (Some(own), _) => own,
        (None, Value::Map(below)) => {
            let kept = below.iter().filter(|(key, _)| *key != "import");
            Value::Map(kept.map(|(key, value)| (key.clone(), inherit(None, value))).collect())
        }
        (None, below) => below.clone(),
    }
}

fn clone(spec: &Spec) -> Option<Expr> {
    let mut reading = Reading::new(spec);
    reading.put("vm_id", "template");
    reading.put("node_name", "node");
    reading.put("full", "full");
    reading.put("datastore_id", "storage");
    reading.object()
}

fn cpu(spec: &Spec) -> Option<Expr> {
    let mut reading = Reading::new(spec);
    for field in ["type", "cores", "sockets", "units", "numa", "flags", "affinity"] {
        reading.put(field, field);
    }
    reading.put_number("limit", "limit");
    reading.object()
}

fn memory(spec: &Spec) -> Option<Expr> {
    let mut reading = Reading::new(spec);
    reading.put("dedicated", "size");
    // Without a word on it Proxmox lets the balloon take nothing; the provider would do without one.
    let balloon = reading.take("balloon").or_else(|| spec.get("size")).and_then(super::plain);
    reading.set("floating", balloon);
    reading.object()
}

fn agent(spec: &Spec) -> Option<Expr> {
    let mut reading = Reading::new(spec);
    for field in ["enabled", "trim", "type"] {
        reading.put(field, field);
    }
    reading.object()
}

fn disk_map(disks: &Spec, resource: &Resource, files: &mut Files) -> Expr {
    let mut entries = Vec::new();
    for (slot, value) in disks {
        let Some(spec) = value.as_map() else { continue };
        let mut reading = Reading::new(spec);
        reading.put("datastore_id", "storage");
        reading.put_gib("size", "size");
        reading.put("file_format", "format");
        reading.put("import_from", "import");
        if let Some((storage, path)) =
            reading.take("volume").and_then(Value::as_text).and_then(|volume| volume.split_once(':'))
        {
            reading.set("datastore_id", Some(Expr::text(storage)));
            reading.set("path_in_datastore", Some(Expr::text(path)));
        }
        for field in ["ssd", "discard", "iothread", "backup", "replicate", "cache", "aio", "serial"] {
            reading.put(field, field);
        }
        for field in reading.left() {
            not_rendered(resource, &["disks", slot, field], files);
        }
        entries.push((slot.clone(), Expr::Object(reading.entries)));
    }
    Expr::Object(entries)
}

fn cdrom(cdroms: &Spec, what: &str, files: &mut Files) -> Option<Expr> {
    let mut volumes = cdroms
        .iter()
        .filter_map(|(slot, value)| Some((slot, value.as_map()?.get("volume")?.as_text()?)))
        // The documents of cloud-init go another way.
        .filter(|(_, volume)| !is_cidata(volume));
    let (slot, volume) = volumes.next()?;
    if let Some((other, _)) = volumes.next() {
        files.gap(what, format!("the provider knows one CD drive: `{other}` is left out"));
    }
    Some(Expr::Object(vec![
        ("interface".to_owned(), Expr::text(slot)),
        ("file_id".to_owned(), Expr::text(volume)),
    ]))
}

/// The CD that a machine is installed from.
fn boot_media(spec: &Spec) -> Option<Expr> {
    let mut reading = Reading::new(spec);
    reading.put("interface", "slot");
    reading.put("file_id", "volume");
    reading.object()
}

/// The ISO that Strata makes for one machine: `strata-<lineage>-<vmid>-<hash>.iso`.
fn is_cidata(volume: &str) -> bool {
    let Some(name) = volume.split_once(":iso/strata-").and_then(|(_, name)| name.strip_suffix(".iso")) else {
        return false;
    };
    let parts: Vec<&str> = name.split('-').collect();
    parts.len() == 3 && parts[1].bytes().all(|byte| byte.is_ascii_digit())
}

fn efi_disk(spec: &Spec) -> Option<Expr> {
    let mut reading = Reading::new(spec);
    reading.put("datastore_id", "storage");
    reading.put("type", "type");
    reading.put("pre_enrolled_keys", "pre_enrolled_keys");
    reading.put("file_format", "format");
    reading.object()
}

fn tpm_state(spec: &Spec) -> Option<Expr> {
    let mut reading = Reading::new(spec);
    reading.put("datastore_id", "storage");
    reading.put("version", "version");
    reading.object()
}

fn network(spec: &Spec) -> Expr {
    let mut reading = Reading::new(spec);
    for (name, field) in [
        ("bridge", "bridge"),
        ("model", "model"),
        ("mac_address", "mac"),
        ("vlan_id", "vlan"),
        ("trunks", "trunks"),
        ("mtu", "mtu"),
        ("queues", "queues"),
        ("firewall", "firewall"),
        ("disconnected", "link_down"),
    ] {
        reading.put(name, field);
    }
    reading.put_number("rate_limit", "rate");
    Expr::Object(reading.entries)
}

fn initialization(spec: &Spec) -> Option<Expr> {
    let drive = spec.get("drive").and_then(Value::as_map);
    let mut reading = Reading::new(spec);
    if let Some(drive) = drive {
        reading.set("datastore_id", drive.get("storage").and_then(super::plain));
        reading.set("interface", drive.get("slot").and_then(super::plain));
    }
    for (name, field) in [
        ("type", "type"),
        ("upgrade", "upgrade"),
        ("username", "user"),
        ("ssh_keys", "ssh_keys"),
        ("dns_servers", "nameservers"),
        ("dns_domain", "searchdomain"),
    ] {
        reading.put(name, field);
    }
    let configs = reading.take("ipconfig").and_then(Value::as_map);
    let none = Expr::Object(Vec::new());
    reading.set(
        "ip_configs",
        configs.map(|map| Expr::List(by_slot(map, "ipconfig", &none, super::container::ip_config))),
    );
    reading.object()
}

fn slots(map: &Spec, entry: impl Fn(&Spec) -> Expr) -> Expr {
    Expr::Object(
        map.iter().filter_map(|(slot, value)| Some((slot.clone(), entry(value.as_map()?)))).collect(),
    )
}

fn host_pci(spec: &Spec) -> Expr {
    let mut reading = Reading::new(spec);
    reading.put("id", "device");
    for field in ["mapping", "pcie", "rombar", "xvga", "mdev"] {
        reading.put(field, field);
    }
    Expr::Object(reading.entries)
}

fn host_usb(spec: &Spec) -> Expr {
    let mut reading = Reading::new(spec);
    reading.put("host", "device");
    reading.put("mapping", "mapping");
    reading.put("usb3", "usb3");
    Expr::Object(reading.entries)
}

fn vga(spec: &Spec) -> Option<Expr> {
    let mut reading = Reading::new(spec);
    reading.put("type", "type");
    reading.put("memory", "memory");
    reading.object()
}

fn timeouts(spec: &Spec) -> Option<Expr> {
    let mut reading = Reading::new(spec);
    for field in ["create", "clone", "start", "shutdown", "migrate"] {
        reading.put(field, field);
    }
    reading.object()
}
