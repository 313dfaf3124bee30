//! What each operation needs: a table of privileges by what is done, in terms of Proxmox VE 8.4 and 9.

use strata_engine::Operation;
use strata_resource::{Address, Spec, Value};
use strata_state::Action;

use crate::before_change::SnapshotBefore;
use crate::codec::{GuestKind, create_params, keys_of, privilege_of, storage_of};
use crate::kinds;

/// One of `any_of`, on one of `paths`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Need {
    pub(super) any_of: &'static [&'static str],
    pub(super) paths: Vec<String>,
    /// All of these on this path do as well.
    pub(super) or_all: Option<(Vec<String>, String)>,
    /// Completes "it is needed to …".
    pub(super) purpose: &'static str,
    pub(super) address: Address,
}

/// Seeing what a storage holds, or using it.
pub(crate) const SEE_STORAGE: &[&str] = &["Datastore.Audit", "Datastore.AllocateSpace"];

/// Asking the guest agent; before Proxmox VE 9 the last.
pub(super) const ASK_AGENT: &[&str] = &["VM.GuestAgent.Audit", "VM.GuestAgent.Unrestricted", "VM.Monitor"];
pub(super) const ASK_AGENT_BEFORE_9: &[&str] = &["VM.Monitor"];

/// The privileges of an operation.
pub(super) fn needs_of(operation: &Operation) -> Vec<Need> {
    let mut needs = Needs { address: &operation.address, list: Vec::new() };
    if let Some(managed) = kinds::of(operation.address.kind()) {
        managed.needs(operation, &mut needs);
    }
    needs.list.dedup();
    needs.list
}

/// Completes "it is needed to …".
pub(crate) fn verb(operation: &Operation) -> &'static str {
    match operation.action {
        Action::Create => "make",
        Action::Update => "change",
        Action::Delete => "delete",
    }
}

pub(crate) struct Needs<'a> {
    address: &'a Address,
    list: Vec<Need>,
}

