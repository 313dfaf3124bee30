//! Jobs that take users and groups over from the directory of a realm.

use async_trait::async_trait;
use strata_engine::Operation;
use strata_resource::{KindTable, kind};

use super::managed::ManagedKind;
use super::shared::{DATACENTER, MARK_IN_COMMENT, MARKED};
use crate::datacenter::{Family, Simple, Unset};
use crate::preflight::{Needs, verb};

kind! {
    /// A job that takes users and groups over from the directory of a realm.
    "realmsync" {
        called: "synchronisation {realm_sync} of realm {realm}",
        identity: &["realm_sync"],
        proof: MARK_IN_COMMENT,
        shares: &[MARKED],
        at_once: true,
        no_tofu: Some("the provider synchronises a realm once, and has no jobs that do"),
        ..DATACENTER
    }
    /// its id
    "realm_sync": Text => InPlace [remote("id")];
    /// the realm
    "realm": Text => Replace [remote("realm"), because("Proxmox cannot change it")];
    /// when, as a calendar event of systemd
    "schedule": Text => InPlace [remote("schedule"), always_sent];
    /// users, groups, or both
    "scope": Text => InPlace [remote("scope")];
    /// users that are new may log in
    "enable_new": Bool => InPlace [remote("enable-new"), on_by_default];
    /// what goes with those that the directory no longer has
    "remove_vanished": Text => InPlace [remote("remove-vanished"), default_text("none")];
    /// it runs
    "enabled": Bool => InPlace [remote("enabled"), on_by_default];
}

static ROWS: Simple = Simple {
    comment: Some("comment"),
    derived: &["type", "last-run", "next-run"],
    unset: Unset::Delete,
    made_at_path: true,
    // What new users may do is shown only of each.
    read_each: true,
    ..Simple::new("synchronisation job", "/cluster/jobs/realm-sync", &TABLE)
};

pub(super) struct RealmSync;

#[async_trait]
impl ManagedKind for RealmSync {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&ROWS)
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        needs.add(&["Sys.Audit"], vec!["/".to_owned()], "look at");
        if operation.action == strata_state::Action::Delete {
            needs.add(&["Sys.Modify"], vec!["/".to_owned()], verb(operation));
            return;
        }
        // A change does not say which realm it is about, so that one of all of them is asked for.
        needs.add(&["Realm.AllocateUser"], vec!["/access/realm".to_owned()], verb(operation));
        needs.add(&["User.Modify"], vec!["/access/groups".to_owned()], verb(operation));
    }
}
