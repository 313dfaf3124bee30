//! Guests that high availability manages.

use std::collections::BTreeMap;

use async_trait::async_trait;
use strata_engine::{Operation, ProviderError};
use strata_resource::{KindTable, Shown, Spec, kind};

use super::managed::ManagedKind;
use super::shared::{DATACENTER, MARK_IN_COMMENT, MARKED};
use crate::client::{CallError, Client};
use crate::datacenter::{Family, Job, LiveObject, NextCall, Simple, Unset, digest_of};
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
    unset: Unset::Delete,
    takes_digest: true,
    ..Simple::new("HA resource", "/cluster/ha/resources", &TABLE)
};

/// The privileges of whatever is about high availability.
pub(super) fn needs(operation: &Operation, needs: &mut Needs<'_>) {
    needs.add(&["Sys.Audit"], vec!["/".to_owned()], "look at");
    needs.add(&["Sys.Console"], vec!["/".to_owned()], verb(operation));
}

pub(super) struct HaResource;

#[async_trait]
impl ManagedKind for HaResource {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&Resources)
    }

    fn needs(&self, operation: &Operation, into: &mut Needs<'_>) {
        needs(operation, into);
    }
}

/// The state follows each start and stop of the guest, those of the same plan too: it says nothing about who changed the rest.
struct Resources;

#[async_trait]
impl Family for Resources {
    fn word(&self) -> &'static str {
        ROWS.word()
    }

    fn key(&self, spec: &Spec) -> Option<String> {
        ROWS.key(spec)
    }

    async fn list(
        &self,
        client: &Client,
        asked: &[&Spec],
    ) -> Result<BTreeMap<String, LiveObject>, CallError> {
        let mut found = ROWS.list(client, asked).await?;
        for live in found.values_mut() {
            let mut steady = live.spec.clone();
            steady.remove("kept");
            live.digest = digest_of(&steady);
        }
        Ok(found)
    }

    fn next(&self, job: &Job<'_>, live: Option<&LiveObject>) -> Result<Option<NextCall>, ProviderError> {
        ROWS.next(job, live)
    }
}
