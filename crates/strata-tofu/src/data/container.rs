//! A container.

use strata_resource::{Resource, Spec, Value};
use strata_source::machine::container::ContainerOs;
use strata_yaml::Choice;

use super::{Reading, by_slot, description, firewall, gib, nested_gaps, not_rendered, startup};
use crate::hcl::Expr;
use crate::project::Files;

/// Fields that are written under another name, or by a variable that is in no file.
const WRITTEN: [&str; 3] = ["mark", "notes", "password"];

/// The data of a container under the names of the module's inputs.
pub(crate) fn container(resource: &Resource, files: &mut Files) -> Expr {
    let what = resource.address.to_string();
    let spec = &resource.spec;
    let mut reading = Reading::new(spec);
    reading.put("vm_id", "vmid");
    reading.put("hostname", "name");
    reading.put("node_name", "node");
    reading.put("template_file_id", "image");
    let kind = reading.take("ostype").and_then(Value::as_text).or_else(|| distribution(spec));
    if kind.is_none() {
        files.gap(&what, "the distribution cannot be derived from the template's name: set `osType`");
    }
    reading.set("os_type", kind.map(Expr::text));
    reading.set("description", description(spec));
    reading.put("tags", "tags");
    reading.put("pool_id", "pool");
    let power = reading.take("power").and_then(Value::as_text);
    reading.set("started", power.map(|power| Expr::Bool(power == "running")));
    reading.put("start_on_boot", "onboot");
    reading.put("protection", "protection");
    reading.put("unprivileged", "unprivileged");
    let cpu = reading.take("cpu").and_then(Value::as_map).and_then(|spec| {
        let mut reading = Reading::new(spec);
        reading.put("cores", "cores");
        reading.put("units", "units");
        reading.put_number("limit", "limit");
        reading.object()
    });
    reading.set("cpu", cpu);
    let memory = reading.take("memory").and_then(Value::as_map).and_then(|spec| {
        let mut reading = Reading::new(spec);
        reading.put("dedicated", "size");
        // Proxmox' default, written out: the provider has another.
        let swap = reading.take("swap").and_then(Value::as_int).unwrap_or(512);
        reading.set("swap", Some(Expr::Int(swap)));
        reading.object()
    });
    reading.set("memory", memory);
    let root = reading.take("rootfs").and_then(Value::as_map);
    reading.set("disk", root.and_then(|spec| root_disk(spec, resource, files)));
    let mounts = reading.take("mounts").and_then(Value::as_map);
    let none = Expr::Object(Vec::new());
    reading.set("mount_points", mounts.map(|map| Expr::List(by_slot(map, "mp", &none, mount_point))));
    let networks = reading.take("networks").and_then(Value::as_map);
    let hole = Expr::Object(vec![
        ("name".to_owned(), Expr::text("unused")),
        ("enabled".to_owned(), Expr::Bool(false)),
    ]);
    reading.set("network_interfaces", networks.map(|map| Expr::List(by_slot(map, "net", &hole, network))));
    let addressed = networks.map(|map| by_slot(map, "net", &none, ip_config));
    reading.set("ip_configs", addressed.map(Expr::List));
    reading.put("dns_servers", "nameservers");
    reading.put("dns_domain", "searchdomain");
    reading.put("ssh_keys", "ssh_keys");
    reading.put("features", "features");
    let console = reading.take("console").and_then(Value::as_map).and_then(|spec| {
        let mut reading = Reading::new(spec);
        reading.put("enabled", "enabled");
        reading.put("tty_count", "tty");
        reading.put("type", "mode");
        reading.object()
    });
    reading.set("console", console);
    reading.take("startup");
    reading.set("startup", startup(spec));
    reading.take("firewall");
    reading.set("firewall", firewall(spec));
    for field in reading.left().into_iter().filter(|field| !WRITTEN.contains(field)) {
        not_rendered(resource, &[field], files);
    }
    nested_gaps(resource, &NESTED, files);
    Expr::Object(reading.entries)
}

/// The fields below others that the provider has a word for; a `*` stands for each slot.
const NESTED: [(&str, &[&str]); 5] = [
    ("cpu", &["cores", "units", "limit"]),
    ("memory", &["size", "swap"]),
    ("console", &["enabled", "tty", "mode"]),
    (
        "mounts.*",
        &[
            "path",
            "volume",
            "storage",
            "size",
            "readonly",
            "backup",
            "quota",
            "acl",
            "replicate",
            "shared",
            "mountoptions",
        ],
    ),
    (
        "networks.*",
        &["name", "bridge", "mac", "vlan", "mtu", "firewall", "rate", "ip", "gateway", "ip6", "gateway6"],
    ),
];

/// Proxmox looks into the template; the provider has to be told.
fn distribution(spec: &Spec) -> Option<&'static str> {
    let image = spec.get("image")?.as_text()?.to_ascii_lowercase();
    let known = ContainerOs::ALL.iter().filter(|os| **os != ContainerOs::Unmanaged);
    known.map(|os| os.as_str()).find(|name| image.contains(name))
}

fn options(value: Option<&Value>) -> Option<Expr> {
    value.and_then(Value::as_text).map(|text| Expr::texts(text.split(';')))
}

fn root_disk(spec: &Spec, resource: &Resource, files: &mut Files) -> Option<Expr> {
    let mut reading = Reading::new(spec);
    reading.put("datastore_id", "storage");
    reading.put_gib("size", "size");
    for field in ["acl", "quota", "replicate"] {
        reading.put(field, field);
    }
    let mount_options = options(reading.take("mountoptions"));
    reading.set("mount_options", mount_options);
    for field in reading.left() {
        not_rendered(resource, &["rootfs", field], files);
    }
    reading.object()
}

fn mount_point(spec: &Spec) -> Expr {
    let mut reading = Reading::new(spec);
    reading.put("path", "path");
    let volume = reading.take("volume").or_else(|| spec.get("storage")).and_then(super::plain);
    reading.set("volume", volume);
    // The provider takes a size with a unit here.
    let size =
        reading.take("size").and_then(Value::as_int).map(|bytes| Expr::text(format!("{}G", gib(bytes))));
    reading.set("size", size);
    reading.put("read_only", "readonly");
    for field in ["backup", "quota", "acl", "replicate", "shared"] {
        reading.put(field, field);
    }
    let mount_options = options(reading.take("mountoptions"));
    reading.set("mount_options", mount_options);
    Expr::Object(reading.entries)
}

fn network(spec: &Spec) -> Expr {
    let mut reading = Reading::new(spec);
    for (name, field) in [
        ("name", "name"),
        ("bridge", "bridge"),
        ("mac_address", "mac"),
        ("vlan_id", "vlan"),
        ("mtu", "mtu"),
        ("firewall", "firewall"),
    ] {
        reading.put(name, field);
    }
    reading.put_number("rate_limit", "rate");
    Expr::Object(reading.entries)
}

pub(super) fn ip_config(spec: &Spec) -> Expr {
    let mut reading = Reading::new(spec);
    for (name, field) in [
        ("ipv4_address", "ip"),
        ("ipv4_gateway", "gateway"),
        ("ipv6_address", "ip6"),
        ("ipv6_gateway", "gateway6"),
    ] {
        reading.put(name, field);
    }
    Expr::Object(reading.entries)
}
