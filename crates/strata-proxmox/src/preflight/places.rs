//! Whether the places that operations name are there: nodes, storages with the right content and space, bridges, pools.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use strata_engine::{ErrorClass, Look, Obstacle, Operation, ProviderError};
use strata_resource::{Address, Spec, Value};
use strata_state::Action;

use super::needs::bridges_in;
use crate::api::{ApiErrorKind, NetworkRow, NodeRow, Params, PoolRow, StorageRow};
use crate::client::Client;
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

/// What places are compared with.
struct Surroundings<'s> {
    client: &'s Client,
    look: &'s Look,
    /// What operations before these make.
    planned: PlannedPlaces,
    /// What they take.
    taken: NamedPlaces<'s>,
    /// Whether a privilege is missing there: what the server shows is not all there is.
    blind: &'s (dyn Fn(&str) -> bool + Sync),
}

impl Surroundings<'_> {
    /// A listing, asked for once in a look. None where this login may not see it: then nothing is known.
    async fn listing<R>(
        &self,
        path: &str,
        query: Params,
        doing: &str,
    ) -> Result<Option<Vec<R>>, ProviderError>
    where
        R: DeserializeOwned + Clone + Send + Sync + 'static,
    {
        let rows = self.client.listing(self.look, path, query, |rows: Vec<R>| rows).await;
        match rows.as_ref() {
            Ok(rows) => Ok(Some(rows.clone())),
            Err(error) if matches!(error.kind(), Some(ApiErrorKind::Denied { .. })) => Ok(None),
            Err(error) => Err(error.explain(doing)),
        }
    }
}

pub(super) async fn check(
    client: &Client,
    look: &Look,
    operations: &[Operation],
    earlier: &[Operation],
    blind: &(dyn Fn(&str) -> bool + Sync),
) -> Result<Vec<Obstacle>, ProviderError> {
    let places = NamedPlaces::of(operations);
    if places.nodes.is_empty() {
        return Ok(Vec::new());
    }
    let (planned, taken) = (PlannedPlaces::of(earlier), NamedPlaces::of(earlier));
    let around = Surroundings { client, look, planned, taken, blind };
    let doing = "look at the cluster";
    let mut wrong = Vec::new();
    let Some(rows) = around.listing::<NodeRow>("/nodes", Params::new(), doing).await? else {
        return Ok(wrong);
    };
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
                wrong.push(obstacle(
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
    // What all nodes share is too small once.
    let mut too_small = BTreeSet::new();
    for node in online {
        wrong.extend(check_storages(&around, &places, node, &mut too_small).await?);
        wrong.extend(check_bridges(&around, &places, node).await?);
    }
    if !places.pools.is_empty()
        && let Some(rows) = around.listing::<PoolRow>("/pools", Params::new(), doing).await?
    {
        for (pool, address) in &places.pools {
            let there = rows.iter().any(|row| row.poolid == *pool) || around.planned.has_pool(pool);
            if !there && !blind(&format!("/pool/{pool}")) {
                let text = format!("there is no pool `{pool}`, or the token may not see it");
                wrong.push(missing(address, "pool", text, &names(&rows, |row| &row.poolid)));
            }
        }
    }
    Ok(wrong)
}

async fn check_storages(
    around: &Surroundings<'_>,
    places: &NamedPlaces<'_>,
    node: &str,
    too_small: &mut BTreeSet<String>,
) -> Result<Vec<Obstacle>, ProviderError> {
    let asked: Vec<_> = places.storages.iter().filter(|((on, _), _)| *on == node).collect();
    let mut wrong = Vec::new();
    if asked.is_empty() {
        return Ok(wrong);
    }
    let (path, doing) = (format!("/nodes/{node}/storage"), format!("list the storages of `{node}`"));
    let Some(rows) = around.listing::<StorageRow>(&path, Params::new(), &doing).await? else {
        return Ok(wrong);
    };
    for ((_, storage), asked) in asked {
        if (around.blind)(&format!("/storage/{storage}")) {
            continue;
        }
        let Some((_, address)) = asked.contents.first_key_value() else { continue };
        let Some(row) = rows.iter().find(|row| row.storage == *storage) else {
            if around.planned.has_storage(storage) {
                continue;
            }
            let text = format!("there is no storage `{storage}` on `{node}`, or the token may not see it");
            wrong.push(missing(address, "storage", text, &names(&rows, |row| &row.storage)));
            continue;
        };
        let found = check_storage(row, node, asked, &around.planned, address);
        let usable = found.is_empty();
        wrong.extend(found);
        if usable && row.enabled && row.active && !too_small.contains(*storage) {
            let (own, before) = (places.bytes(row, node), around.taken.bytes(row, node));
            if let Some(full) = check_room(row, node, own, before, address) {
                wrong.push(full);
                if row.shared {
                    too_small.insert((*storage).to_owned());
                }
            }
        }
    }
    Ok(wrong)
}

fn check_storage(
    row: &StorageRow,
    node: &str,
    asked: &Asked<'_>,
    planned: &PlannedPlaces,
    address: &Address,
) -> Vec<Obstacle> {
    let storage = &row.storage;
    let refuse = |address: &Address, text: String| obstacle(ErrorClass::Missing, address, "storage", text);
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
            let mut refused = refuse(address, text);
            refused.error = refused.error.hint(format!(
                "it takes {}; add `{content}` to its content, or choose another storage",
                row.content
            ));
            wrong.push(refused);
        }
    }
    wrong
}