impl Needs<'_> {
    pub(crate) fn add(&mut self, any_of: &'static [&'static str], paths: Vec<String>, purpose: &'static str) {
        self.add_or(any_of, paths, None, purpose);
    }

    pub(crate) fn add_or(
        &mut self,
        any_of: &'static [&'static str],
        paths: Vec<String>,
        or_all: Option<(Vec<String>, String)>,
        purpose: &'static str,
    ) {
        let need = Need { any_of, paths, or_all, purpose, address: self.address.clone() };
        if !self.list.contains(&need) {
            self.list.push(need);
        }
    }

    /// Something of the whole datacenter.
    pub(crate) fn datacenter(&mut self, operation: &Operation) {
        self.add(&["Sys.Audit"], vec!["/".to_owned()], "look at");
        self.add(&["Sys.Modify"], vec!["/".to_owned()], verb(operation));
    }

    /// A setting of a host.
    pub(crate) fn host(&mut self, operation: &Operation, node: &str) {
        let node = vec![format!("/nodes/{node}")];
        self.add(&["Sys.Audit"], node.clone(), "look at");
        self.add(&["Sys.Modify"], node, verb(operation));
    }

    pub(crate) fn guest(&mut self, operation: &Operation, kind: GuestKind) {
        match operation.action {
            Action::Create => self.create(operation, kind),
            Action::Update => self.update(operation, kind),
            Action::Delete => self.delete(operation),
        }
    }

    fn create(&mut self, operation: &Operation, kind: GuestKind) {
        let spec = &operation.spec;
        let guest = guest_paths(spec);
        self.add(&["VM.Audit"], guest.clone(), "look at");
        self.add(&["VM.Allocate"], guest.clone(), "create");
        if let Some(source) = spec.get("clone").and_then(|clone| clone.as_map()?.get("template")?.as_int()) {
            self.add(&["VM.Clone"], vec![format!("/vms/{source}")], "clone");
        }
        let params = create_params(kind, spec);
        // A value that cannot be written is told when the operation is done.
        for (key, value) in params.iter().flat_map(|params| params.pairs()) {
            self.key(kind, key, value, &guest);
        }
        self.storages(spec);
        self.networks(spec);
        self.mappings(spec);
        if let Some(pool) = spec.get("pool").and_then(Value::as_text) {
            // To make pools is not to see them.
            self.add(&["Pool.Audit"], vec![format!("/pool/{pool}")], "see the pool of");
        }
        if spec.contains_key("firewall") {
            self.add(&["VM.Config.Network"], guest.clone(), "set the firewall of");
        }
        if let Some(before) = SnapshotBefore::of(spec).filter(SnapshotBefore::backs_up) {
            self.add(&["VM.Backup"], guest.clone(), "back up");
            if let Some(storage) = before.storage {
                self.add(&["Datastore.AllocateSpace"], vec![format!("/storage/{storage}")], "back up");
            }
        }
        if text(spec, "power") == "running" {
            self.add(&["VM.PowerMgmt"], guest, "start");
        }
    }

    fn update(&mut self, operation: &Operation, kind: GuestKind) {
        let spec = &operation.spec;
        let guest = guest_paths(spec);
        self.add(&["VM.Audit"], guest.clone(), "look at");
        for change in &operation.changes {
            let path: Vec<&str> = change.path.keys().iter().map(String::as_str).collect();
            match path[..] {
                ["node"] => self.add(&["VM.Migrate"], guest.clone(), "move"),
                ["power"] => self.add(&["VM.PowerMgmt"], guest.clone(), "start or stop"),
                ["firewall", ..] => self.add(&["VM.Config.Network"], guest.clone(), "set the firewall of"),
                ["template"] => self.add(&["VM.Allocate"], guest.clone(), "make a template of"),
                ["pool"] => {
                    self.add(&["VM.Allocate"], guest.clone(), "change the pool of");
                    for pool in
                        [&change.before, &change.after].into_iter().flatten().filter_map(Value::as_text)
                    {
                        let pool = vec![format!("/pool/{pool}")];
                        self.add(&["Pool.Audit"], pool.clone(), "see the pool of");
                        self.add(&["Pool.Allocate"], pool, "change the pool of");
                    }
                }
                ["disks" | "mounts", _, "size" | "storage"]
                | ["rootfs" | "efidisk" | "tpm", "size" | "storage"] => {
                    self.add(&["VM.Config.Disk"], guest.clone(), "change the disks of");
                    self.storages(spec);
                }
                ["disks" | "mounts" | "efidisk" | "tpm" | "cloudinit", ..] => self.storages(spec),
                ["networks", ..] => self.networks(spec),
                ["pci" | "usb", ..] => self.mappings(spec),
                _ => {}
            }
            for key in keys_of(kind, change, spec) {
                self.key(kind, &key, "", &guest);
            }
        }
        if SnapshotBefore::of(spec).is_some_and(|before| before.takes_snapshots()) {
            self.add(&["VM.Snapshot"], guest.clone(), "take snapshots of");
        }
        if operation.restart {
            self.add(&["VM.PowerMgmt"], guest.clone(), "restart");
            let check = spec.get("rollout").and_then(|rollout| rollout.as_map()?.get("check")?.as_map());
            if check.is_some_and(|check| check.contains_key("agent")) {
                self.add(ASK_AGENT, guest, "ask the guest agent of");
            }
        }
    }

    fn delete(&mut self, operation: &Operation) {
        let guest = guest_paths(&operation.spec);
        self.add(&["VM.Audit"], guest.clone(), "look at");
        self.add(&["VM.Allocate"], guest.clone(), "delete");
        let live = operation.observed.as_ref().map_or(&operation.spec, |observed| &observed.spec);
        if text(live, "power") == "running" {
            self.add(&["VM.PowerMgmt"], guest, "stop");
        }
    }

    /// The privilege of one key of the configuration.
    fn key(&mut self, kind: GuestKind, key: &str, value: &str, guest: &[String]) {
        let cdrom =
            kind == GuestKind::Qemu && (value.contains("media=cdrom") || value.ends_with(":cloudinit"));
        match privilege_of(kind, key) {
            Some("VM.Config.Disk") if cdrom => {
                self.add(&["VM.Config.CDROM"], guest.to_vec(), "configure");
                if value.ends_with(":cloudinit") {
                    self.add(&["VM.Config.Disk"], guest.to_vec(), "configure");
                    self.add(&["VM.Config.Cloudinit"], guest.to_vec(), "configure");
                }
                if let Some(storage) = storage_of(value).filter(|_| !value.ends_with(":cloudinit")) {
                    self.add(SEE_STORAGE, vec![format!("/storage/{storage}")], "use an ISO for");
                }
            }
            Some("VM.Config.CPU") => self.add(&["VM.Config.CPU"], guest.to_vec(), "configure"),
            Some("VM.Config.Memory") => self.add(&["VM.Config.Memory"], guest.to_vec(), "configure"),
            Some("VM.Config.HWType") => self.add(&["VM.Config.HWType"], guest.to_vec(), "configure"),
            Some("VM.Config.Network") => self.add(&["VM.Config.Network"], guest.to_vec(), "configure"),
            Some("VM.Config.Disk") => self.add(&["VM.Config.Disk"], guest.to_vec(), "configure"),
            Some("VM.Config.Cloudinit") => {
                self.add(&["VM.Config.Cloudinit", "VM.Config.Network"], guest.to_vec(), "configure");
            }
            Some("VM.Allocate") => self.add(&["VM.Allocate"], guest.to_vec(), "configure"),
            // Raw options are not in the table; most are this.
            _ => self.add(&["VM.Config.Options"], guest.to_vec(), "configure"),
        }
        if key == "startup" && kind == GuestKind::Qemu {
            // The order of start concerns all guests of a host.
            self.add(&["Sys.Modify"], vec!["/".to_owned()], "set the start order of");
        }
        if let Some(source) =
            value.split(',').find_map(|part| part.strip_prefix("import-from=")).and_then(storage_of)
        {
            self.add(SEE_STORAGE, vec![format!("/storage/{source}")], "import an image for");
        }
        if let Some(storage) = storage_of(value).filter(|_| key == "ostemplate") {
            self.add(SEE_STORAGE, vec![format!("/storage/{storage}")], "use a container template for");
        }
    }

    /// Space on every storage that the spec puts a volume on.
    fn storages(&mut self, spec: &Spec) {
        for storage in storages_in(spec) {
            self.add(&["Datastore.AllocateSpace"], vec![format!("/storage/{storage}")], "make the disks of");
        }
    }

    fn networks(&mut self, spec: &Spec) {
        for (bridge, vlan) in bridges_in(spec) {
            let mut paths =
                vec![format!("/sdn/zones/localnetwork/{bridge}"), format!("/sdn/zones/*/{bridge}")];
            paths.extend(vlan.map(|vlan| format!("/sdn/zones/localnetwork/{bridge}/{vlan}")));
            self.add(&["SDN.Use"], paths, "connect");
        }
    }

    fn mappings(&mut self, spec: &Spec) {
        for (field, kind) in [("pci", "pci"), ("usb", "usb")] {
            for mapping in slots(spec, field).filter_map(|slot| slot.get("mapping")?.as_text()) {
                self.add(&["Mapping.Use"], vec![format!("/mapping/{kind}/{mapping}")], "pass a device to");
            }
        }
    }
}

