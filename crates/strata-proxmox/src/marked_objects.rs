//! What carries an ownership mark in a comment, or a name of ours, among all that there is.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use strata_engine::ProviderError;
use strata_resource::{CommentMark, Kind};

use crate::api::{ContentRow, Params, flag};
use crate::client::Client;
use crate::kinds;

/// An object of the datacenter with a mark in its comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkedObject {
    pub kind: Kind,
    pub name: String,
    pub mark: CommentMark,
    /// ``pool `web` ``.
    pub described: String,
}

/// A volume whose name holds a lineage of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedVolume {
    pub volume: String,
    /// The short form that its name holds.
    pub lineage: String,
    /// ``volume `local:iso/….iso` on `pve1` ``.
    pub described: String,
}

/// What was found, and what could not be listed.
#[derive(Debug, Clone)]
pub struct Found<T> {
    pub found: Vec<T>,
    pub unseen: Vec<String>,
}

/// Every object whose kind can carry a mark. What may not be listed is no reason to fail: it is named.
pub(crate) async fn marked_objects(client: &Client) -> Found<MarkedObject> {
    let (mut found, mut unseen) = (Vec::new(), Vec::new());
    for managed in kinds::all().filter(|managed| managed.table().mark_field().is_some()) {
        let Some(family) = managed.family() else { continue };
        match family.list_all(client).await {
            Ok(all) => found.extend(all.into_iter().filter_map(|(name, live)| {
                let described = format!("{} `{name}`", family.word());
                Some(MarkedObject { kind: managed.table().kind(), mark: live.mark?, name, described })
            })),
            Err(error) => {
                unseen.push(format!("the list of kind `{}` ({error})", managed.table().name));
            }
        }
    }
    Found { found, unseen }
}

#[derive(Deserialize)]
struct StorageRow {
    storage: String,
    node: String,
    #[serde(default, deserialize_with = "flag")]
    shared: bool,
}

/// Every volume that is named after one of these lineages: one listing for each storage and node.
pub(crate) async fn named_volumes(
    client: &Client,
    lineages: &BTreeSet<String>,
) -> Result<Found<NamedVolume>, ProviderError> {
    let query = Params::new().with("type", "storage");
    let rows: Vec<StorageRow> =
        client.get("/cluster/resources", query).await.map_err(|error| error.explain("list the storages"))?;
    let mut places: BTreeMap<(String, Option<String>), Vec<String>> = BTreeMap::new();
    for StorageRow { storage, node, shared } in rows {
        places.entry((storage, (!shared).then(|| node.clone()))).or_default().push(node);
    }
    let (mut found, mut unseen) = (Vec::new(), Vec::new());
    for ((storage, own), nodes) in places {
        let mut last = None;
        // What is shared can be asked of any hypervisor that answers.
        for node in &nodes {
            let path = format!("/nodes/{node}/storage/{storage}/content");
            match client.get::<Vec<ContentRow>>(&path, Params::new()).await {
                Ok(rows) => {
                    let at = own.as_ref().map(|node| format!(" on `{node}`")).unwrap_or_default();
                    found.extend(rows.into_iter().filter_map(|row| named(row, lineages, &at)));
                    last = None;
                    break;
                }
                Err(error) => last = Some(error),
            }
        }
        if let Some(error) = last {
            unseen.push(format!("the volumes on `{storage}` ({error})"));
        }
    }
    Ok(Found { found, unseen })
}

fn named(row: ContentRow, lineages: &BTreeSet<String>, at: &str) -> Option<NamedVolume> {
    let file = row.volid.rsplit([':', '/']).next()?;
    let lineage = file.strip_prefix("strata-")?.split('-').next()?;
    lineages.contains(lineage).then(|| NamedVolume {
        lineage: lineage.to_owned(),
        described: format!("volume `{}`{at}", row.volid),
        volume: row.volid.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_ours_begins_with_the_lineage() {
        let lineages = BTreeSet::from(["0123456789ab".to_owned()]);
        let lineage = |volid: &str| {
            let row = serde_json::from_value(serde_json::json!({"volid": volid})).unwrap();
            named(row, &lineages, " on `pve1`").map(|volume| volume.described)
        };
        assert_eq!(
            lineage("local:iso/strata-0123456789ab-rescue-1.iso").as_deref(),
            Some("volume `local:iso/strata-0123456789ab-rescue-1.iso` on `pve1`")
        );
        assert_eq!(lineage("local:iso/strata-ffffffffffff-rescue-1.iso"), None);
        assert_eq!(lineage("local:iso/debian-0123456789ab.iso"), None);
        assert_eq!(lineage("local-lvm:vm-100-disk-0"), None);
    }
}
