//! Where high availability may put guests.

use async_trait::async_trait;
use strata_engine::Operation;
use strata_resource::{KindTable, Shown, kind};

use super::ha_resource;
use super::managed::ManagedKind;
use super::shared::{DATACENTER, MARK_IN_COMMENT, MARKED};
use crate::datacenter::{Family, Simple, Unset};
use crate::preflight::Needs;

kind! {
    /// A rule about where high availability may put guests.
    "harule" {
        called: "HA rule {ha_rule}, {type}",
        identity: &["ha_rule"],
        proof: MARK_IN_COMMENT,
        digest_on: "every change",
        shares: &[MARKED],
        at_once: true,
        shown: Shown { in_headline: &["type"], ..DATACENTER.shown },
        no_tofu: Some("the module of guests has no high availability"),
        ..DATACENTER
    }
    /// its id
    "ha_rule": Text => InPlace [remote("rule")];
    /// `node-affinity` or `resource-affinity`
    "type": Text => Replace [remote("type"), always_sent, because("Proxmox cannot change it")];
    /// the guests, `vm:` or `ct:` and their VMIDs
    "members": List => InPlace [remote("resources"), set];
    /// the hosts that they belong on, with priorities
    "nodes": List => InPlace [remote("nodes"), set];
    /// never on any other host
    "strict": Bool => InPlace [remote("strict"), off_by_default];
    /// `positive` keeps them together, `negative` apart
    "affinity": Text => InPlace [remote("affinity")];
    /// it applies
    "enabled": Bool => InPlace [inverted("disable"), on_by_default];
}

static ROWS: Simple = Simple {
    comment: Some("comment"),
    derived: &["order"],
    unset: Unset::Delete,
    takes_digest: true,
    ..Simple::new("HA rule", "/cluster/ha/rules", &TABLE)
};

pub(super) struct HaRule;

#[async_trait]
impl ManagedKind for HaRule {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&ROWS)
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        ha_resource::needs(operation, needs);
    }
}
