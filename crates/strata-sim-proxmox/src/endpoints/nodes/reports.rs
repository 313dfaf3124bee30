//! What a node reports about its hardware and software. Most of it is the same on every simulated host.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::api::param::usual;
use crate::api::permission::{on, on_any};
use crate::api::{Call, Check, Param, Perm, Reply, Route, flag, get, text};
use crate::endpoints::index::listing;
use crate::endpoints::qemu::cpu;
use strata_sim_core::cert;

pub fn routes() -> Vec<Route> {
    let with = |extra: Vec<Param>| [vec![usual::node()], extra].concat();
    let audit = || on("/nodes/{node}", &["Sys.Audit"]);
    let arch = || text("arch").one_of(&["x86_64", "aarch64"]).opt();
    let anyone = || Perm::Anyone;
    let disks = Perm::Check(Check::Or(vec![
        Check::All("/", &["Sys.Audit"]),
        Check::All("/nodes/{node}", &["Sys.Audit"]),
    ]));
    let timeframe = vec![
        text("timeframe").one_of(&["hour", "day", "week", "month", "year", "decade"]),
        text("cf").one_of(&["AVERAGE", "MAX"]).opt(),
    ];
    vec![
        get("/nodes/{node}/capabilities", anyone(), with(vec![]), |_| listing("name", &["qemu"])),
        get("/nodes/{node}/capabilities/qemu", anyone(), with(vec![]), |_| {
            listing("name", &["cpu", "cpu-flags", "machines", "migration"])
        }),
        get("/nodes/{node}/capabilities/qemu/cpu", anyone(), with(vec![arch()]), cpus),
        get("/nodes/{node}/capabilities/qemu/machines", anyone(), with(vec![arch()]), machines),
        get("/nodes/{node}/certificates/info", anyone(), with(vec![]), certificates),
        get("/nodes/{node}/scan", anyone(), with(vec![]), |_| {
            listing("method", &["cifs", "iscsi", "lvm", "nfs", "pbs", "zfs"])
        })
        .anywhere(),
        get("/nodes/{node}/hardware", anyone(), with(vec![]), |_| listing("type", &["pci", "usb"])),
        get(
            "/nodes/{node}/hardware/pci",
            on_any("/", &["Sys.Audit", "Sys.Modify"]),
            with(vec![text("pci-class-blacklist").opt(), flag("verbose").opt()]),
            |_| Ok(json!([]).into()),
        ),
        get("/nodes/{node}/hardware/usb", on("/", &["Sys.Modify"]), with(vec![]), |_| Ok(json!([]).into())),
        get(
            "/nodes/{node}/disks/list",
            disks,
            with(vec![
                flag("include-partitions").opt(),
                flag("skipsmart").opt(),
                text("type").one_of(&["unused", "journal_disks"]).opt(),
            ]),
            disk_list,
        ),
        get("/nodes/{node}/services", audit(), with(vec![]), services),
        get(
            "/nodes/{node}/services/{service}/state",
            audit(),
            with(vec![text("service").one_of(&SERVICE_NAMES)]),
            |call| Ok(service(call.args.must("service")).into()),
        ),
        get("/nodes/{node}/apt/versions", audit(), with(vec![]), versions),
        get("/nodes/{node}/aplinfo", anyone(), with(vec![]), appliances),
        get("/nodes/{node}/rrddata", audit(), with(timeframe), |_| Ok(json!([]).into())),
    ]
}

fn cpus(_: &mut Call<'_>) -> Reply {
    let rows: Vec<Value> = cpu::models()
        .into_iter()
        .map(|(name, vendor)| json!({ "name": name, "vendor": vendor, "custom": 0 }))
        .collect();
    Ok(Value::Array(rows).into())
}

fn machines(_: &mut Call<'_>) -> Reply {
    let rows: Vec<Value> = cpu::MACHINES
        .iter()
        .flat_map(|version| {
            ["i440fx", "q35"].map(|kind| {
                let id = format!("pc-{kind}-{version}");
                json!({ "id": id, "type": kind, "version": version })
            })
        })
        .collect();
    Ok(Value::Array(rows).into())
}

