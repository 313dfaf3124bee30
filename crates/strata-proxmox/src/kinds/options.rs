//! Options of the whole datacenter.

use async_trait::async_trait;
use strata_engine::Operation;
use strata_resource::{FieldType, KindTable, kind};

use super::managed::ManagedKind;
use super::shared::{ADOPT, DATACENTER};
use crate::datacenter::{Family, Parts, Simple, Unset};
use crate::preflight::Needs;

kind! {
    /// The options of the whole datacenter.
    "options" {
        called: "options of the {options}",
        identity: &["options"],
        proof: "nobody's: a datacenter cannot be without them",
        recovery: "set again, which changes nothing",
        shares: &[ADOPT],
        always_there: true,
        no_tofu: Some("the module of the datacenter has no options"),
        ..DATACENTER
    }
    /// `datacenter`
    "options": Text => InPlace;
    /// the keyboard of consoles
    "keyboard": Text => InPlace [remote("keyboard")];
    /// what consoles open with
    "console": Text => InPlace [remote("console")];
    /// the address that Proxmox sends mail from
    "email_from": Text => InPlace [remote("email_from")];
    /// a proxy for downloads
    "http_proxy": Text => InPlace [remote("http_proxy")];
    /// the first bytes of hardware addresses of new guests
    "mac_prefix": Text => InPlace [remote("mac_prefix"), default_text("BC:24:11")];
    /// how many tasks of one bulk action run at once
    "max_workers": Int => InPlace [remote("max_workers")];
    /// how guests are moved
    "migration": Map => InPlace [remote("migration")];
    /// whether it is encrypted, and the network that is used
    "migration.*": Text => InPlace;
    /// how guests are replicated
    "replication": Map => InPlace [remote("replication")];
    /// whether it is encrypted, and the network that is used
    "replication.*": Text => InPlace;
    /// how the cluster chooses hosts
    "scheduler": Map => InPlace [remote("crs")];
    /// by the number of guests, or by what they are given
    "scheduler.ha": Text => InPlace;
    /// a guest that starts may be put on a better host
    "scheduler.rebalance_on_start": Bool => InPlace [off_by_default];
    /// high availability
    "ha": Map => InPlace [remote("ha")];
    /// what becomes of its guests when their host shuts down
    "ha.shutdown_policy": Text => InPlace;
    /// the VMIDs that Proxmox offers for new guests
    "next_id": Map => InPlace [remote("next-id")];
    /// the first, and the one after the last
    "next_id.*": Int => InPlace;
    /// how tags look
    "tag_style": Map => InPlace [remote("tag-style")];
    /// their form
    "tag_style.shape": Text => InPlace [default_text("circle")];
    /// their order
    "tag_style.ordering": Text => InPlace;
    /// whether upper and lower case differ
    "tag_style.case_sensitive": Bool => InPlace [off_by_default];
    /// the colours of single tags
    "tag_style.colors": Text => InPlace;
    /// how fast disks are copied, in KiB a second
    "bandwidth_limits": Map => InPlace [remote("bwlimit")];
    /// by what is done
    "bandwidth_limits.*": Int => InPlace;
}

const TRANSFER: Parts = &[("type", "type", FieldType::Text), ("network", "network", FieldType::Text)];
const SCHEDULER: Parts =
    &[("ha", "ha", FieldType::Text), ("ha-rebalance-on-start", "rebalance_on_start", FieldType::Bool)];
const HA: Parts = &[("shutdown_policy", "shutdown_policy", FieldType::Text)];
const NEXT_ID: Parts = &[("lower", "lower", FieldType::Int), ("upper", "upper", FieldType::Int)];
const TAG_STYLE: Parts = &[
    ("shape", "shape", FieldType::Text),
    ("ordering", "ordering", FieldType::Text),
    ("case-sensitive", "case_sensitive", FieldType::Bool),
    ("color-map", "colors", FieldType::Text),
];
const LIMITS: Parts = &[
    ("default", "default", FieldType::Int),
    ("clone", "clone", FieldType::Int),
    ("migration", "migration", FieldType::Int),
    ("move", "move", FieldType::Int),
    ("restore", "restore", FieldType::Int),
];

static ROWS: Simple = Simple {
    single: Some("datacenter"),
    unset: Unset::Delete,
    parts: &[
        ("migration", TRANSFER),
        ("replication", TRANSFER),
        ("scheduler", SCHEDULER),
        ("ha", HA),
        ("next_id", NEXT_ID),
        ("tag_style", TAG_STYLE),
        ("bandwidth_limits", LIMITS),
    ],
    ..Simple::new("options of the", "/cluster/options", &TABLE)
};

pub(super) struct DatacenterOptions;

#[async_trait]
impl ManagedKind for DatacenterOptions {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&ROWS)
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        needs.datacenter(operation);
    }
}
