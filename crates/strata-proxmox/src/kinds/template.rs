//! A VM that is only cloned.

mod linked;

use async_trait::async_trait;
use strata_engine::{Finding, Operation, ProviderError, Review};
use strata_resource::{KindTable, MadeFrom, Shape, Shown, kind};

use super::guest::{self, GUEST};
use super::managed::ManagedKind;
use super::vm;
use crate::client::Client;
use crate::codec::GuestKind;
use crate::preflight::Needs;

kind! {
    /// A template that VMs are cloned from.
    "template" {
        called: "template {vmid} on {node}",
        recovery: "as a VM; then converted to a template if it is not one yet",
        shares: &[vm::FIELDS, guest::FIELDS],
        made_from: Some(MadeFrom {
            follows: Some("its image changed: a template is what it was made from"),
            ..guest::MADE_FROM
        }),
        shown: Shown { shape: Shape::Template, ..GUEST.shown },
        ..GUEST
    }
}

pub(super) struct Template;

#[async_trait]
impl ManagedKind for Template {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn guest(&self) -> Option<GuestKind> {
        Some(GuestKind::Qemu)
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        needs.guest(operation, GuestKind::Qemu);
    }

    async fn preconditions(
        &self,
        client: &Client,
        own: &[&Operation],
        review: Review<'_>,
    ) -> Result<Vec<Finding>, ProviderError> {
        linked::preconditions(client, own, review.operations).await
    }
}
