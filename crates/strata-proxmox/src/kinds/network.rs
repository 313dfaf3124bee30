//! The network of a host. Proxmox stages changes of interfaces and brings them into effect together.

mod guard;
mod host;
mod interface;
mod ours;
mod staged;
mod watched;

use async_trait::async_trait;
use strata_engine::{Finding, Operation, Outcome, ProviderError, Review, Sighting, Wanted};
use strata_resource::{KindTable, Spec, Value, kind};

use super::managed::ManagedKind;
use super::shared::{ADOPT, DATACENTER, NO_OPTIONS, ONLY_APPLY};
use crate::client::Client;
use crate::datacenter::{Family, LiveObject, PlannedPlaces, spec_text};
use crate::execute::Work;
use crate::preflight::{NamedPlaces, Needs};

kind! {
    /// The interfaces of a host that the source speaks of.
    "network" {
        called: "network of {network}",
        identity: &["network"],
        proof: "for each interface the state, or `adopt`; an `eth` is only configured",
        recovery: "an interface is managed if it is exactly what was begun; what is staged is brought into effect",
        shares: &[ADOPT],
        staged: true,
        busy: "bring what is staged into effect (`pvesh set /nodes/{name}/network`) or take it back (`pvesh delete /nodes/{name}/network`)",
        ..DATACENTER
    }
    /// the host
    "network": Text => InPlace;
    /// changes wait for a reload; never wanted
    "staged": Bool => InPlace [off_by_default];
    /// an interface, by its name: `vmbr1`
    "interfaces.*": Map => InPlace [slot];
    /// the interfaces of a bridge or bond
    "interfaces.*.ports": List => InPlace [set];
    /// a bridge that passes VLANs on
    "interfaces.*.vlan_aware": Bool => InPlace [off_by_default];
    /// up with the host
    "interfaces.*.autostart": Bool => InPlace [off_by_default];
    /// what people read of it
    "interfaces.*.comment": Text => InPlace [default_text("")];
    /// what is there already is taken over
    "interfaces.*.adopt": Bool => Computed;
    /// the source allows a change that may cut the connection
    "interfaces.*.may_cut": Bool => Computed [no_tofu(ONLY_APPLY)];
    /// any other key of an interface
    "interfaces.*.options.*": Text => InPlace [no_tofu(NO_OPTIONS)];
    /// type, addresses, gateways, device, tag, MTU, mode
    "interfaces.*.*": Any => InPlace;
}

fn interfaces(spec: &Spec) -> impl Iterator<Item = &str> {
    spec.get("interfaces").and_then(Value::as_map).into_iter().flat_map(Spec::keys).map(String::as_str)
}

pub(super) struct Network;

#[async_trait]
impl ManagedKind for Network {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&host::Networks)
    }

    fn judge(&self, wanted: &Wanted<'_>, live: Option<&LiveObject>) -> Sighting {
        ours::judge(wanted, live)
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        needs.host(operation, spec_text(&operation.spec, "network"));
        // Bridges are shown to those who may use them.
        for name in interfaces(&operation.spec) {
            let path = format!("/sdn/zones/localnetwork/{name}");
            needs.add(&["SDN.Audit", "SDN.Use"], vec![path], "see the bridges of");
        }
    }

    fn places<'a>(&self, operation: &'a Operation, places: &mut NamedPlaces<'a>) {
        places.add_node(spec_text(&operation.spec, "network"), operation);
    }

    fn provides(&self, spec: &Spec, planned: &mut PlannedPlaces) {
        for name in interfaces(spec) {
            planned.add_interface(spec_text(spec, "network"), name);
        }
    }

    fn remark(&self, operation: &Operation) -> Option<String> {
        Some(format!("the network of `{}` is reloaded", spec_text(&operation.spec, "network")))
    }

    async fn preconditions(
        &self,
        client: &Client,
        own: &[&Operation],
        _: Review<'_>,
    ) -> Result<Vec<Finding>, ProviderError> {
        guard::preconditions(client, own).await
    }

    async fn execute(&self, work: &Work<'_>) -> Result<Outcome, ProviderError> {
        watched::execute(work).await
    }
}