fn text<'s>(spec: &'s Spec, field: &str) -> &'s str {
    spec.get(field).and_then(Value::as_text).unwrap_or_default()
}

/// Rights on a pool are rights on its guests.
fn guest_paths(spec: &Spec) -> Vec<String> {
    let vmid = spec.get("vmid").and_then(Value::as_int).unwrap_or_default();
    let mut paths = vec![format!("/vms/{vmid}")];
    paths.extend(spec.get("pool").and_then(Value::as_text).map(|pool| format!("/pool/{pool}")));
    paths
}

fn slots<'s>(spec: &'s Spec, field: &str) -> impl Iterator<Item = &'s Spec> {
    spec.get(field)
        .and_then(Value::as_map)
        .into_iter()
        .flat_map(|slots| slots.values())
        .filter_map(Value::as_map)
}

/// The storages on which a guest has volumes, each once.
pub(super) fn storages_in(spec: &Spec) -> Vec<&str> {
    let single =
        ["efidisk", "tpm", "rootfs", "clone"].into_iter().filter_map(|field| spec.get(field)?.as_map());
    let drive = spec.get("cloudinit").and_then(|cloudinit| cloudinit.as_map()?.get("drive")?.as_map());
    let volumes = slots(spec, "disks").chain(slots(spec, "mounts")).chain(single).chain(drive);
    let mut storages: Vec<&str> = volumes.filter_map(|volume| volume.get("storage")?.as_text()).collect();
    storages.sort_unstable();
    storages.dedup();
    storages
}

