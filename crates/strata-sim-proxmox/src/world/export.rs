//! Every live object as JSON in a stable order: no times, no digests, no task ids, no secrets. Two runs that did the same
//! thing have equal exports.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::World;
use super::guest::{Config, Guest, Pending};

/// Options whose value is a time.
const TIMES: &[&str] = &["snaptime"];

impl World {
    /// What there is.
    pub fn export(&self) -> Value {
        json!({
            "nodes": self.nodes.values().map(|n| json!({
                "name": n.name, "ip": n.ip, "interfaces": n.ifaces, "staged": n.staged,
                "dns": n.dns, "hosts": n.hosts, "config": n.config, "timezone": n.timezone,
                "disks": n.disks, "repositories": n.repositories, "subscription": n.subscription,
                "certificate": n.certificate.as_ref().map(|own| &own.chain),
            })).collect::<Vec<_>>(),
            "storages": self.storages.values().map(|s| json!({
                "storage": s.id, "type": s.kind, "options": s.props,
            })).collect::<Vec<_>>(),
            "volumes": self.volumes.iter().map(|(place, v)| json!({
                "volid": self.volid(place), "node": place.1, "content": v.content, "format": v.format,
                "size": v.size, "vmid": v.vmid, "notes": v.notes, "protected": v.protected,
                "snapshots": v.snapshots, "sha256": v.sha256,
            })).collect::<Vec<_>>(),
            "guests": self.guests.values().map(|g| self.export_guest(g)).collect::<Vec<_>>(),
            "pools": self.pools,
            "users": self.access.users.iter().map(|(id, u)| (id.clone(), json!({
                "enable": u.enable, "expire": u.expire, "fields": u.fields,
                "tokens": u.tokens.iter().map(|(name, t)| (name.clone(), json!({
                    "privsep": t.privsep, "expire": t.expire, "comment": t.comment,
                }))).collect::<Map<_, _>>(),
            }))).collect::<Map<_, _>>(),
            "groups": self.access.groups,
            "roles": self.access.roles.iter().filter(|(_, r)| !r.special)
                .map(|(id, r)| (id.clone(), json!(r.privs))).collect::<Map<_, _>>(),
            "acl": self.access.acl,
            "domains": self.access.domains,
            "firewall": self.firewall,
            "ipam": self.ipam,
            "cluster": {
                "options": self.cluster.options,
                // A file that was read, or emptied, is no object.
                "files": self.cluster.files.iter().filter(|(_, file)| !file.is_empty()).collect::<BTreeMap<_, _>>(),
            },
        })
    }

    fn export_guest(&self, guest: &Guest) -> Value {
        let pending: BTreeMap<&str, Value> = guest
            .pending
            .iter()
            .map(|(key, change)| {
                let value = match change {
                    Pending::Set(value) => json!({ "set": value }),
                    Pending::Delete { force } => json!({ "delete": true, "force": force }),
                };
                (key.as_str(), value)
            })
            .collect();
        let power = match (guest.power.running, guest.power.paused) {
            (false, _) => "stopped",
            (true, true) => "paused",
            (true, false) => "running",
        };
        json!({
            "vmid": guest.vmid, "node": guest.node, "type": guest.kind.name(), "power": power,
            "config": timeless(&guest.config), "pending": pending,
            "snapshots": guest.snapshots.iter().map(|(name, c)| (name.clone(), json!(timeless(c))))
                .collect::<Map<_, _>>(),
            "pool": self.pool_of(guest.vmid),
        })
    }
}

fn timeless(config: &Config) -> BTreeMap<&str, String> {
    config
        .iter()
        .filter(|(key, _)| !TIMES.contains(&key.as_str()))
        .map(|(key, value)| {
            let value = if key == "meta" {
                value.split(',').filter(|part| !part.starts_with("ctime=")).collect::<Vec<_>>().join(",")
            } else {
                value.clone()
            };
            (key.as_str(), value)
        })
        .collect()
}
