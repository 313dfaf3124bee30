//! Settings of a host itself: its notes, and how it starts.

use async_trait::async_trait;
use strata_engine::Operation;
use strata_resource::{FieldType, KindTable, kind};

use super::managed::ManagedKind;
use super::shared::{ADOPT, DATACENTER};
use crate::datacenter::{Family, Parts, Simple, Unset, spec_text};
use crate::preflight::{NamedPlaces, Needs};

kind! {
    /// The settings of a host.
    "hostoptions" {
        called: "settings of {host_options}",
        identity: &["host_options"],
        proof: "nobody's: a host cannot be without it",
        recovery: "set again, which changes nothing",
        digest_on: "every change",
        shares: &[ADOPT],
        always_there: true,
        no_tofu: Some("the module of the datacenter has no settings of hosts"),
        ..DATACENTER
    }
    /// its name
    "host_options": Text => InPlace;
    /// its notes
    "notes": Text => InPlace [remote("description")];
    /// how many seconds pass before the first guest is started with it
    "start_delay": Int => InPlace [remote("startall-onboot-delay"), default_int(0)];
    /// how many percent of its memory guests with ballooning may fill
    "ballooning_target": Int => InPlace [remote("ballooning-target"), default_int(80)];
    /// how it is woken up
    "wake_on_lan": Map => InPlace [remote("wakeonlan")];
    /// its hardware address, the interface that others send from, the address that they send to
    "wake_on_lan.*": Text => InPlace;
    /// the account that its certificate is ordered with
    "acme": Map => InPlace [remote("acme")];
    /// its name
    "acme.*": Text => InPlace;
    /// a domain of the certificate that it orders
    "acme_domain0": Map => InPlace [remote("acmedomain0")];
    /// its name, the plugin that proves it, the domain whose records do
    "acme_domain0.*": Text => InPlace;
    /// a domain of the certificate that it orders
    "acme_domain1": Map => InPlace [remote("acmedomain1")];
    /// its name, the plugin that proves it, the domain whose records do
    "acme_domain1.*": Text => InPlace;
    /// a domain of the certificate that it orders
    "acme_domain2": Map => InPlace [remote("acmedomain2")];
    /// its name, the plugin that proves it, the domain whose records do
    "acme_domain2.*": Text => InPlace;
    /// a domain of the certificate that it orders
    "acme_domain3": Map => InPlace [remote("acmedomain3")];
    /// its name, the plugin that proves it, the domain whose records do
    "acme_domain3.*": Text => InPlace;
    /// a domain of the certificate that it orders
    "acme_domain4": Map => InPlace [remote("acmedomain4")];
    /// its name, the plugin that proves it, the domain whose records do
    "acme_domain4.*": Text => InPlace;
    /// a domain of the certificate that it orders
    "acme_domain5": Map => InPlace [remote("acmedomain5")];
    /// its name, the plugin that proves it, the domain whose records do
    "acme_domain5.*": Text => InPlace;
}

const WAKE_ON_LAN: Parts = &[
    ("mac", "mac", FieldType::Text),
    ("bind-interface", "interface", FieldType::Text),
    ("broadcast-address", "broadcast", FieldType::Text),
];

const ACME: Parts = &[("account", "account", FieldType::Text), ("domains", "domains", FieldType::Text)];

const DOMAIN: Parts = &[
    ("domain", "domain", FieldType::Text),
    ("plugin", "plugin", FieldType::Text),
    ("alias", "alias", FieldType::Text),
];

static ROWS: Simple = Simple {
    of_hosts: true,
    takes_digest: true,
    unset: Unset::Delete,
    parts: &[
        ("wake_on_lan", WAKE_ON_LAN),
        ("acme", ACME),
        ("acme_domain0", DOMAIN),
        ("acme_domain1", DOMAIN),
        ("acme_domain2", DOMAIN),
        ("acme_domain3", DOMAIN),
        ("acme_domain4", DOMAIN),
        ("acme_domain5", DOMAIN),
    ],
    ..Simple::new("settings of", "config", &TABLE)
};

pub(super) struct HostOptions;

#[async_trait]
impl ManagedKind for HostOptions {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&ROWS)
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        needs.datacenter(operation);
    }

    fn places<'a>(&self, operation: &'a Operation, places: &mut NamedPlaces<'a>) {
        places.add_node(spec_text(&operation.spec, "host_options"), operation);
    }
}
