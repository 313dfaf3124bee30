//! Objects of the datacenter that nobody manages: everything that there is of them, for whoever adopts them.

use std::collections::{BTreeMap, BTreeSet};

use strata_resource::{CommentMark, Kind, Spec};

use crate::client::{CallError, Client};
use crate::datacenter::{Family, LiveObject};
use crate::kinds;
use crate::marked_objects::Found;

/// An object of the datacenter as it is, with every field that a spec can have.
#[derive(Debug, Clone)]
pub struct DatacenterObject {
    pub kind: Kind,
    /// ``pool `web` ``.
    pub described: String,
    pub spec: Spec,
    pub mark: Option<CommentMark>,
    /// Why it is never ours: it is built into Proxmox.
    pub reserved: Option<&'static str>,
    /// What no spec says of it, one line each.
    pub notes: Vec<String>,
}

/// All objects of these kinds, or of every kind. What may not be listed is named.
pub(crate) async fn live_objects(client: &Client, only: Option<&BTreeSet<Kind>>) -> Found<DatacenterObject> {
    let (mut found, mut unseen) = (Vec::new(), Vec::new());
    for managed in kinds::all() {
        let kind = managed.table().kind();
        let Some(family) = managed.family().filter(|_| only.is_none_or(|only| only.contains(&kind))) else {
            continue;
        };
        let described = |name: &str| format!("{} `{name}`", family.word());
        let all = match listed(client, family, &mut unseen).await {
            Ok(all) => all,
            Err(error) => {
                unseen.push(format!("each {} ({error})", family.word()));
                continue;
            }
        };
        // What is always there is nobody's, and nothing is said of it yet.
        let table = managed.table();
        let says_nothing = |live: &LiveObject| {
            let named = |field: &String| table.identity.contains(&field.as_str());
            table.always_there && live.unread.is_empty() && live.spec.keys().all(named)
        };
        let all = all.into_iter().filter(|(_, live)| !says_nothing(live));
        found.extend(all.map(|(name, live)| {
            let note = |key: &String| format!("`{key}` has no key in the YAML: it stays as it is");
            let notes = live.unread.iter().map(note).collect();
            let LiveObject { spec, mark, reserved, .. } = live;
            DatacenterObject { kind, described: described(&name), spec, mark, reserved, notes }
        }));
    }
    Found { found, unseen }
}

/// What there is of one kind. One object, or one host, that does not answer says nothing about the others.
async fn listed(
    client: &Client,
    family: &dyn Family,
    unseen: &mut Vec<String>,
) -> Result<BTreeMap<String, LiveObject>, CallError> {
    let asked = family.everything(client).await?;
    match family.list(client, &asked.iter().collect::<Vec<_>>()).await {
        Err(_) if asked.len() > 1 => {}
        all => return all,
    }
    let mut found = BTreeMap::new();
    for spec in &asked {
        match family.list(client, &[spec]).await {
            Ok(one) => found.extend(one),
            Err(error) => {
                let name = family.key(spec).unwrap_or_default();
                unseen.push(format!("{} `{name}` ({error})", family.word()));
            }
        }
    }
    Ok(found)
}
