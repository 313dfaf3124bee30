//! Whether the places that operations name are there: nodes, storages with the right content and space, bridges, pools.

use std::collections::{BTreeMap, BTreeSet};

use strata_engine::{ErrorClass, Operation, ProviderError};
use strata_resource::{Address, Spec, Value};
use strata_state::Action;

use super::needs::bridges_in;
use crate::api::{NetworkRow, NodeRow, Params, PoolRow, StorageRow};
use crate::client::{CallError, Client};
use crate::codec::{GuestKind, storage_of};
use crate::datacenter::PlannedPlaces;
use crate::kinds;

/// Storages that take the whole size at once; elsewhere a disk takes only what is written to it.
const THICK: [&str; 3] = ["lvm", "iscsi", "iscsidirect"];

/// What is asked of one storage as seen from one node.
#[derive(Default)]
struct Asked<'a> {
    /// Content type, and the first that needs it.
    contents: BTreeMap<&'static str, &'a Address>,
    bytes: i64,
}

/// The places that operations name, each with the first that does.
#[derive(Default)]
pub(crate) struct NamedPlaces<'a> {
    nodes: BTreeMap<&'a str, &'a Address>,
    storages: BTreeMap<(&'a str, &'a str), Asked<'a>>,
    bridges: BTreeMap<(&'a str, &'a str), &'a Address>,
    pools: BTreeMap<&'a str, &'a Address>,
}

pub(super) async fn check(
    client: &Client,
    operations: &[Operation],
    planned: &PlannedPlaces,
    blind: &(dyn Fn(&str) -> bool + Sync),
) -> Result<Vec<ProviderError>, ProviderError> {
    let places = NamedPlaces::of(operations);
    if places.nodes.is_empty() {
        return Ok(Vec::new());
    }
    let failed = |error: CallError| error.explain("look at the cluster");
    let mut wrong = Vec::new();
    let rows: Vec<NodeRow> = client.get("/nodes", Params::new()).await.map_err(failed)?;
    let mut online = BTreeSet::new();
    for (node, address) in &places.nodes {
        match rows.iter().find(|row| row.node == *node) {
            None => wrong.push(missing(
                address,
                "node",
                format!("there is no node `{node}`"),
                &names(&rows, |row| &row.node),
            )),
            Some(row) if row.status.as_deref() == Some("offline") => {
                wrong.push(error(
                    ErrorClass::Unreachable,
                    address,
                    "node",
                    format!("the node `{node}` is offline"),
                ));
            }
            Some(_) => {
                online.insert(*node);
            }
        }
    }
    for node in online {
        wrong.extend(check_storages(client, &places, node, planned, blind).await?);
        wrong.extend(check_bridges(client, &places, node, planned, blind).await?);
    }
    if !places.pools.is_empty() {
        let rows: Vec<PoolRow> = client.get("/pools", Params::new()).await.map_err(failed)?;
        for (pool, address) in &places.pools {
            let there = rows.iter().any(|row| row.poolid == *pool) || planned.has_pool(pool);
            if !there && !blind(&format!("/pool/{pool}")) {
                let text = format!("there is no pool `{pool}`, or we may not see it");
                wrong.push(missing(address, "pool", text, &names(&rows, |row| &row.poolid)));
            }
        }
    }
    Ok(wrong)
}

async fn check_storages(
    client: &Client,
    places: &NamedPlaces<'_>,
    node: &str,
    planned: &PlannedPlaces,
    blind: &(dyn Fn(&str) -> bool + Sync),
) -> Result<Vec<ProviderError>, ProviderError> {
    let asked: Vec<_> = places.storages.iter().filter(|((on, _), _)| *on == node).collect();
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Result<Vec<StorageRow>, CallError> =
        client.get(&format!("/nodes/{node}/storage"), Params::new()).await;
    let rows = rows.map_err(|error| error.explain(&format!("list the storages of `{node}`")))?;
    let mut wrong = Vec::new();
    for ((_, storage), asked) in asked {
        if blind(&format!("/storage/{storage}")) {
            continue;
        }
        let Some((_, address)) = asked.contents.first_key_value() else { continue };
        let Some(row) = rows.iter().find(|row| row.storage == *storage) else {
            if planned.has_storage(storage) {
                continue;
            }
            let text = format!("there is no storage `{storage}` on `{node}`, or we may not see it");
            wrong.push(missing(address, "storage", text, &names(&rows, |row| &row.storage)));
            continue;
        };
        wrong.extend(check_storage(row, node, asked, planned, address));
    }
    Ok(wrong)
}

