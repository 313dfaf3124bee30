//! The firewall of one host: its options and rules. It filters where that of the datacenter is on.
//!
//! Every host has one. It is ours only if there was nothing in it, or if the source says `adopt`.

use async_trait::async_trait;
use strata_engine::Operation;
use strata_resource::{KindTable, Spec, Value, kind};

use super::managed::ManagedKind;
use super::shared::{ADOPT, DATACENTER, MAY_LOCK_OUT};
use crate::datacenter::{Family, LiveObject, RuleSet, is_begun, spec_text};
use crate::preflight::{NamedPlaces, Needs, verb};

kind! {
    /// The firewall of one host: options and rules.
    "hostfirewall" {
        called: "firewall of {host_firewall}",
        identity: &["host_firewall"],
        proof: "the state, `adopt`, or nothing was in it",
        recovery: "managed if nothing is in it but what was begun",
        digest_on: "rules",
        shares: &[ADOPT, MAY_LOCK_OUT],
        no_tofu: Some("the module of the datacenter has no firewalls of hosts"),
        ..DATACENTER
    }
    /// the host
    "host_firewall": Text => InPlace;
    /// it filters
    "options.enable": Bool => InPlace [remote("enable"), on_by_default];
    /// how much is logged of packets to the host
    "options.log_level_in": Text => InPlace [remote("log_level_in"), default_text("nolog")];
    /// the same, from the host
    "options.log_level_out": Text => InPlace [remote("log_level_out"), default_text("nolog")];
    /// the same, through the host
    "options.log_level_forward": Text => InPlace [remote("log_level_forward"), default_text("nolog")];
    /// connections are logged
    "options.log_connections": Bool => InPlace [remote("log_nf_conntrack"), off_by_default];
    /// how many connections are followed at most
    "options.max_connections": Int => InPlace [remote("nf_conntrack_max"), default_int(262_144)];
    /// after how many seconds an idle connection is forgotten
    "options.connection_timeout": Int => InPlace [remote("nf_conntrack_tcp_timeout_established"), default_int(432_000)];
    /// packets that belong to no connection pass
    "options.allow_invalid": Bool => InPlace [remote("nf_conntrack_allow_invalid"), off_by_default];
    /// neighbour discovery
    "options.ndp": Bool => InPlace [remote("ndp"), on_by_default];
    /// packets from broadcast addresses are dropped
    "options.no_smurfs": Bool => InPlace [remote("nosmurfs"), on_by_default];
    /// how much of them is logged
    "options.smurf_log_level": Text => InPlace [remote("smurf_log_level"), default_text("nolog")];
    /// packets with impossible flags of TCP are dropped
    "options.tcp_flags": Bool => InPlace [remote("tcpflags"), off_by_default];
    /// how much of them is logged
    "options.tcp_flags_log_level": Text => InPlace [remote("tcp_flags_log_level"), default_text("nolog")];
    /// only so many new connections a second from one address
    "options.syn_flood_protection": Bool => InPlace [remote("protection_synflood"), off_by_default];
    /// how many
    "options.syn_flood_rate": Int => InPlace [remote("protection_synflood_rate"), default_int(200)];
    /// how many at once
    "options.syn_flood_burst": Int => InPlace [remote("protection_synflood_burst"), default_int(1000)];
    /// by nftables
    "options.nftables": Bool => InPlace [remote("nftables"), off_by_default];
    /// rules in their order
    "rules": List => InPlace;
}

static RULES: RuleSet = RuleSet { word: "firewall of", table: &TABLE, single: None, opens };

/// Options besides the switch let nobody in whom a rule does not.
fn opens(option: &str, value: Option<&Value>) -> bool {
    option == "enable" && value.and_then(Value::as_bool) == Some(false)
}

pub(super) struct HostFirewall;

#[async_trait]
impl ManagedKind for HostFirewall {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&RULES)
    }

    fn is_on_the_way(&self, begun: &Spec, live: &LiveObject) -> bool {
        is_begun(begun, live)
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        let host = vec![format!("/nodes/{}", spec_text(&operation.spec, "host_firewall"))];
        // Whether it filters at all, the datacenter says.
        needs.add(&["Sys.Audit"], vec!["/".to_owned()], "look at");
        needs.add(&["Sys.Audit"], host.clone(), "look at");
        needs.add(&["Sys.Modify"], host, verb(operation));
    }

    fn places<'a>(&self, operation: &'a Operation, places: &mut NamedPlaces<'a>) {
        places.add_node(spec_text(&operation.spec, "host_firewall"), operation);
    }
}
