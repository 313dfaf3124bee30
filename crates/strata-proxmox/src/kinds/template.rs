//! A VM that is only cloned.

mod linked;

use async_trait::async_trait;
use strata_engine::{ErrorClass, Finding, Operation, ProviderError, Review};
use strata_resource::{KindTable, MadeFrom, Shape, Shown, Spec, Value, kind};
use strata_state::Action;

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
        create_first: true,
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

    /// A template that was adopted, or deleted since, and that nothing says how to make.
    fn refusals(&self, client: &Client, operation: &Operation, all: &[Operation]) -> Vec<ProviderError> {
        let mut refusals = guest::refusals(client, operation, GuestKind::Qemu, all);
        if operation.action == Action::Create && !has_source(&operation.spec) {
            let message =
                format!("`{}` cannot be made: nothing says what it is made from", operation.address);
            let mut error = ProviderError::new(ErrorClass::BadInput, message).field("image");
            error.nothing_done = true;
            refusals.push(error.hint("name its `image`; a template that was adopted has none"));
        }
        refusals
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

/// Whether one of its disks begins as a copy of something.
fn has_source(spec: &Spec) -> bool {
    let disks = spec.get("disks").and_then(Value::as_map).into_iter().flat_map(|disks| disks.values());
    disks.filter_map(Value::as_map).any(|disk| disk.contains_key("import") || disk.contains_key("volume"))
}
