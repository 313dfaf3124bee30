//! What images and ISOs have in common.

use strata_engine::Operation;
use strata_resource::{KindTable, Shape, Shown};
use strata_state::Action;

use crate::datacenter::spec_text;
use crate::preflight::{Needs, SEE_STORAGE};

/// A volume on a storage. Where the storage is shared, it is the same one whichever node is asked for it.
pub(super) const VOLUME: KindTable = KindTable {
    called: "{volume} on {node}",
    identity: &["storage", "node", "volume"],
    identity_if: Some(("shared", &["storage", "volume", "shared"])),
    recovery: "see \"Volumes\"",
    shown: Shown {
        shape: Shape::Volume,
        in_headline: &["node", "volume", "storage", "shared"],
        reported: &["volume", "node"],
        ..Shown::USUAL
    },
    create_first: true,
    lasting_facts: &["size"],
    journal_fields: &["node"],
    busy: super::guest::BUSY,
    ..KindTable::new("", "", &[])
};

/// To see a volume, and to delete it or bring it.
pub(super) fn needs(operation: &Operation, needs: &mut Needs<'_>, brings: &'static str) {
    let storage = format!("/storage/{}", spec_text(&operation.spec, "storage"));
    needs.add(SEE_STORAGE, vec![storage.clone()], "look for");
    match operation.action {
        Action::Delete => needs.add(&["Datastore.Allocate"], vec![storage], "delete"),
        Action::Create | Action::Update => {
            needs.add(&["Datastore.AllocateTemplate"], vec![storage], brings);
        }
    }
}