fn check_storage(
    row: &StorageRow,
    node: &str,
    asked: &Asked<'_>,
    planned: &PlannedPlaces,
    address: &Address,
) -> Vec<ProviderError> {
    let storage = &row.storage;
    let refuse = |address: &Address, text: String| error(ErrorClass::Missing, address, "storage", text);
    if planned.has_storage(storage) && !(row.enabled && row.active) {
        // It is about to be switched on.
        return Vec::new();
    }
    if !row.enabled {
        return vec![refuse(address, format!("the storage `{storage}` is disabled on `{node}`"))];
    }
    if !row.active {
        return vec![refuse(address, format!("the storage `{storage}` is not active on `{node}`"))];
    }
    let mut wrong = Vec::new();
    for (content, address) in &asked.contents {
        if !row.content.split(',').any(|has| has == *content) && !planned.takes(storage, content) {
            let text = format!("the storage `{storage}` on `{node}` does not take {}", spoken(content));
            wrong.push(refuse(address, text).hint(format!(
                "it takes {}; add `{content}` to its content, or choose another storage",
                row.content
            )));
        }
    }
    let (avail, total) =
        (row.avail.unwrap_or(i64::MAX), row.total.filter(|total| *total > 0).unwrap_or(i64::MAX));
    let room = if THICK.contains(&row.kind.as_str()) { avail } else { total };
    if asked.bytes > room {
        let text = format!(
            "the storage `{storage}` on `{node}` has {} and {} are needed",
            gib(room),
            gib(asked.bytes)
        );
        wrong.push(refuse(address, text).hint("free space or choose another storage"));
    }
    wrong
}

fn gib(bytes: i64) -> String {
    format!("{} GiB", bytes >> 30)
}

fn spoken(content: &str) -> &'static str {
    match content {
        "images" => "disks of VMs (`images`)",
        "rootdir" => "disks of containers (`rootdir`)",
        "iso" => "ISOs (`iso`)",
        "vztmpl" => "container templates (`vztmpl`)",
        _ => "images to import (`import`)",
    }
}

async fn check_bridges(
    client: &Client,
    places: &NamedPlaces<'_>,
    node: &str,
    planned: &PlannedPlaces,
    blind: &(dyn Fn(&str) -> bool + Sync),
) -> Result<Vec<ProviderError>, ProviderError> {
    let asked: Vec<_> = places.bridges.iter().filter(|((on, _), _)| *on == node).collect();
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let query = Params::new().with("type", "any_bridge");
    let rows: Result<Vec<NetworkRow>, CallError> = client.get(&format!("/nodes/{node}/network"), query).await;
    let rows = rows.map_err(|error| error.explain(&format!("list the bridges of `{node}`")))?;
    let missing_ones = asked.into_iter().filter(|((_, bridge), _)| {
        !rows.iter().any(|row| row.iface == *bridge)
            && !planned.has_interface(node, bridge)
            && !blind(&format!("/sdn/zones/localnetwork/{bridge}"))
    });
    Ok(missing_ones
        .map(|((_, bridge), address)| {
            let text = format!("there is no bridge `{bridge}` on `{node}`, or we may not see it");
            missing(address, "networks", text, &names(&rows, |row| &row.iface))
        })
        .collect())
}

fn names<T>(rows: &[T], name: impl Fn(&T) -> &String) -> Vec<String> {
    rows.iter().map(|row| name(row).clone()).collect()
}

fn missing(address: &Address, field: &str, text: String, there: &[String]) -> ProviderError {
    let wrong = error(ErrorClass::Missing, address, field, text);
    if there.is_empty() { wrong } else { wrong.hint(format!("there are {}", there.join(", "))) }
}

