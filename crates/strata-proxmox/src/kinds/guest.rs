//! What VMs, templates and containers have in common.

use strata_engine::{Operation, ProviderError};
use strata_resource::{FieldRule, KindTable, MadeFrom, Purpose, RestartGroup, Shown, Spec, Value, fields};

use super::shared;
use crate::client::Client;
use crate::codec::GuestKind;
use crate::{before_change, preflight, snippets};

pub(super) const BUSY: &str = "wait until its task has ended; `strata apply` waits for tasks of its own. If the task died with its hypervisor, `qm unlock VMID` (a container: `pct unlock VMID`) there takes the lock away";

fn removal(_: &Spec, _: bool) -> &'static str {
    "destroyed with its disks"
}

/// What a guest was made from. It stays as it is when that changes.
pub(super) const MADE_FROM: MadeFrom =
    MadeFrom { fields: &["clone", "image"], in_slots: &[("disks", "import")], follows: None };

/// What a guest is to the engine.
pub(super) const GUEST: KindTable = KindTable {
    identity: &["vmid"],
    namespace: "guest",
    proof: "the ownership mark in its notes, with its VMID; the state, with its uuid or hardware address",
    digest_on: "config PUT, resize, move_disk, firewall",
    recovery: "see \"Guests\"",
    shown: Shown {
        removal,
        in_headline: &["mark", "timeouts", "rollout", "snapshot_before", "vmid", "node", "template"],
        first: &[
            "name",
            "clone",
            "image",
            "cpu",
            "memory",
            "disks",
            "rootfs",
            "mounts",
            "efidisk",
            "tpm",
            "cdroms",
            "networks",
            "cloudinit",
            "firewall",
            "power",
        ],
        parts: shared::PARTS,
        reported: &["vmid", "node"],
        ..Shown::USUAL
    },
    recorded_when_begun: true,
    proof_facts: crate::guest::PROOF_FACTS,
    lasting_facts: &["uuid", "hwaddr", "size", "volumes", before_change::FACT],
    reported_facts: &[crate::addresses::FIRST, crate::addresses::ALL],
    reported_through: &["networks", "cloudinit"],
    journal_fields: &["node", "clone"],
    busy: BUSY,
    made_from: Some(MADE_FROM),
    ..KindTable::new("", "", &[])
};

pub(super) static FIELDS: &[FieldRule] = fields! {
    /// its number in the datacenter
    "vmid": Int => Replace [because("the VMID is the guest's identity")];
    /// the hypervisor that it is on
    "node": Text => Migrate;
    /// with `node: any`, the hypervisor that it was put on when it was made: what it is made from is there; never compared
    "home": Text => Computed [unfelt, no_tofu(shared::ONLY_APPLY)];
    /// the line in its notes that says whose it is
    "mark": Text => InPlace [purpose(Purpose::Mark), unfelt];
    /// labels in the interface of Proxmox, lower case
    "tags": List => InPlace [remote("tags"), set, unfelt];
    /// what people wrote about it, without the mark
    "notes": Text => InPlace [remote("description"), default_text(""), unfelt];
    /// starts with its hypervisor
    "onboot": Bool => InPlace [remote("onboot"), off_by_default, unfelt];
    /// Proxmox' own flag against removal
    "protection": Bool => InPlace [remote("protection"), off_by_default, unfelt, purpose(Purpose::Protection)];
    /// when it starts among the others of its hypervisor
    "startup": Map => InPlace [remote("startup"), unfelt];
    /// its place, and seconds to wait after start and stop
    "startup.*": Int => InPlace;
    /// the pool that it is in
    "pool": Text => InPlace [unfelt];
    /// `running` or `stopped`
    "power": Text => InPlace [purpose(Purpose::Power)];
    /// the firewall answers for DHCP
    "firewall.options.dhcp": Bool => InPlace [off_by_default];
    /// the firewall of the guest is on
    "firewall.options.enable": Bool => InPlace [off_by_default];
    /// only its own hardware addresses may send
    "firewall.options.macfilter": Bool => InPlace [on_by_default];
    /// only its own addresses may send
    "firewall.options.ipfilter": Bool => InPlace [off_by_default];
    /// neighbour discovery is let through
    "firewall.options.ndp": Bool => InPlace [on_by_default];
    /// router advertisements may be sent
    "firewall.options.radv": Bool => InPlace [off_by_default];
    /// what happens to incoming traffic that no rule speaks of
    "firewall.options.policy_in": Text => InPlace [default_text("DROP")];
    /// what happens to outgoing traffic that no rule speaks of
    "firewall.options.policy_out": Text => InPlace [default_text("ACCEPT")];
    /// what is logged of incoming traffic
    "firewall.options.log_level_in": Text => InPlace [default_text("nolog")];
    /// what is logged of outgoing traffic
    "firewall.options.log_level_out": Text => InPlace [default_text("nolog")];
    /// rules in their order
    "firewall.rules": List => InPlace;
    /// any other key of Proxmox
    "options.*": Text => Restart [no_tofu(shared::NO_OPTIONS)];
    /// the backup job that it is part of: the job has its VMID; never compared
    "backup": Text => Computed [unfelt, no_tofu("the module of the datacenter has no backup jobs")];
    /// before which changes a snapshot of it is taken, and how many stay; never compared
    "snapshot_before": Map => Computed [unfelt, no_tofu(shared::ONLY_APPLY)];
    /// the guests that it must not be down with, and how it is checked after a restart; never compared
    "rollout": Map => Computed [unfelt, no_tofu(shared::ONLY_APPLY)];
};

/// The guests that must not be down with this one.
pub(super) fn restart_group(spec: &Spec) -> Option<RestartGroup> {
    let rollout = spec.get("rollout")?.as_map()?;
    let name = rollout.get("group")?.as_text()?.to_owned();
    let max = rollout.get("max").and_then(Value::as_int).and_then(|max| usize::try_from(max).ok());
    Some(RestartGroup { name, max_unavailable: max.unwrap_or(1).max(1) })
}

/// Keys that only root may set, and documents that nobody would bring.
pub(super) fn refusals(
    client: &Client,
    operation: &Operation,
    kind: GuestKind,
    all: &[Operation],
) -> Vec<ProviderError> {
    let mut refusals = preflight::forbidden_keys(client, operation, kind);
    refusals.extend(snippets::left_behind(operation, all));
    refusals
}
