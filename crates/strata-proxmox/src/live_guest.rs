//! Guests that nobody manages: everything that their configurations say, for whoever adopts them.

use std::collections::BTreeSet;

use futures::stream::{self, StreamExt};
use strata_engine::ProviderError;
use strata_resource::{Kind, Mark, Spec, Value};

use crate::api::{GuestRow, Params};
use crate::client::{CallError, Client};
use crate::codec::{GuestKind, LiveConfig, beyond, decode};
use crate::guest::{Guest, Row, cluster_guests};
use crate::kinds;
use crate::ownership::{describe, taken_over_proof};

/// A guest as it is, with every field that a spec can have.
#[derive(Debug, Clone)]
pub struct LiveGuest {
    pub vmid: u32,
    pub kind: Kind,
    /// A container that others are cloned from: nothing but a VM can be a template of a stack.
    pub is_container_template: bool,
    /// The template that its disks are linked to.
    pub linked_to: Option<u32>,
    pub node: String,
    pub name: Option<String>,
    /// ``VM 9100 `db` on `pve2` ``.
    pub described: String,
    pub spec: Spec,
    pub mark: Option<Mark>,
    pub lock: Option<String>,
    /// Fields whose value waits for a restart.
    pub pending: Vec<String>,
    /// What proves that it is this very guest while it is adopted: the value of [`TAKEN_OVER`](crate::TAKEN_OVER).
    pub proof: String,
    /// What no spec says of it, one line each.
    pub notes: Vec<String>,
}

/// Keys that Proxmox keeps for itself.
const OF_PROXMOX: &[&str] = &[
    "smbios1",
    "vmgenid",
    "meta",
    "parent",
    "snapstate",
    "snaptime",
    "runningmachine",
    "runningcpu",
    "vmstate",
];

/// Keys of old versions: whatever write comes first puts others in their place.
const RENAMED: &[(&str, &str)] = &[("smp", "sockets"), ("cdrom", "ide2")];

/// The raw settings of a container.
const RAW: &str = "lxc";

/// The guests with these VMIDs, or all of them. One that cannot be read is an error of its own.
pub(crate) async fn live_guests(
    client: &Client,
    only: Option<&BTreeSet<u32>>,
) -> Result<Vec<Result<LiveGuest, (u32, ProviderError)>>, ProviderError> {
    let rows = cluster_guests(client).await.map_err(|error| error.explain("list the guests"))?;
    let rows = rows.into_iter().filter(|row| only.is_none_or(|only| only.contains(&row.vmid)));
    let reads: Vec<_> = rows.map(|row| read(client, row)).collect();
    let mut found: Vec<_> = stream::iter(reads).buffer_unordered(client.parallelism()).collect().await;
    found.sort_by_key(|guest| match guest {
        Ok(guest) => guest.vmid,
        Err((vmid, _)) => *vmid,
    });
    Ok(found)
}

