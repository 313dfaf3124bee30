//! Software-defined networks. Proxmox stages changes of zones, networks and subnets and brings them into effect together.

mod class;
mod config;
mod guard;
mod locked;
mod ours;

use async_trait::async_trait;
use strata_engine::{ErrorClass, Operation, Outcome, ProviderError, Sighting, Wanted};
use strata_resource::{KindTable, Spec, Value, kind};

use super::managed::ManagedKind;
use super::shared::{ADOPT, DATACENTER};
use crate::client::Client;
use crate::datacenter::{Family, LiveObject, PlannedPlaces, spec_text};
use crate::execute::Work;
use crate::preflight::{Needs, verb};

kind! {
    /// The zones, networks and subnets that the source speaks of.
    "sdn" {
        called: "SDN of the {sdn}",
        identity: &["sdn"],
        proof: "for each zone, network, subnet and controller the state, or `adopt`",
        recovery: "an object is managed if it is exactly what was begun; what is staged is brought into effect",
        shares: &[ADOPT],
        staged: true,
        busy: "bring what is staged into effect (`pvesh set /cluster/sdn`) or take it back (`pvesh create /cluster/sdn/rollback`)",
        no_tofu: Some("the module of the datacenter has no SDN"),
        ..DATACENTER
    }
    /// `datacenter`
    "sdn": Text => InPlace;
    /// changes wait to be brought into effect; never wanted
    "staged": Bool => InPlace [off_by_default];
    /// what speaks BGP or IS-IS for zones, by name
    "controllers.*": Map => InPlace [slot];
    /// what is there already is taken over
    "controllers.*.adopt": Bool => Computed;
    /// the addresses of its peers
    "controllers.*.peers": List => InPlace [set];
    /// type, number, node
    "controllers.*.*": Any => InPlace;
    /// a zone, by its name
    "zones.*": Map => InPlace [slot];
    /// what is there already is taken over
    "zones.*.adopt": Bool => Computed;
    /// the hosts that it is on
    "zones.*.nodes": List => InPlace [set];
    /// vxlan: the addresses of the hosts
    "zones.*.peers": List => InPlace [set];
    /// evpn: the hosts that lead out of it
    "zones.*.exit_nodes": List => InPlace [set];
    /// evpn: subnets are announced
    "zones.*.advertise_subnets": Bool => InPlace [off_by_default];
    /// type, bridge, tag, MTU, IPAM, DHCP, DNS, controller
    "zones.*.*": Any => InPlace;
    /// a network, by its name: guests use it as a bridge
    "vnets.*": Map => InPlace [slot];
    /// what is there already is taken over
    "vnets.*.adopt": Bool => Computed;
    /// it passes VLANs on
    "vnets.*.vlan_aware": Bool => InPlace [off_by_default];
    /// guests in it do not see each other
    "vnets.*.isolate_ports": Bool => InPlace [off_by_default];
    /// zone, tag, alias
    "vnets.*.*": Any => InPlace;
    /// a subnet, by its network and its addresses
    "subnets.*": Map => InPlace [slot];
    /// what is there already is taken over
    "subnets.*.adopt": Bool => Computed;
    /// what leaves it has the address of the host
    "subnets.*.snat": Bool => InPlace [off_by_default];
    /// the addresses that DHCP gives
    "subnets.*.dhcp_ranges": List => InPlace;
    /// gateway, name server, domain
    "subnets.*.*": Any => InPlace;
}

pub(super) struct Sdn;

#[async_trait]
impl ManagedKind for Sdn {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&config::Networks)
    }

    fn judge(&self, wanted: &Wanted<'_>, live: Option<&LiveObject>) -> Sighting {
        ours::judge(wanted, live)
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        let all = || vec!["/sdn".to_owned()];
        needs.add(&["SDN.Audit", "SDN.Allocate"], all(), "look at");
        needs.add(&["SDN.Allocate"], all(), verb(operation));
    }

    fn provides(&self, spec: &Spec, planned: &mut PlannedPlaces) {
        let zones = spec.get("zones").and_then(Value::as_map);
        let vnets = spec.get("vnets").and_then(Value::as_map).into_iter().flatten();
        for (name, vnet) in vnets {
            let zone = vnet.as_map().map(|vnet| spec_text(vnet, "zone")).unwrap_or_default();
            let zone = zones.and_then(|zones| zones.get(zone)?.as_map());
            let nodes = zone.and_then(|zone| zone.get("nodes")?.as_list()).unwrap_or_default();
            if nodes.is_empty() {
                planned.add_interface_everywhere(name);
            }
            for node in nodes.iter().filter_map(Value::as_text) {
                planned.add_interface(node, name);
            }
        }
    }

    fn refusals(&self, _: &Client, operation: &Operation, _: &[Operation]) -> Vec<ProviderError> {
        let fixed = operation.changes.iter().filter(|change| {
            let keys: Vec<&str> = change.path.keys().iter().map(String::as_str).collect();
            let fixed = matches!(keys[..], ["zones" | "controllers", _, "type"]);
            fixed && change.before.is_some() && change.after.is_some()
        });
        let refuse = |change: &strata_resource::FieldChange| {
            let name = change.path.keys().get(1).map(String::as_str).unwrap_or_default();
            let message = format!("`{}`: Proxmox cannot change the type of `{name}`", operation.address);
            let mut error = ProviderError::new(ErrorClass::Refused, message).field(change.path.to_string());
            error.nothing_done = true;
            error.hint("give it another name, or take it out, apply, and put it in again")
        };
        fixed.map(refuse).collect()
    }

    async fn obstacle(
        &self,
        client: &Client,
        operation: &Operation,
        earlier: &[Operation],
    ) -> Result<Option<ProviderError>, ProviderError> {
        guard::obstacle(client, operation, earlier).await
    }

    fn remark(&self, _: &Operation) -> Option<String> {
        Some("the networks of all hosts are reloaded".to_owned())
    }

    async fn execute(&self, work: &Work<'_>) -> Result<Outcome, ProviderError> {
        guard::check(work).await?;
        locked::execute(work).await
    }
}