fn error(class: ErrorClass, address: &Address, field: &str, text: String) -> ProviderError {
    let mut error = ProviderError::new(class, format!("`{address}`: {text}")).field(field);
    error.nothing_done = true;
    error
}

impl<'a> NamedPlaces<'a> {
    fn of(operations: &'a [Operation]) -> Self {
        let mut places = Self::default();
        for operation in operations.iter().filter(|operation| operation.action != Action::Delete) {
            if let Some(managed) = kinds::of(operation.address.kind()) {
                managed.places(operation, &mut places);
            }
        }
        places
    }

    pub(crate) fn add_node(&mut self, node: &'a str, operation: &'a Operation) {
        self.nodes.entry(node).or_insert(&operation.address);
    }

    pub(crate) fn add_volume(&mut self, operation: &'a Operation) {
        let (spec, address) = (&operation.spec, &operation.address);
        let Some(node) = text(spec, "node") else { return };
        self.add_node(node, operation);
        if let Some(storage) = text(spec, "storage") {
            let content = volume_content(text(spec, "volume").unwrap_or_default());
            self.storage(node, storage, content, 0, address);
        }
    }

    pub(crate) fn add_guest(&mut self, operation: &'a Operation, kind: GuestKind) {
        let (spec, address) = (&operation.spec, &operation.address);
        let Some(node) = text(spec, "node") else { return };
        self.add_node(node, operation);
        let images = if kind == GuestKind::Qemu { "images" } else { "rootdir" };
        let known = operation.observed.as_ref().map(|observed| &observed.spec);
        for (field, volume) in volumes_in(spec) {
            if let Some(storage) = volume.get("storage").and_then(Value::as_text) {
                let had = known.and_then(|known| volumes_in(known).find(|(name, _)| *name == field));
                let size = |volume: &Spec| volume.get("size").and_then(Value::as_int).unwrap_or_default();
                let grows = size(volume) - had.map_or(0, |(_, volume)| size(volume));
                self.storage(node, storage, images, grows.max(0), address);
            }
        }
        if kind == GuestKind::Qemu
            && let Some(storage) = spec
                .get("cloudinit")
                .and_then(|own| own.as_map()?.get("drive")?.as_map()?.get("storage")?.as_text())
        {
            self.storage(node, storage, images, 0, address);
        }
        if let Some(storage) = text(spec, "image").and_then(storage_of) {
            self.storage(node, storage, "vztmpl", 0, address);
        }
        for (bridge, _) in bridges_in(spec) {
            self.bridges.entry((node, bridge)).or_insert(address);
        }
        if let Some(pool) = text(spec, "pool") {
            self.pools.entry(pool).or_insert(address);
        }
    }

    fn storage(
        &mut self,
        node: &'a str,
        storage: &'a str,
        content: &'static str,
        bytes: i64,
        address: &'a Address,
    ) {
        let asked = self.storages.entry((node, storage)).or_default();
        asked.contents.entry(content).or_insert(address);
        asked.bytes = asked.bytes.saturating_add(bytes);
    }
}

fn text<'s>(spec: &'s Spec, field: &str) -> Option<&'s str> {
    spec.get(field).and_then(Value::as_text)
}

fn volume_content(volume: &str) -> &'static str {
    let content =
        volume.split_once(':').and_then(|(_, name)| name.split_once('/')).map(|(content, _)| content);
    match content {
        Some("vztmpl") => "vztmpl",
        Some("import") => "import",
        _ => "iso",
    }
}

/// The volumes of a guest by field: `disks.scsi0`, `efidisk`, …
fn volumes_in(spec: &Spec) -> impl Iterator<Item = (String, &Spec)> {
    let slots = ["disks", "mounts"].into_iter().flat_map(move |field| {
        let slots = spec.get(field).and_then(Value::as_map).into_iter().flatten();
        slots.filter_map(move |(slot, volume)| Some((format!("{field}.{slot}"), volume.as_map()?)))
    });
    let single = ["efidisk", "tpm", "rootfs"].into_iter();
    slots.chain(single.filter_map(move |field| Some((field.to_owned(), spec.get(field)?.as_map()?))))
}
