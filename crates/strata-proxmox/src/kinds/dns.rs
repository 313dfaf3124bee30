//! Name servers of a host.

use async_trait::async_trait;
use strata_engine::Operation;
use strata_resource::{KindTable, Spec, Value, kind};

use super::managed::ManagedKind;
use super::shared::{ADOPT, DATACENTER};
use crate::api::Params;
use crate::datacenter::{Family, Row, Setting, row_text, spec_text};
use crate::preflight::{NamedPlaces, Needs};

kind! {
    /// The name servers of a host.
    "dns" {
        called: "name servers of {dns}",
        identity: &["dns"],
        proof: "nobody's: a host cannot be without it",
        recovery: "set again, which changes nothing",
        shares: &[ADOPT],
        always_there: true,
        ..DATACENTER
    }
    /// the host
    "dns": Text => InPlace;
    /// its name servers, in order
    "servers": List => InPlace [remote("dns1, dns2, dns3")];
    /// the domain that names are looked up in
    "search": Text => InPlace [remote("search")];
}

static SETTING: Setting =
    Setting { word: "name servers of", node: "dns", path: "dns", read: read_dns, write: write_dns };

const SERVERS: [&str; 3] = ["dns1", "dns2", "dns3"];

fn read_dns(row: &Row, spec: &mut Spec) {
    let servers: Vec<Value> = SERVERS.iter().filter_map(|key| row_text(row, key)).map(Value::Text).collect();
    if !servers.is_empty() {
        spec.insert("servers".to_owned(), Value::List(servers));
    }
    spec.extend(row_text(row, "search").map(|search| ("search".to_owned(), Value::Text(search))));
}

/// What the source says nothing about is sent as it is.
fn write_dns(spec: &Spec, live: &Spec) -> Result<Params, &'static str> {
    let either = |field: &str| spec.get(field).or_else(|| live.get(field));
    let search = either("search").and_then(Value::as_text);
    let search = search.ok_or("Proxmox wants a search domain, and there is none: set `searchDomain`")?;
    let mut params = Params::new().with("search", search);
    let servers = either("servers").and_then(Value::as_list).into_iter().flatten().filter_map(Value::as_text);
    for (key, server) in SERVERS.into_iter().zip(servers) {
        params.set(key, server);
    }
    Ok(params)
}

pub(super) struct Dns;

#[async_trait]
impl ManagedKind for Dns {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&SETTING)
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        needs.host(operation, spec_text(&operation.spec, "dns"));
    }

    fn places<'a>(&self, operation: &'a Operation, places: &mut NamedPlaces<'a>) {
        places.add_node(spec_text(&operation.spec, "dns"), operation);
    }
}
