//! What the kinds of the datacenter have in common.

use strata_resource::{FieldRule, KindTable, Purpose, Shown, fields};

/// Of every kind that the source may take over.
pub(super) static ADOPT: &[FieldRule] = fields! {
    /// what is there already is taken over
    "adopt": Bool => Computed [purpose(Purpose::Adopt)];
};

/// Of those that have a comment, too.
pub(super) static MARKED: &[FieldRule] = fields! {
    /// what is there already is taken over
    "adopt": Bool => Computed [purpose(Purpose::Adopt)];
    /// the ownership mark at the end of the comment
    "mark": Text => InPlace [purpose(Purpose::Mark)];
    /// what people read of it
    "comment": Text => InPlace [default_text("")];
};

pub(super) const MARK_IN_COMMENT: &str =
    "the ownership mark at the end of its comment, or `adopt`, or the state";
pub(super) const NO_MARK: &str = "the state, or `adopt`: it has no comment that could hold a mark";

/// Somebody set it by hand or a run died: known from the first change on.
pub(super) const DATACENTER: KindTable = KindTable {
    shown: Shown { terse: true, ..Shown::USUAL },
    recorded_when_begun: true,
    busy: super::guest::BUSY,
    ..KindTable::new("", "", &[])
};
