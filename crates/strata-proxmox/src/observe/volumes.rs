//! Volumes: one listing for each storage that holds some of ours. They are ours by their names (docs/ownership.md, "Volumes").

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};
use sha2::{Digest, Sha256};
use strata_engine::{Dispute, Look, Observed, ProviderError, Sighting, Unmanaged, Unseen, Wanted};
use strata_resource::{FieldPath, Spec, Value};

use crate::absence;
use crate::api::{ApiErrorKind, ContentRow, NodeRow, Params};
use crate::cidata;
use crate::client::{CallError, Client};
use crate::kinds;

/// A storage, as seen from a node; from any node if it is shared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct StorageOnNode {
    storage: String,
    node: Option<String>,
}

pub(super) async fn look_at_volumes(
    client: &Client,
    look: &Look,
    wanted: &[Wanted<'_>],
) -> Result<Vec<(usize, Sighting)>, ProviderError> {
    let mut places: BTreeMap<StorageOnNode, Vec<usize>> = BTreeMap::new();
    for (index, wanted) in wanted.iter().enumerate() {
        if kinds::of(wanted.address.kind()).is_some_and(|managed| managed.is_volume())
            && let (Some(storage), Some(node)) = (text(wanted.spec, "storage"), text(wanted.spec, "node"))
        {
            let shared = wanted.spec.get("shared").and_then(Value::as_bool).unwrap_or(false);
            let place =
                StorageOnNode { storage: storage.to_owned(), node: (!shared).then(|| node.to_owned()) };
            places.entry(place).or_default().push(index);
        }
    }
    let looks: Vec<_> =
        places.into_iter().map(|(place, indices)| look_at(client, look, wanted, place, indices)).collect();
    let sightings: Vec<Vec<(usize, Sighting)>> =
        stream::iter(looks).buffer_unordered(client.parallelism()).try_collect().await?;
    Ok(sightings.into_iter().flatten().collect())
}

async fn look_at(
    client: &Client,
    look: &Look,
    wanted: &[Wanted<'_>],
    place: StorageOnNode,
    indices: Vec<usize>,
) -> Result<Vec<(usize, Sighting)>, ProviderError> {
    let contents: BTreeSet<&str> = indices.iter().map(|index| content_of(&wanted[*index])).collect();
    // One listing in any case: of the one kind of content, or of everything.
    let content = if contents.len() == 1 { contents.first().copied() } else { None };
    let node = text(wanted[indices[0]].spec, "node").unwrap_or_default();
    let mut listed = list_in(look, client, node, &place.storage, content).await;
    let is_unreachable =
        |listed: &Listed| matches!(listed.as_ref(), Err(error) if error.is_unreachable_node());
    if place.node.is_none() && is_unreachable(&listed) {
        // Every hypervisor sees the same content: any other one can be asked.
        for other in others(client, node).await? {
            listed = list_in(look, client, &other, &place.storage, content).await;
            if !is_unreachable(&listed) {
                break;
            }
        }
    }
    let named = format!("a volume on `{}`", place.storage);
    let rows = match listed.as_ref() {
        Ok(rows) => rows.as_slice(),
        // The storage has gone, and the volumes with it.
        Err(error) if error.says_no_storage(&place.storage) => &[],
        Err(error) => {
            if error.kind() == Some(&ApiErrorKind::NoSuchNode) && !is_node(client, node).await? {
                // Where there is no such hypervisor nothing is stored on it; what we know of is not forgotten for that.
                let sighting = |index: usize| match wanted[index].recorded {
                    Some(_) => Sighting::Unknown(absence::unreachable_node(node)),
                    None => Sighting::Absent,
                };
                return Ok(indices.into_iter().map(|index| (index, sighting(index))).collect());
            }
            let unseen =
                absence::unseen(error, node, &named).or_else(|| unlisted(error, &place.storage, node));
            let explained = || error.explain(&format!("list the volumes of `{}` on `{node}`", place.storage));
            let unseen = unseen.ok_or_else(explained)?;
            return Ok(indices.into_iter().map(|index| (index, Sighting::Unknown(unseen.clone()))).collect());
        }
    };
    let mut judged = Vec::with_capacity(indices.len());
    for index in indices {
        let wanted = &wanted[index];
        let sighting = match judge(wanted, rows) {
            Judged::Sure(sighting) => sighting,
            Judged::Unproven(row) => prove(client, wanted, node, row).await,
        };
        judged.push((index, sighting));
    }
    Ok(judged)
}

/// Whether the cluster has a hypervisor of this name; everybody may list them.
async fn is_node(client: &Client, name: &str) -> Result<bool, ProviderError> {
    Ok(nodes(client).await?.iter().any(|row| row.node == name))
}

/// What listing and state say of a volume.
#[derive(Debug)]
enum Judged<'r> {
    Sure(Sighting),
    /// It has a name of ours, and nothing here tells what is in it.
    Unproven(&'r ContentRow),
}

/// This is needed where a state was lost.
async fn prove(client: &Client, wanted: &Wanted<'_>, node: &str, row: &ContentRow) -> Sighting {
    let (volume, size) = (&row.volid, row.size.unwrap_or_default());
    match prove_download(client, wanted.spec, node, size).await {
        Ok(()) => Sighting::Ours(observed(wanted, row, size)),
        Err(why) => {
            let why = format!("{why}; remove it, and it is made again");
            Sighting::Unmanaged(Unmanaged::because(format!("volume `{volume}`"), why))
        }
    }
}

/// A name can be copied, so the node is asked how large the file is that we would download. Gives why a file of this size is not proven
/// to be that.
pub(crate) async fn prove_download(
    client: &Client,
    spec: &Spec,
    node: &str,
    size: i64,
) -> Result<(), String> {
    #[derive(serde::Deserialize)]
    struct Metadata {
        size: Option<i64>,
    }
    let Some(url) = text(spec, "url") else {
        return Err("its name is one of this repository, and nothing proves what is in it".to_owned());
    };
    let query = Params::new().with("url", url);
    let asked: Result<Metadata, CallError> =
        client.get(&format!("/nodes/{node}/query-url-metadata"), query).await;
    match asked {
        Ok(Metadata { size: Some(expected) }) if expected == size => Ok(()),
        Ok(Metadata { size: Some(expected) }) => {
            Err(format!("it has {size} bytes, what would be downloaded has {expected}"))
        }
        Ok(Metadata { size: None }) => {
            Err("its name is one of this repository, and its server does not state the size that would prove what is in it"
                .to_owned())
        }
        Err(error) => {
            let error = error.explain("ask for the size of the download").message;
            Err(format!("its name is one of this repository, and nothing proves what is in it: {error}"))
        }
    }
}

/// A storage that is switched off, not mounted or not on this node: its volumes are somewhere all the same.
fn unlisted(error: &CallError, storage: &str, node: &str) -> Option<Unseen> {
    let CallError::Api(api) = error else { return None };
    api.says_storage_away(storage).then(|| {
        Unseen::new(
            format!("the volumes of `{storage}` on `{node}` cannot be seen: {}", api.reason),
            format!("see that the storage `{storage}` is enabled and mounted on `{node}`, then plan again"),
        )
    })
}

async fn others(client: &Client, node: &str) -> Result<Vec<String>, ProviderError> {
    let online = |row: &NodeRow| row.node != node && row.status.as_deref() != Some("offline");
    Ok(nodes(client).await?.into_iter().filter(online).map(|row| row.node).collect())
}

async fn nodes(client: &Client) -> Result<Vec<NodeRow>, ProviderError> {
    client.get("/nodes", Params::new()).await.map_err(|error| error.explain("list the nodes"))
}

fn text<'s>(spec: &'s Spec, field: &str) -> Option<&'s str> {
    spec.get(field).and_then(Value::as_text)
}

