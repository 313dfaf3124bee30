//! Guests that carry an ownership mark, among those that nobody asked about.

use std::collections::BTreeSet;

use futures::stream::{self, StreamExt};
use strata_engine::ProviderError;
use strata_resource::Mark;

use crate::api::GuestRow;
use crate::client::Client;
use crate::codec::GuestKind;
use crate::guest::{Guest, cluster_guests};
use crate::ownership::describe;

/// A guest with a mark that is its own: a copy carries that of another VMID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkedGuest {
    pub vmid: u32,
    pub node: String,
    pub mark: Mark,
    /// ``VM 9100 `db` on `pve2` ``.
    pub described: String,
}

/// What was found, and how many guests were not looked at.
#[derive(Debug, Clone, Default)]
pub struct MarkedGuests {
    pub found: Vec<MarkedGuest>,
    pub unseen: usize,
}

/// Looks at guests that are not `known`. A mark is in the notes, and no listing shows these: each guest costs a read. The nearest to a
/// VMID of ours are read first, and at most `limit`.
pub(crate) async fn marked_guests(
    client: &Client,
    known: &BTreeSet<u32>,
    limit: usize,
) -> Result<MarkedGuests, ProviderError> {
    let rows = cluster_guests(client).await.map_err(|error| error.explain("list the guests"))?;
    let mut rows: Vec<GuestRow> = rows.into_iter().filter(|row| !known.contains(&row.vmid)).collect();
    rows.sort_by_key(|row| (distance(row.vmid, known), row.vmid));
    let mut seen = MarkedGuests { found: Vec::new(), unseen: rows.len().saturating_sub(limit) };
    let looks = rows.iter().take(limit).map(|row| look(client, row));
    let mut looks = stream::iter(looks.collect::<Vec<_>>()).buffer_unordered(client.parallelism());
    while let Some(found) = looks.next().await {
        match found {
            Ok(found) => seen.found.extend(found),
            Err(()) => seen.unseen += 1,
        }
    }
    seen.found.sort_by_key(|guest| guest.vmid);
    Ok(seen)
}

fn distance(vmid: u32, known: &BTreeSet<u32>) -> u32 {
    let below = known.range(..vmid).next_back().map(|near| vmid - near);
    let above = known.range(vmid..).next().map(|near| near - vmid);
    below.into_iter().chain(above).min().unwrap_or(u32::MAX)
}

/// What may not be seen, or goes away meanwhile, is no reason to fail.
async fn look(client: &Client, row: &GuestRow) -> Result<Option<MarkedGuest>, ()> {
    let kind = if row.kind.as_deref() == Some("lxc") { GuestKind::Lxc } else { GuestKind::Qemu };
    let guest = Guest { kind, node: row.node.as_deref().unwrap_or_default().to_owned(), vmid: row.vmid };
    let config = guest.config_if_any(client).await.map_err(|_| ())?;
    let notes = config.as_ref().and_then(|config| config.get("description")).unwrap_or_default();
    let mark = Mark::split_from_notes(notes).0.filter(|mark| mark.vmid == row.vmid);
    Ok(mark.map(|mark| MarkedGuest {
        vmid: row.vmid,
        node: guest.node.clone(),
        described: describe(&guest, row.name.as_deref()),
        mark,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_come_first() {
        let known = BTreeSet::from([100, 9100]);
        assert_eq!(distance(9101, &known), 1);
        assert_eq!(distance(99, &known), 1);
        assert_eq!(distance(600, &known), 500);
        assert_eq!(distance(600, &BTreeSet::new()), u32::MAX);
    }
}
