//! Servers that keep the addresses of software-defined networks.

use async_trait::async_trait;
use strata_engine::Operation;
use strata_resource::{KindTable, Shown, Spec, kind};

use super::managed::ManagedKind;
use super::shared::{ADOPT, DATACENTER, NO_MARK};
use crate::datacenter::{Family, ShownBy, Simple, Unset, row_text, spec_text};
use crate::preflight::{Needs, verb};

kind! {
    /// A server that keeps the addresses of software-defined networks.
    "sdnipam" {
        called: "IPAM {sdn_ipam}, {type}",
        identity: &["sdn_ipam"],
        proof: NO_MARK,
        digest_on: "every change",
        shares: &[ADOPT],
        at_once: true,
        shown: Shown { in_headline: &["type"], ..DATACENTER.shown },
        no_tofu: Some("the provider has no resource for it"),
        ..DATACENTER
    }
    /// its id
    "sdn_ipam": Text => InPlace [remote("ipam")];
    /// `netbox` or `phpipam`
    "type": Text => Replace [remote("type"), because("Proxmox cannot change it")];
    /// the URL of its API
    "url": Text => InPlace [remote("url")];
    /// what lets Proxmox in
    "token": Text => InPlace [remote("token"), write_only];
    /// phpipam: the section
    "section": Int => InPlace [remote("section")];
    /// of its certificate
    "fingerprint": Text => InPlace [remote("fingerprint")];
}

static ROWS: Simple = Simple {
    unset: Unset::Delete,
    takes_digest: true,
    reserved: |row| {
        let built_in = row_text(row, "ipam").as_deref() == Some("pve");
        built_in.then_some("every installation has it")
    },
    ..Simple::new("IPAM", "/cluster/sdn/ipams", &TABLE)
};

pub(super) struct SdnIpam;

#[async_trait]
impl ManagedKind for SdnIpam {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&ROWS)
    }

    fn shown_by(&self, spec: &Spec) -> Option<ShownBy> {
        let path = format!("/sdn/ipams/{}", spec_text(spec, "sdn_ipam"));
        Some(ShownBy::any_of(&["SDN.Audit", "SDN.Allocate"], path))
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        let all = || vec!["/sdn/ipams".to_owned()];
        needs.add(&["SDN.Audit", "SDN.Allocate"], all(), "look at");
        needs.add(&["SDN.Allocate"], all(), verb(operation));
    }
}