/// `local:iso/x.iso` is an ISO, whatever else is known of it.
fn content_of<'a>(wanted: &'a Wanted<'a>) -> &'a str {
    let by_name = text(wanted.spec, "volume").and_then(|volume| volume.split_once(':')?.1.split_once('/'));
    by_name.map(|(content, _)| content).unwrap_or("iso")
}

type Listed = Arc<Result<Vec<ContentRow>, CallError>>;

async fn list_in(look: &Look, client: &Client, node: &str, storage: &str, content: Option<&str>) -> Listed {
    let (path, query) = listing_of(node, storage, content);
    client.listing(look, &path, query, |rows| rows).await
}

fn listing_of(node: &str, storage: &str, content: Option<&str>) -> (String, Params) {
    let mut query = Params::new();
    if let Some(content) = content {
        query.set("content", content);
    }
    (format!("/nodes/{node}/storage/{storage}/content"), query)
}

/// The size of a volume, if it is there.
pub(crate) async fn find_volume(
    client: &Client,
    node: &str,
    storage: &str,
    volume: &str,
) -> Result<Option<i64>, CallError> {
    let content =
        volume.split_once(':').and_then(|(_, name)| name.split_once('/')).map(|(content, _)| content);
    let (path, query) = listing_of(node, storage, content);
    let rows: Vec<ContentRow> = client.get(&path, query).await?;
    Ok(rows.into_iter().find(|row| row.volid == volume).map(|row| row.size.unwrap_or_default()))
}

fn judge<'r>(wanted: &Wanted<'_>, rows: &'r [ContentRow]) -> Judged<'r> {
    let Some(volume) = text(wanted.spec, "volume") else { return Judged::Sure(Sighting::Absent) };
    let Some(row) = rows.iter().find(|row| row.volid == volume) else {
        return Judged::Sure(Sighting::Absent);
    };
    let size = row.size.unwrap_or_default();
    let known = wanted.recorded.filter(|recorded| text(&recorded.spec, "volume") == Some(volume));
    if !volume.contains(wanted.lineage.short()) && known.is_none() {
        let what = format!("volume `{volume}`");
        return Judged::Sure(Sighting::Unmanaged(Unmanaged::new(what, Dispute::Unclaimed)));
    }
    let expected = [wanted.spec.get("size"), known.and_then(|known| known.facts.get("size"))]
        .into_iter()
        .flatten()
        .find_map(Value::as_int);
    let expected = expected.or_else(|| iso_size(wanted.spec));
    if let Some(expected) = expected.filter(|expected| *expected != size) {
        let why = format!("it has {size} bytes and not {expected}");
        return Judged::Sure(Sighting::Unmanaged(Unmanaged::because(format!("volume `{volume}`"), why)));
    }
    // A name can be copied. What is behind it is known by its size, by the state, or by a create of ours that was interrupted.
    if expected.is_none() && known.is_none() && wanted.begun.is_none() {
        return Judged::Unproven(row);
    }
    Judged::Sure(Sighting::Ours(observed(wanted, row, size)))
}

