//! Groups of users.

use async_trait::async_trait;
use strata_engine::Operation;
use strata_resource::{KindTable, Spec, kind};
use strata_state::Action;

use super::access::{AccessKind, Going, OwnAccess, StandingAccess, is_for, texts};
use super::managed::ManagedKind;
use super::shared::{DATACENTER, MARK_IN_COMMENT, MARKED};
use super::user;
use crate::datacenter::{Family, ShownBy, Simple, spec_text};
use crate::preflight::{Needs, verb};

kind! {
    /// A group of users.
    "group" {
        called: "group {group}",
        identity: &["group"],
        proof: MARK_IN_COMMENT,
        shares: &[MARKED],
        at_once: true,
        ..DATACENTER
    }
    /// its name
    "group": Text => InPlace [remote("groupid")];
}

static ROWS: Simple = Simple {
    comment: Some("comment"),
    // Its members are told with each user.
    derived: &["users"],
    ..Simple::new("group", "/access/groups", &TABLE)
};

pub(super) struct Group;

#[async_trait]
impl ManagedKind for Group {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&ROWS)
    }

    fn shown_by(&self, spec: &Spec) -> Option<ShownBy> {
        let path = format!("/access/groups/{}", spec_text(spec, "group"));
        Some(ShownBy::any_of(&["Sys.Audit", "User.Modify", "Group.Allocate"], path))
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        let groups = vec!["/access/groups".to_owned()];
        needs.add(&["Sys.Audit", "Group.Allocate"], groups.clone(), "look at");
        needs.add(&["Group.Allocate"], groups, verb(operation));
    }

    fn access(&self) -> Option<&'static dyn AccessKind> {
        Some(&Group)
    }
}

impl AccessKind for Group {
    fn harm(&self, own: &OwnAccess<'_>, operation: &Operation) -> Option<String> {
        let group = spec_text(&operation.spec, "group");
        let goes = operation.action == Action::Delete && own.groups.contains(group);
        goes.then(|| format!("delete the group `{group}`, which it is in"))
    }

    fn falls(&self, standing: &StandingAccess, going: &Going<'_>, spec: &Spec) -> Vec<String> {
        let group = spec_text(spec, "group");
        let mut falls: Vec<String> = standing.entries_of(going, is_for("group", group)).collect();
        let members = standing.users.iter().filter(|(name, user)| {
            texts(&user.spec, "groups").contains(group)
                && !going.has(user::KIND, name)
                && !user::leaves(going.operations, name, group)
        });
        falls.extend(members.map(|(name, _)| format!("the membership of `{name}`")));
        falls
    }
}
