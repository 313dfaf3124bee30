//! Copies of guests on other hosts.

use std::time::Duration;

use async_trait::async_trait;
use strata_engine::{ErrorClass, Operation, Outcome, ProviderError};
use strata_resource::{KindTable, Shown, Spec, kind};
use strata_state::Action;

use super::managed::ManagedKind;
use super::shared::{DATACENTER, MARK_IN_COMMENT, MARKED};
use crate::api::Params;
use crate::datacenter::{Family, Row, ShownBy, Simple, Unset, converge, row_text, spec_text};
use crate::execute::Work;
use crate::preflight::{NamedPlaces, Needs, verb};

kind! {
    /// A copy of a guest's disks on another host.
    "replication" {
        called: "replication {replication} to {copy_node}",
        identity: &["replication"],
        proof: MARK_IN_COMMENT,
        shares: &[MARKED],
        at_once: true,
        shown: Shown { in_headline: &["copy_node", "type"], ..DATACENTER.shown },
        no_tofu: Some("the module of guests has no replication jobs"),
        ..DATACENTER
    }
    /// the VMID of the guest, and the number of the job
    "replication": Text => InPlace [remote("id")];
    /// `local`: to a host of the same cluster
    "type": Text => Replace [remote("type"), because("Proxmox cannot change it")];
    /// the host that the copy is on
    "copy_node": Text => Replace [remote("target"), because("the copy is on another host then: the former one is deleted")];
    /// when, as a calendar event of systemd
    "schedule": Text => InPlace [remote("schedule"), default_text("*/15")];
    /// at most so many MB a second
    "rate": Int => InPlace [remote("rate")];
    /// it runs
    "enabled": Bool => InPlace [inverted("disable"), on_by_default];
}

static ROWS: Simple = Simple {
    comment: Some("comment"),
    derived: &["guest", "jobnum", "source"],
    unset: Unset::Delete,
    is_there: |row| !goes(row),
    ..Simple::new("replication job", "/cluster/replication", &TABLE)
};

/// A job that was deleted is listed until the scheduler has removed the copies.
fn goes(row: &Row) -> bool {
    row.contains_key("remove_job")
}

fn guest(spec: &Spec) -> String {
    let id = spec_text(spec, "replication");
    format!("/vms/{}", id.split('-').next().unwrap_or_default())
}

pub(super) struct Replication;

#[async_trait]
impl ManagedKind for Replication {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&ROWS)
    }

    fn shown_by(&self, spec: &Spec) -> Option<ShownBy> {
        Some(ShownBy::any_of(&["VM.Audit"], guest(spec)))
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        needs.add(&["VM.Audit"], vec![guest(&operation.spec)], "look at");
        needs.add(&["VM.Replicate"], vec![guest(&operation.spec)], verb(operation));
    }

    fn places<'a>(&self, operation: &'a Operation, places: &mut NamedPlaces<'a>) {
        places.add_node(spec_text(&operation.spec, "copy_node"), operation);
    }

    fn remark(&self, operation: &Operation) -> Option<String> {
        let target = spec_text(&operation.spec, "copy_node");
        let remark = || format!("the copy on `{target}` is deleted at the next round of Proxmox' scheduler");
        (operation.action == Action::Delete).then(remark)
    }

    async fn execute(&self, work: &Work<'_>) -> Result<Outcome, ProviderError> {
        // The one that is made may have the id of one that was deleted a moment ago.
        if work.operation.action == Action::Create {
            wait_until_gone(work).await?;
        }
        let outcome = converge::converge(work, &ROWS).await?;
        if work.operation.action == Action::Delete && work.operation.replacement {
            wait_until_gone(work).await?;
        }
        Ok(outcome)
    }
}

/// The scheduler looks once a minute.
const ROUNDS: Duration = Duration::from_secs(180);

/// The new job has the id of the former one, which is listed until its copies are removed.
async fn wait_until_gone(work: &Work<'_>) -> Result<(), ProviderError> {
    let (clock, id) = (work.client.clock(), spec_text(&work.operation.spec, "replication"));
    let begun = clock.monotonic();
    while clock.monotonic() - begun < ROUNDS {
        let listed = work.client.get::<Vec<Row>>(ROWS.list, Params::new()).await;
        let listed = listed.map_err(|error| error.explain("list the replication jobs"))?;
        if !listed.iter().any(|row| goes(row) && row_text(row, "id").as_deref() == Some(id)) {
            return Ok(());
        }
        work.context.progress("waiting until Proxmox' scheduler has removed the former one");
        work.context.may_go_on()?;
        clock.sleep(Duration::from_secs(1)).await;
    }
    let message = format!("replication job `{id}` was deleted, and Proxmox' scheduler has not removed it");
    Err(ProviderError::new(ErrorClass::TaskFailed, message)
        .hint("`pvesr status` on its host says why; apply again when it is gone"))
}
