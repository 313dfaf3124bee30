//! The services of a node: what they are, and commands to them. They always run.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Param, Reply, Route, get, post, text};
use crate::endpoints::index::subdirs;
use crate::task::{Step, work};

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

/// Without these the API would not answer any more.
const ESSENTIAL: &[&str] = &["pveproxy", "pvedaemon", "pve-cluster"];

static NAMES: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| SERVICES.iter().map(|(name, _)| *name).collect());

pub fn routes() -> Vec<Route> {
    let audit = || on("/nodes/{node}", &["Sys.Audit"]);
    let modify = || on("/nodes/{node}", &["Sys.Modify"]);
    let own = || vec![usual::node(), service()];
    vec![
        get("/nodes/{node}/services", audit(), vec![usual::node()], |_| {
            Ok(Value::Array(NAMES.iter().map(|name| row(name)).collect()).into())
        }),
        get("/nodes/{node}/services/{service}", audit(), own(), |_| {
            subdirs(&["state", "start", "stop", "restart", "reload"])
        })
        .anywhere(),
        get("/nodes/{node}/services/{service}/state", audit(), own(), |call| {
            Ok(row(call.args.must("service")).into())
        }),
        post("/nodes/{node}/services/{service}/start", modify(), own(), |call| command(call, "start")),
        post("/nodes/{node}/services/{service}/stop", modify(), own(), |call| command(call, "stop")),
        post("/nodes/{node}/services/{service}/restart", modify(), own(), |call| command(call, "restart")),
        post("/nodes/{node}/services/{service}/reload", modify(), own(), |call| command(call, "reload")),
    ]
}

fn service() -> Param {
    text("service").one_of(&NAMES)
}

fn row(name: &str) -> Value {
    let text = SERVICES.iter().find(|(service, _)| *service == name).map_or("", |(_, text)| text);
    json!({
        "name": name, "service": name, "desc": text, "state": "running", "active-state": "active",
        "unit-state": "enabled",
    })
}

fn command(call: &mut Call<'_>, command: &'static str) -> Reply {
    let (node, service) = (call.node(), call.args.must("service").to_owned());
    let id = service.clone();
    let work = work(move |_, _| {
        if command == "stop" && ESSENTIAL.contains(&service.as_str()) {
            return Err(format!("invalid service cmd '{service} stop': refusing to stop essential service!"));
        }
        Ok(Step::wait(1.0, |_, _| Ok(Step::Done)))
    });
    Ok(call.spawn(&node, &format!("srv{command}"), id, work).into())
}
