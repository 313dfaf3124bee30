//! Names for addresses, in the firewall.

use async_trait::async_trait;
use strata_engine::Operation;
use strata_resource::{KindTable, kind};

use super::managed::ManagedKind;
use super::shared::{DATACENTER, MARK_IN_COMMENT, MARKED, MAY_LOCK_OUT};
use crate::datacenter::{Family, Simple};
use crate::preflight::Needs;

kind! {
    /// A name for an address, in the firewall.
    "alias" {
        called: "alias {alias}",
        identity: &["alias"],
        proof: MARK_IN_COMMENT,
        digest_on: "every change",
        shares: &[MARKED, MAY_LOCK_OUT],
        at_once: true,
        ..DATACENTER
    }
    /// its name
    "alias": Text => InPlace [remote("name")];
    /// the address or network
    "cidr": Text => InPlace [remote("cidr"), always_sent];
}

static ROWS: Simple = Simple {
    comment: Some("comment"),
    derived: &["ipversion"],
    replaces: true,
    takes_digest: true,
    ..Simple::new("alias", "/cluster/firewall/aliases", &TABLE)
};

pub(super) struct Alias;

#[async_trait]
impl ManagedKind for Alias {
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