/// Whether what these operations take fits beside what those before them take.
fn check_room(row: &StorageRow, node: &str, own: i64, before: i64, address: &Address) -> Option<Obstacle> {
    let (avail, total) =
        (row.avail.unwrap_or(i64::MAX), row.total.filter(|total| *total > 0).unwrap_or(i64::MAX));
    let room = if THICK.contains(&row.kind.as_str()) { avail } else { total };
    let needed = own.saturating_add(before);
    if own == 0 || needed <= room {
        return None;
    }
    let others = if before > 0 {
        format!(", {} of them by other stacks of this run", gib(before))
    } else {
        String::new()
    };
    let text = format!(
        "the storage `{}` on `{node}` has {} and {} are needed{others}",
        row.storage,
        gib(room),
        gib(needed)
    );
    let mut full = obstacle(ErrorClass::Missing, address, "storage", text);
    full.error = full.error.hint("free space or choose another storage");
    Some(full)
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
    around: &Surroundings<'_>,
    places: &NamedPlaces<'_>,
    node: &str,
) -> Result<Vec<Obstacle>, ProviderError> {
    let asked: Vec<_> = places.bridges.iter().filter(|((on, _), _)| *on == node).collect();
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let query = Params::new().with("type", "any_bridge");
    let (path, doing) = (format!("/nodes/{node}/network"), format!("list the bridges of `{node}`"));
    let Some(rows) = around.listing::<NetworkRow>(&path, query, &doing).await? else {
        return Ok(Vec::new());
    };
    let missing_ones = asked.into_iter().filter(|((_, bridge), _)| {
        !rows.iter().any(|row| row.iface == *bridge)
            && !around.planned.has_interface(node, bridge)
            && !(around.blind)(&format!("/sdn/zones/localnetwork/{bridge}"))
    });
    Ok(missing_ones
        .map(|((_, bridge), address)| {
            let text = format!("there is no bridge `{bridge}` on `{node}`, or the token may not see it");
            missing(address, "networks", text, &names(&rows, |row| &row.iface))
        })
        .collect())
}

fn names<T>(rows: &[T], name: impl Fn(&T) -> &String) -> Vec<String> {
    rows.iter().map(|row| name(row).clone()).collect()
}

fn missing(address: &Address, field: &str, text: String, there: &[String]) -> Obstacle {
    let mut wrong = obstacle(ErrorClass::Missing, address, field, text);
    if !there.is_empty() {
        wrong.error = wrong.error.hint(format!("there are {}", there.join(", ")));
    }
    wrong
}

fn obstacle(class: ErrorClass, address: &Address, field: &str, text: String) -> Obstacle {
    let mut error = ProviderError::new(class, format!("`{address}`: {text}")).field(field);
    error.nothing_done = true;
    Obstacle { address: address.clone(), error }
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

    /// How much of a storage is taken: of one that all nodes share by guests of all of them.
    fn bytes(&self, row: &StorageRow, node: &str) -> i64 {
        let asked = self.storages.iter();
        let own = asked.filter(|((on, storage), _)| *storage == row.storage && (row.shared || *on == node));
        own.fold(0, |sum, (_, asked)| sum.saturating_add(asked.bytes))
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
