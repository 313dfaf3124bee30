//! Which notifications go where.

use async_trait::async_trait;
use strata_engine::Operation;
use strata_resource::{KindTable, kind};

use super::managed::ManagedKind;
use super::notification::PATH;
use super::shared::{DATACENTER, MARK_IN_COMMENT, MARKED};
use crate::datacenter::{Family, Simple, Unset};
use crate::preflight::{Needs, verb};

kind! {
    /// Which notifications go where.
    "matcher" {
        called: "notification matcher {matcher}",
        identity: &["matcher"],
        proof: MARK_IN_COMMENT,
        shares: &[MARKED],
        at_once: true,
        no_tofu: Some("the module of the datacenter has no notifications"),
        ..DATACENTER
    }
    /// its name
    "matcher": Text => InPlace [remote("name")];
    /// the endpoints that they go to
    "targets": List => InPlace [remote("target"), set];
    /// how urgent they are
    "severities": List => InPlace [remote("match-severity"), set];
    /// what their fields say
    "match_fields": List => InPlace [remote("match-field"), set];
    /// when they are sent
    "calendar": List => InPlace [remote("match-calendar"), set];
    /// whether all of these must hold, or any
    "mode": Text => InPlace [remote("mode"), default_text("all")];
    /// those for which that does not hold
    "invert": Bool => InPlace [remote("invert-match"), off_by_default];
    /// it is used
    "enabled": Bool => InPlace [inverted("disable"), on_by_default];
}

static ROWS: Simple = Simple {
    comment: Some("comment"),
    derived: &["origin"],
    unset: Unset::DeleteEach,
    arrays: &["targets", "severities", "match_fields", "calendar"],
    ..Simple::new("notification matcher", "/cluster/notifications/matchers", &TABLE)
};

pub(super) struct Matcher;

#[async_trait]
impl ManagedKind for Matcher {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&ROWS)
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        needs.add(&["Mapping.Audit", "Mapping.Modify"], vec![PATH.to_owned()], "look at");
        needs.add(&["Mapping.Modify"], vec![PATH.to_owned()], verb(operation));
    }
}
