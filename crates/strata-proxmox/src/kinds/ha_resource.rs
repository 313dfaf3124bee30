//! Guests that high availability manages.

use strata_engine::Operation;
use strata_resource::{KindTable, Shown, kind};

use super::managed::ManagedKind;
use super::shared::{DATACENTER, MARK_IN_COMMENT, MARKED};
use crate::datacenter::{Family, Simple, Unset};
use crate::preflight::{Needs, verb};

kind! {
    /// A guest that high availability manages.
    "ha" {
        called: "high availability of {ha}",
        identity: &["ha"],
        proof: MARK_IN_COMMENT,
        digest_on: "every change",
        shares: &[MARKED],
        at_once: true,
        shown: Shown { removal: |_, _| "no longer managed; the guest stays as it is", ..DATACENTER.shown },
        no_tofu: Some("the module of guests has no high availability"),
        ..DATACENTER
    }
    /// the guest, `vm:` or `ct:` and its VMID
    "ha": Text => InPlace [remote("sid")];
    /// what it is kept in
    "kept": Text => InPlace [remote("state"), default_text("started")];
    /// how often a start is tried again on the same host
    "max_restart": Int => InPlace [remote("max_restart"), default_int(1)];
    /// how often it is tried on another host
    "max_relocate": Int => InPlace [remote("max_relocate"), default_int(1)];
    /// moved back to the host that its rules prefer
    "failback": Bool => InPlace [remote("failback"), on_by_default];
}

static ROWS: Simple = Simple {
    comment: Some("comment"),
    derived: &["type"],
    unset: Unset::Delete,
    takes_digest: true,
    // It follows each start and stop of the guest, those of the same plan too.
    unsteady: &["kept"],
    ..Simple::new("HA resource", "/cluster/ha/resources", &TABLE)
};

/// The privileges of whatever is about high availability.
pub(super) fn needs(operation: &Operation, needs: &mut Needs<'_>) {
    needs.add(&["Sys.Audit"], vec!["/".to_owned()], "look at");
    needs.add(&["Sys.Console"], vec!["/".to_owned()], verb(operation));
}

pub(super) struct HaResource;

impl ManagedKind for HaResource {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&ROWS)
    }

    fn needs(&self, operation: &Operation, into: &mut Needs<'_>) {
        needs(operation, into);
    }
}