fn certificates(call: &mut Call<'_>) -> Reply {
    let node = call.args.must("node");
    Ok(json!([{
        "filename": "pve-ssl.pem", "fingerprint": cert::fingerprint(), "pem": cert::NODE_PEM,
        "subject": format!("/OU=PVE Cluster Node/O=Proxmox Virtual Environment/CN={node}.example.test"),
        "issuer": "/CN=Strata simulator CA/OU=loopback only/O=Strata",
        "notbefore": 1_577_836_800, "notafter": 4_733_510_400_i64,
        "public-key-type": "id-ecPublicKey", "public-key-bits": 256,
        "san": ["127.0.0.1", "localhost", node],
    }])
    .into())
}

fn disk_list(call: &mut Call<'_>) -> Reply {
    let size = call.world.nodes[call.args.must("node")].disk;
    Ok(json!([{
        "devpath": "/dev/vda", "model": "unknown", "vendor": "0x1af4", "serial": "unknown", "wwn": "unknown",
        "type": "unknown", "size": size, "used": "mounted", "mounted": 1, "gpt": 0, "rpm": -1,
        "health": "UNKNOWN", "wearout": "N/A", "osdid": -1, "osdid-list": null,
    }])
    .into())
}

/// Services with what they are.
const SERVICES: &[(&str, &str)] = &[
    ("chrony", "chrony, an NTP client/server"),
    ("corosync", "Corosync Cluster Engine"),
    ("cron", "Regular background program processing daemon"),
    ("ksmtuned", "Kernel Samepage Merging (KSM) Tuning Daemon"),
    ("lxcfs", "FUSE filesystem for LXC"),
    ("postfix", "Postfix Mail Transport Agent"),
    ("proxmox-firewall", "Proxmox nftables firewall"),
    ("pve-cluster", "The Proxmox VE cluster filesystem"),
    ("pve-firewall", "Proxmox VE firewall"),
    ("pve-ha-crm", "PVE Cluster HA Resource Manager Daemon"),
    ("pve-ha-lrm", "PVE Local HA Resource Manager Daemon"),
    ("pve-lxc-syscalld", "Proxmox VE LXC Syscall Daemon"),
    ("pvedaemon", "PVE API Daemon"),
    ("pvefw-logger", "Proxmox VE firewall logger"),
    ("pveproxy", "PVE API Proxy Server"),
    ("pvescheduler", "Proxmox VE scheduler"),
    ("pvestatd", "PVE Status Daemon"),
    ("qmeventd", "PVE Qemu Event Daemon"),
    ("spiceproxy", "PVE SPICE Proxy Server"),
    ("sshd", "OpenBSD Secure Shell server"),
    ("syslog", "System Logging Service"),
    ("systemd-journald", "Journal Service"),
    ("systemd-timesyncd", "Network Time Synchronization"),
];

static SERVICE_NAMES: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| SERVICES.iter().map(|(name, _)| *name).collect());

fn service(name: &str) -> Value {
    let text = SERVICES.iter().find(|(service, _)| *service == name).map_or("", |(_, text)| text);
    json!({
        "name": name, "service": name, "desc": text, "state": "running", "active-state": "active",
        "unit-state": "enabled",
    })
}

fn services(_: &mut Call<'_>) -> Reply {
    Ok(Value::Array(SERVICE_NAMES.iter().map(|name| service(name)).collect()).into())
}

fn versions(_: &mut Call<'_>) -> Reply {
    let package = |name: &str, version: &str| {
        json!({
            "Package": name, "Version": version, "OldVersion": version, "CurrentState": "Installed",
            "Origin": "Proxmox", "Arch": "amd64", "Section": "admin", "Priority": "optional", "Title": name,
        })
    };
    let list = [
        ("pve-manager", "9.1.7"),
        ("qemu-server", "9.1.6"),
        ("libpve-storage-perl", "9.1.1"),
        ("pve-container", "6.1.2"),
        ("pve-qemu-kvm", "10.2.1-1"),
    ];
    Ok(Value::Array(list.iter().map(|(name, version)| package(name, version)).collect()).into())
}

fn appliances(_: &mut Call<'_>) -> Reply {
    Ok(json!([{
        "package": "debian-12-standard", "version": "12.7-1", "os": "debian-12", "section": "system",
        "type": "lxc", "architecture": "amd64", "headline": "Debian 12 Bookworm (standard)",
        "template": "debian-12-standard_12.7-1_amd64.tar.zst",
        "description": "A small Debian system.", "source": "http://download.proxmox.com/images",
        "location": "http://download.proxmox.com/images/system/debian-12-standard_12.7-1_amd64.tar.zst",
    }])
    .into())
}
