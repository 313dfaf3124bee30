//! Servers that have the names of guests in software-defined networks.

use async_trait::async_trait;
use strata_engine::Operation;
use strata_resource::{KindTable, Shown, Spec, kind};

use super::managed::ManagedKind;
use super::shared::{ADOPT, DATACENTER, NO_MARK};
use crate::datacenter::{Family, ShownBy, Simple, Unset, spec_text};
use crate::preflight::{Needs, verb};

kind! {
    /// A server that has the names of guests in software-defined networks.
    "sdndns" {
        called: "DNS server {sdn_dns}, {type}",
        identity: &["sdn_dns"],
        proof: NO_MARK,
        digest_on: "every change",
        shares: &[ADOPT],
        at_once: true,
        shown: Shown { in_headline: &["type"], ..DATACENTER.shown },
        no_tofu: Some("the provider has no resource for it"),
        ..DATACENTER
    }
    /// its id
    "sdn_dns": Text => InPlace [remote("dns")];
    /// `powerdns`
    "type": Text => Replace [remote("type"), because("Proxmox cannot change it")];
    /// the URL of its API
    "url": Text => InPlace [remote("url")];
    /// what lets Proxmox in
    "api_key": Text => InPlace [remote("key"), write_only];
    /// for how many seconds names are remembered
    "time_to_live": Int => InPlace [remote("ttl")];
    /// the length of the prefix of reverse zones of IPv6
    "reverse_mask6": Int => InPlace [remote("reversemaskv6")];
    /// of its certificate
    "fingerprint": Text => InPlace [remote("fingerprint")];
}

static ROWS: Simple = Simple {
    unset: Unset::Delete,
    takes_digest: true,
    ..Simple::new("DNS server", "/cluster/sdn/dns", &TABLE)
};

pub(super) struct SdnDns;

#[async_trait]
impl ManagedKind for SdnDns {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&ROWS)
    }

    fn shown_by(&self, spec: &Spec) -> Option<ShownBy> {
        let path = format!("/sdn/dns/{}", spec_text(spec, "sdn_dns"));
        Some(ShownBy::any_of(&["SDN.Audit", "SDN.Allocate"], path))
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        let all = || vec!["/sdn/dns".to_owned()];
        needs.add(&["SDN.Audit", "SDN.Allocate"], all(), "look at");
        needs.add(&["SDN.Allocate"], all(), verb(operation));
    }
}