/// The size of the ISO that we would make, where its files are at hand.
fn iso_size(spec: &Spec) -> Option<i64> {
    let files = cidata::files(spec.get("files")?.as_map()?).ok()?;
    i64::try_from(cidata::build(&files).len()).ok()
}

fn observed(wanted: &Wanted<'_>, row: &ContentRow, size: i64) -> Observed {
    let mut spec: Spec = ["volume", "storage", "node"]
        .into_iter()
        .filter_map(|field| Some((field.to_owned(), wanted.spec.get(field)?.clone())))
        .collect();
    spec.insert("size".to_owned(), Value::Int(size));
    if wanted.address.kind().rules().knows(&FieldPath::root().child("content")) {
        let content = row.content.as_deref().unwrap_or_else(|| content_of(wanted));
        spec.insert("content".to_owned(), Value::text(content));
    }
    if let Some(vmid) = wanted.spec.get("vmid") {
        spec.insert("vmid".to_owned(), vmid.clone());
    }
    let digest = hex::encode(Sha256::digest(format!("{} {size}", row.volid)));
    Observed {
        spec,
        facts: volume_facts(size),
        digest,
        pending: Vec::new(),
        running: None,
        evidence: Default::default(),
    }
}

pub(crate) fn volume_facts(size: i64) -> Spec {
    [("size".to_owned(), Value::Int(size))].into()
}

#[cfg(test)]
mod tests {
    use strata_resource::Lineage;
    use strata_state::StateResource;

    use super::*;

    fn judged(name: &str, size: i64, spec_size: Option<i64>, recorded_size: Option<i64>) -> Option<Sighting> {
        judged_after(name, size, spec_size, recorded_size, false)
    }

    fn judged_after(
        name: &str,
        size: i64,
        spec_size: Option<i64>,
        recorded_size: Option<i64>,
        begun: bool,
    ) -> Option<Sighting> {
        let lineage = Lineage::derive("r", "dev/web");
        let address = crate::kinds::address("web/image/debian");
        let volume = format!("local:import/{}", name.replace("LINEAGE", lineage.short()));
        let mut spec: Spec = [
            ("volume".to_owned(), Value::Text(volume.clone())),
            ("storage".to_owned(), "local".into()),
            ("node".to_owned(), "pve1".into()),
            ("url".to_owned(), "https://images.example/debian.qcow2".into()),
        ]
        .into();
        spec.extend(spec_size.map(|size| ("size".to_owned(), Value::Int(size))));
        let recorded = recorded_size.map(|size| {
            let known = serde_json::json!({"target": "pve", "spec": {}, "stage": "prereqs"});
            let known: StateResource = serde_json::from_value(known).unwrap();
            StateResource { spec: spec.clone(), facts: volume_facts(size), ..known }
        });
        let wanted = Wanted {
            address: &address,
            spec: &spec,
            recorded: recorded.as_ref(),
            begun: begun.then_some(&spec),
            lineage: &lineage,
        };
        let row = ContentRow { volid: volume, size: Some(size), content: Some("import".into()) };
        match judge(&wanted, &[row]) {
            Judged::Sure(sighting) => Some(sighting),
            Judged::Unproven(_) => None,
        }
    }

    #[test]
    fn name_and_size_decide() {
        assert!(matches!(judged("LINEAGE-abc.qcow2", 10, Some(10), Some(10)), Some(Sighting::Ours(_))));
        assert!(matches!(judged("LINEAGE-abc.qcow2", 10, None, Some(11)), Some(Sighting::Unmanaged(_))));
        assert!(matches!(judged("LINEAGE-abc.qcow2", 10, Some(11), None), Some(Sighting::Unmanaged(_))));
        assert!(matches!(judged("debian.qcow2", 10, None, None), Some(Sighting::Unmanaged(_))));
        assert!(matches!(judged("LINEAGE-abc.qcow2", 10, Some(10), None), Some(Sighting::Ours(_))));
        // A name of the user's own choice is ours by the state.
        assert!(matches!(judged("debian.qcow2", 10, None, Some(10)), Some(Sighting::Ours(_))));
    }

    #[test]
    fn a12_a_name_alone_does_not_make_a_volume_ours() {
        assert!(judged("LINEAGE-abc.qcow2", 10, None, None).is_none());
        assert!(matches!(judged_after("LINEAGE-abc.qcow2", 10, None, None, true), Some(Sighting::Ours(_))));
        assert!(matches!(judged_after("debian.qcow2", 10, None, None, true), Some(Sighting::Unmanaged(_))));
    }
}
