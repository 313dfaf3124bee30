//! What the kinds of the datacenter have in common.

use strata_resource::{FieldRule, KindTable, Purpose, Said, Shown, fields};

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

/// Of whatever decides who gets through a firewall.
pub(super) static MAY_LOCK_OUT: &[FieldRule] = fields! {
    /// the source allows that Strata and people are kept away from hosts
    "may_lock_out": Bool => Computed [no_tofu(ONLY_APPLY)];
    /// where the hosts are managed from
    "managed_from": List => Computed [no_tofu(ONLY_APPLY)];
};

pub(super) const MARK_IN_COMMENT: &str =
    "the ownership mark at the end of its comment, or `adopt`, or the state";
pub(super) const NO_MARK: &str = "the state, or `adopt`: it has no comment that could hold an ownership mark";

/// Why `strata sync` does not render a field.
pub(super) const NO_FIELD: &str = "the provider has no field for it";
pub(super) const NO_OPTIONS: &str = "the provider takes no raw options of Proxmox";

/// The same, of what says how Strata goes about a change.
pub(super) const ONLY_APPLY: &str = "only `strata apply` uses it";

/// What a reader looks for first in a disk, a network device, an interface or a rule.
pub(super) const PARTS: &[(&str, Said)] = &[
    ("size", Said::Bare),
    ("storage", Said::On),
    ("model", Said::Bare),
    ("mac", Said::Bare),
    ("bridge", Said::On),
    ("vlan", Said::Named),
    ("ip", Said::Bare),
    ("cidr", Said::Bare),
    ("gateway", Said::Named),
    ("type", Said::BareInLists),
    ("action", Said::BareInLists),
    ("proto", Said::BareInLists),
    ("dport", Said::Named),
];

/// Somebody set it by hand or a run died: known from the first change on.
pub(super) const DATACENTER: KindTable = KindTable {
    shown: Shown { terse: true, parts: PARTS, ..Shown::USUAL },
    recorded_when_begun: true,
    recovery: "see \"The datacenter\"",
    busy: super::guest::BUSY,
    ..KindTable::new("", "", &[])
};
