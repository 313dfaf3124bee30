//! Pools.

mod members;

use async_trait::async_trait;
use strata_engine::{Finding, Operation, ProviderError, Review};
use strata_resource::{KindTable, Spec, kind};

use super::managed::ManagedKind;
use super::shared::{DATACENTER, MARK_IN_COMMENT, MARKED};
use crate::client::Client;
use crate::datacenter::{Family, PlannedPlaces, ShownBy, Simple, spec_text};
use crate::preflight::{Needs, verb};

kind! {
    /// A pool of guests and storages.
    "pool" {
        called: "pool {pool}",
        identity: &["pool"],
        proof: MARK_IN_COMMENT,
        shares: &[MARKED],
        at_once: true,
        ..DATACENTER
    }
    /// its name
    "pool": Text => InPlace [remote("poolid")];
}

static ROWS: Simple = Simple {
    comment: Some("comment"),
    // A pool within another has a slash in its name.
    id_in_path: false,
    ..Simple::new("pool", "/pools", &TABLE)
};

fn path(spec: &Spec) -> String {
    format!("/pool/{}", spec_text(spec, "pool"))
}

pub(super) struct Pool;

#[async_trait]
impl ManagedKind for Pool {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&ROWS)
    }

    fn shown_by(&self, spec: &Spec) -> Option<ShownBy> {
        Some(ShownBy::any_of(&["Pool.Audit"], path(spec)))
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        let pool = path(&operation.spec);
        needs.add(&["Pool.Audit"], vec![pool.clone()], "look at");
        needs.add(&["Pool.Allocate"], vec![pool], verb(operation));
    }

    fn provides(&self, spec: &Spec, planned: &mut PlannedPlaces) {
        planned.add_pool(spec_text(spec, "pool"));
    }

    async fn preconditions(
        &self,
        client: &Client,
        own: &[&Operation],
        review: Review<'_>,
    ) -> Result<Vec<Finding>, ProviderError> {
        members::preconditions(client, own, review.operations).await
    }
}
