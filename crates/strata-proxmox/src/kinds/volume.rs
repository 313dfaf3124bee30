//! What images and ISOs have in common.

use strata_resource::{KindTable, Shape, Shown};

/// A volume on a storage. Where the storage is shared, it is the same one whichever node is asked for it.
pub(super) const VOLUME: KindTable = KindTable {
    called: "{volume} on {node}",
    identity: &["storage", "node", "volume"],
    identity_if: Some(("shared", &["storage", "volume", "shared"])),
    proof: "the state, or a name that only we give",
    shown: Shown { shape: Shape::Volume, ..Shown::USUAL },
    create_first: true,
    lasting_facts: &["size"],
    journal_fields: &["node"],
    busy: super::guest::BUSY,
    ..KindTable::new("", "", &[])
};
