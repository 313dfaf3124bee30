//! Roles.

mod privileges;

use async_trait::async_trait;
use strata_engine::{Finding, Operation, ProviderError, Review};
use strata_resource::{KindTable, Spec, kind};
use strata_state::Action;

pub(super) use self::privileges::{privileges_of, roles};
use super::access::{AccessKind, Going, OwnAccess, StandingAccess, lost};
use super::managed::ManagedKind;
use super::shared::{ADOPT, DATACENTER, NO_MARK};
use crate::client::Client;
use crate::datacenter::{Family, Simple, row_text, spec_text};
use crate::preflight::{Needs, verb};

kind! {
    /// A named set of privileges.
    "role" {
        called: "role {role}",
        identity: &["role"],
        proof: NO_MARK,
        shares: &[ADOPT],
        at_once: true,
        ..DATACENTER
    }
    /// its name
    "role": Text => InPlace [remote("roleid")];
    /// what it allows
    "privileges": List => InPlace [remote("privs"), set];
}

static ROWS: Simple = Simple {
    derived: &["special"],
    reserved: |row| (row_text(row, "special").as_deref() == Some("1")).then_some("it is built into Proxmox"),
    ..Simple::new("role", "/access/roles", &TABLE)
};

pub(super) struct Role;

#[async_trait]
impl ManagedKind for Role {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&ROWS)
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        needs.add(&["Sys.Modify"], vec!["/access".to_owned()], verb(operation));
    }

    async fn preconditions(
        &self,
        client: &Client,
        own: &[&Operation],
        _: Review<'_>,
    ) -> Result<Vec<Finding>, ProviderError> {
        privileges::preconditions(client, own).await
    }

    fn access(&self) -> Option<&'static dyn AccessKind> {
        Some(&Role)
    }
}

impl AccessKind for Role {
    fn harm(&self, own: &OwnAccess<'_>, operation: &Operation) -> Option<String> {
        let role = spec_text(&operation.spec, "role");
        if !own.roles.contains(role) {
            return None;
        }
        if operation.action == Action::Delete {
            return Some(format!("delete the role `{role}`, which it has"));
        }
        let lost = lost(operation, "privileges")?;
        Some(format!("remove {lost} from the role `{role}`, which it has"))
    }

    fn falls(&self, standing: &StandingAccess, going: &Going<'_>, spec: &Spec) -> Vec<String> {
        let role = spec_text(spec, "role");
        standing.entries_of(going, |entry| spec_text(entry, "grants") == role).collect()
    }
}