/// The bridges that a guest is connected to, with its VLAN there.
pub(super) fn bridges_in(spec: &Spec) -> Vec<(&str, Option<i64>)> {
    let net = |net: &'_ Spec| net.get("vlan").and_then(Value::as_int);
    slots(spec, "networks").filter_map(|slot| Some((slot.get("bridge")?.as_text()?, net(slot)))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;
    use strata_resource::{FieldChange, FieldPath, Lineage};

    use super::super::{Privilege, required_role};
    use super::*;
    use crate::api::Version;

    fn operation(action: Action, address: &str, spec: serde_json::Value) -> Operation {
        Operation {
            action,
            address: crate::kinds::address(address),
            target: "pve".into(),
            lineage: Lineage::derive("r", "k"),
            spec: serde_json::from_value(spec).unwrap(),
            recorded: None,
            observed: None,
            changes: Vec::new(),
            restart: false,
            replacement: false,
            awaited: false,
            payload: None,
        }
    }

    fn role(operations: &[Operation]) -> Vec<&'static str> {
        required_role(operations, false, None).into_iter().map(Privilege::as_str).collect()
    }

    #[test]
    fn a_role_asks_agents_only_where_an_address_is_not_written() {
        let ask = |asks: bool, version: Option<&str>| {
            let vm = json!({"vmid": 9100, "node": "pve1", "agent": {"enabled": true}});
            let version = version.map(|version| Version { version: version.into(), release: String::new() });
            let role = required_role(&[operation(Action::Create, "web/vm/a", vm)], asks, version.as_ref());
            let asking = role.into_iter().map(Privilege::as_str);
            asking
                .filter(|name| name.starts_with("VM.GuestAgent") || *name == "VM.Monitor")
                .collect::<String>()
        };
        assert_eq!(ask(true, None), "VM.GuestAgent.Audit", "nobody could be asked for the version");
        assert_eq!(ask(true, Some("9.1.7")), "VM.GuestAgent.Audit");
        assert_eq!(ask(true, Some("10.0.1")), "VM.GuestAgent.Audit");
        assert_eq!(ask(true, Some("8.4.14")), "VM.Monitor");
        assert_eq!(ask(false, Some("8.4.14")), "");
    }

    #[test]
    fn a_role_has_what_the_operations_need_and_no_more() {
        let vm = json!({"vmid": 9100, "node": "pve1", "name": "a", "cpu": {"cores": 1}, "power": "running",
            "disks": {"scsi0": {"storage": "local-lvm", "size": 1 << 30}}, "networks": {"net0": {"bridge": "vmbr0"}}});
        assert_eq!(
            role(&[operation(Action::Create, "web/vm/a", vm)]),
            [
                "Datastore.AllocateSpace",
                "SDN.Use",
                "VM.Allocate",
                "VM.Audit",
                "VM.Config.CPU",
                "VM.Config.Disk",
                "VM.Config.Network",
                "VM.Config.Options",
                "VM.PowerMgmt"
            ]
        );
        let image = json!({"volume": "local:iso/a.iso", "storage": "local", "node": "pve1"});
        assert_eq!(
            role(&[operation(Action::Create, "web/image/a", image.clone())]),
            ["Datastore.AllocateTemplate", "Datastore.Audit", "Sys.AccessNetwork"]
        );
        assert_eq!(
            role(&[operation(Action::Delete, "web/image/a", image)]),
            ["Datastore.Allocate", "Datastore.Audit"]
        );
    }

    #[test]
    fn an_update_needs_only_what_it_changes() {
        let mut update = operation(
            Action::Update,
            "web/vm/a",
            json!({"vmid": 9100, "cpu": {"cores": 2}, "memory": {"size": 1}}),
        );
        update.changes = vec![FieldChange {
            path: FieldPath::dotted("cpu.cores"),
            before: Some(Value::Int(1)),
            after: Some(Value::Int(2)),
            drift: false,
        }];
        assert_eq!(role(&[update]), ["VM.Audit", "VM.Config.CPU"]);
    }

    #[test]
    fn rights_on_the_pool_are_enough() {
        let vm = json!({"vmid": 9100, "node": "pve1", "pool": "prod"});
        let needs = needs_of(&operation(Action::Create, "web/vm/a", vm));
        let allocate = needs.iter().find(|need| need.any_of == ["VM.Allocate"]).unwrap();
        assert_eq!(allocate.paths, ["/vms/9100", "/pool/prod"]);
        let paths: BTreeSet<&str> =
            needs.iter().flat_map(|need| need.paths.iter().map(String::as_str)).collect();
        assert_eq!(paths.len(), 2);
    }
}