async fn read(client: &Client, row: GuestRow) -> Result<LiveGuest, (u32, ProviderError)> {
    let kind = if row.kind.as_deref() == Some("lxc") { GuestKind::Lxc } else { GuestKind::Qemu };
    let guest = Guest { kind, node: row.node.as_deref().unwrap_or_default().to_owned(), vmid: row.vmid };
    let failed = |error: CallError| (row.vmid, error.explain(&format!("read {guest}")));
    let config = guest.config(client).await.map_err(failed)?;
    let firewall = guest.firewall(client).await.map_err(failed)?;
    let [aliases, sets] = ["aliases", "ipset"].map(|list| guest.path(&format!("/firewall/{list}")));
    let aliases: Vec<Row> = client.get(&aliases, Params::new()).await.map_err(failed)?;
    let sets: Vec<Row> = client.get(&sets, Params::new()).await.map_err(failed)?;
    let is_template = config.is_on("template");
    let running = !is_template && guest.is_running(client).await.map_err(failed)?;

    let mut beyond = beyond(kind, &config);
    let mut notes: Vec<String> = beyond
        .parts
        .iter()
        .map(|part| format!("`{part}` has no key in the YAML: it stays as it is"))
        .collect();
    for option in &firewall.unread {
        notes
            .push(format!("the option `{option}` of its firewall has no key in the YAML: it stays as it is"));
    }
    for (what, names) in [("alias", aliases), ("IP set", sets)] {
        for name in names.iter().filter_map(|row| row.get("name")) {
            notes.push(format!(
                "the {what} `{}` of its firewall has no key in the YAML: it stays as it is",
                name.as_str()
            ));
        }
    }
    beyond.keys.retain(|key| !OF_PROXMOX.contains(&key.as_str()));
    let unused: Vec<String> = beyond.keys.iter().filter(|key| key.starts_with("unused")).cloned().collect();
    for key in unused {
        let volume = config.get(&key).unwrap_or_default();
        notes.push(format!("the volume `{volume}` is attached to nothing (`{key}`): it stays as it is"));
        beyond.keys.remove(&key);
    }
    if let Some(raw) = config.get(RAW).filter(|_| beyond.keys.remove(RAW)) {
        let keys: BTreeSet<&str> = raw.lines().filter_map(|line| Some(line.split_once(':')?.0)).collect();
        let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
        notes.push(format!("no API sets its raw settings ({}): they stay as they are", keys.join(", ")));
    }
    // Every container has it, and this is the one that a new one gets.
    if kind == GuestKind::Lxc && config.get("arch") == Some("amd64") {
        beyond.keys.remove("arch");
    }
    if config.get("cipassword").is_some() {
        notes.push("its cloud-init password cannot be read: it stays as it is".to_owned());
    }
    if config.get("parent").is_some() {
        notes.push("it has snapshots: they stay as they are".to_owned());
    }
    for (old, new) in RENAMED.iter().filter(|(old, _)| beyond.keys.remove(*old)) {
        notes.push(format!("Proxmox renames its old key `{old}` to `{new}` when it is next changed"));
    }
    let options: BTreeSet<&str> = beyond.keys.iter().map(String::as_str).collect();
    let decoded = decode(kind, &config, &options);
    let mut spec = decoded.spec;
    if let Some(sockets) = config.get("smp").filter(|_| config.get("sockets").is_none())
        && let (Ok(sockets), Value::Map(cpu)) =
            (sockets.parse(), spec.entry("cpu".to_owned()).or_insert_with(|| Value::Map(Spec::new())))
    {
        cpu.insert("sockets".to_owned(), Value::Int(sockets));
    }
    if is_template {
        spec.insert("template".to_owned(), Value::Bool(true));
    }
    let mark = Mark::split_from_notes(config.get("description").unwrap_or_default()).0;
    spec.insert("vmid".to_owned(), Value::Int(row.vmid.into()));
    spec.insert("node".to_owned(), Value::text(guest.node.as_str()));
    spec.insert("power".to_owned(), Value::text(if running { "running" } else { "stopped" }));
    spec.extend(row.pool.as_deref().map(|pool| ("pool".to_owned(), Value::text(pool))));
    spec.insert("firewall".to_owned(), firewall.into_spec());
    Ok(LiveGuest {
        vmid: row.vmid,
        kind: if is_template && kind == GuestKind::Qemu { kinds::TEMPLATE } else { kind.resource_kind() },
        is_container_template: is_template && kind == GuestKind::Lxc,
        linked_to: linked_to(&config),
        described: describe(&guest, row.name.as_deref()),
        node: guest.node.clone(),
        name: row.name.as_deref().map(str::to_owned),
        mark,
        lock: config.lock.clone().or_else(|| row.lock.as_deref().map(str::to_owned)),
        pending: decoded.pending,
        proof: taken_over_proof(&guest, &config).to_owned(),
        spec,
        notes,
    })
}

/// `tank:base-9000-disk-0/vm-9100-disk-0`: a difference to a disk of VM 9000.
fn linked_to(config: &LiveConfig) -> Option<u32> {
    let volumes = config.keys().filter_map(|(_, value)| value.split(',').next()?.split_once(':'));
    volumes.map(|(_, name)| name).find_map(|name| {
        let (above, _) = name.rsplit_once('/')?;
        let base = above.split('/').find_map(|part| part.strip_prefix("base-"))?;
        base.split('-').next()?.parse().ok()
    })
}
