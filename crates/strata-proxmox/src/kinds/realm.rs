//! Where users come from.

use async_trait::async_trait;
use strata_engine::Operation;
use strata_resource::{KindTable, Shown, Spec, kind};
use strata_state::Action;

use super::access::{AccessKind, Going, OwnAccess, StandingAccess};
use super::managed::ManagedKind;
use super::shared::{DATACENTER, MARK_IN_COMMENT, MARKED};
use super::user;
use crate::datacenter::{Family, Simple, Unset, row_text, spec_text};
use crate::preflight::{Needs, verb};

kind! {
    /// A realm: where users come from.
    "realm" {
        called: "realm {realm}, {type}",
        identity: &["realm"],
        proof: MARK_IN_COMMENT,
        digest_on: "every change",
        shares: &[MARKED],
        at_once: true,
        shown: Shown { in_headline: &["type"], ..DATACENTER.shown },
        no_tofu: Some("the module of the datacenter has no realms"),
        ..DATACENTER
    }
    /// its name
    "realm": Text => InPlace [remote("realm")];
    /// `ldap`, `ad` or `openid`
    "type": Text => Replace [remote("type"), because("its users would come from elsewhere")];
    /// the server of a directory
    "server": Text => InPlace [remote("server1")];
    /// the server that is asked if the first one does not answer
    "fallback_server": Text => InPlace [remote("server2")];
    /// its port
    "port": Int => InPlace [remote("port")];
    /// how it is reached
    "mode": Text => InPlace [remote("mode"), default_text("ldap")];
    /// its certificate is checked
    "verify": Bool => InPlace [remote("verify"), off_by_default];
    /// ad: the domain
    "domain": Text => InPlace [remote("domain")];
    /// where users are looked for
    "base_dn": Text => InPlace [remote("base_dn")];
    /// the attribute that is the name of a user
    "user_attribute": Text => InPlace [remote("user_attr")];
    /// who Proxmox logs in as
    "bind_dn": Text => InPlace [remote("bind_dn")];
    /// their password
    "password": Text => InPlace [remote("password"), write_only];
    /// which users
    "filter": Text => InPlace [remote("filter")];
    /// where groups are looked for
    "group_dn": Text => InPlace [remote("group_dn")];
    /// which groups
    "group_filter": Text => InPlace [remote("group_filter")];
    /// attributes of users
    "sync_attributes": Text => InPlace [remote("sync_attributes")];
    /// openid: the URL of the provider
    "issuer_url": Text => InPlace [remote("issuer-url")];
    /// openid: what Proxmox is called there
    "client_id": Text => InPlace [remote("client-id")];
    /// openid: its key
    "client_key": Text => InPlace [remote("client-key"), write_only];
    /// openid: the claim that is the name of a user
    "username_claim": Text => Replace [remote("username-claim"), because("Proxmox cannot change it")];
    /// openid: what is asked for
    "scopes": Text => InPlace [remote("scopes"), default_text("email profile")];
    /// openid: users are made when they log in for the first time
    "autocreate": Bool => InPlace [remote("autocreate"), off_by_default];
    /// it is chosen where somebody says nothing
    "preselected": Bool => InPlace [remote("default"), off_by_default];
}

static ROWS: Simple = Simple {
    comment: Some("comment"),
    unset: Unset::Delete,
    takes_digest: true,
    read_each: true,
    reserved: |row| {
        let name = row_text(row, "realm");
        matches!(name.as_deref(), Some("pam" | "pve")).then_some("every installation has it")
    },
    ..Simple::new("realm", "/access/domains", &TABLE)
};

pub(super) struct Realm;

#[async_trait]
impl ManagedKind for Realm {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&ROWS)
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        let path = || vec!["/access/realm".to_owned()];
        needs.add(&["Realm.Allocate", "Sys.Audit"], path(), "look at");
        needs.add(&["Realm.Allocate"], path(), verb(operation));
    }

    fn access(&self) -> Option<&'static dyn AccessKind> {
        Some(&Realm)
    }
}

/// Whether somebody logs in by a realm.
fn is_of(user: &str, realm: &str) -> bool {
    user.rsplit_once('@').is_some_and(|(_, own)| own == realm)
}

impl AccessKind for Realm {
    fn harm(&self, own: &OwnAccess<'_>, operation: &Operation) -> Option<String> {
        let realm = spec_text(&operation.spec, "realm");
        let harms = operation.action == Action::Delete && is_of(own.user, realm);
        harms.then(|| format!("delete the realm of the user `{}`", own.user))
    }

    fn falls(&self, standing: &StandingAccess, going: &Going<'_>, spec: &Spec) -> Vec<String> {
        let realm = spec_text(spec, "realm");
        let users = standing.users.keys().filter(|name| is_of(name, realm));
        users
            .filter(|name| !going.has(user::KIND, name))
            .map(|name| format!("the login of `{name}`"))
            .collect()
    }
}
