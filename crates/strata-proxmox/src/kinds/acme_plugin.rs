//! How it is proved by DNS to an authority for certificates that a domain is one's own.

use async_trait::async_trait;
use strata_engine::Operation;
use strata_resource::{KindTable, Shown, kind};

use super::managed::ManagedKind;
use super::shared::{ADOPT, DATACENTER, NO_MARK};
use crate::datacenter::{Family, Simple, Unset, row_text};
use crate::preflight::{Needs, verb};

kind! {
    /// How it is proved by DNS that a domain is one's own.
    "acmeplugin" {
        called: "ACME plugin {acme_plugin}",
        identity: &["acme_plugin"],
        proof: NO_MARK,
        digest_on: "every change",
        shares: &[ADOPT],
        at_once: true,
        shown: Shown { in_headline: &["type"], ..DATACENTER.shown },
        no_tofu: Some("the module of the datacenter has no ACME plugins"),
        ..DATACENTER
    }
    /// its id
    "acme_plugin": Text => InPlace [remote("id")];
    /// `dns`
    "type": Text => Replace [remote("type"), because("Proxmox cannot change it")];
    /// the DNS service
    "api": Text => InPlace [remote("api")];
    /// what lets Proxmox change records there
    "credentials": Map => InPlace [remote("data"), write_only];
    /// by name
    "credentials.*": Text => InPlace [write_only];
    /// the hosts that can use it
    "nodes": List => InPlace [remote("nodes"), set];
    /// how many seconds records take to be seen
    "validation_delay": Int => InPlace [remote("validation-delay"), default_int(30)];
    /// it is used
    "enabled": Bool => InPlace [inverted("disable"), on_by_default];
}

static ROWS: Simple = Simple {
    unset: Unset::Delete,
    takes_digest: true,
    lines: &["credentials"],
    listed_as: Some("plugin"),
    reserved: |row| {
        let built_in = row_text(row, "type").as_deref() != Some("dns");
        built_in.then_some("every installation has it")
    },
    ..Simple::new("ACME plugin", "/cluster/acme/plugins", &TABLE)
};

pub(super) struct AcmePlugin;

#[async_trait]
impl ManagedKind for AcmePlugin {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&ROWS)
    }

    /// They are shown with their credentials, so that looking takes as much as changing.
    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        needs.add(&["Sys.Modify"], vec!["/".to_owned()], verb(operation));
    }
}
