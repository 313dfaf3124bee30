//! Which remote object is meant: a target, and the identity there.

use strata_resource::{Kind, Spec, Value, identity_of};
use strata_state::{DeposedObject, OpenEntry, StateResource};

/// Two specs with equal places are about the same object, whatever their addresses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    target: String,
    /// VMs and containers share their numbers, images and ISOs their names.
    guest: bool,
    identity: String,
}

impl Place {
    pub(crate) fn of(kind: Kind, target: &str, spec: &Spec) -> Self {
        let identity = serde_json::Value::from(Value::Map(identity_of(kind, spec))).to_string();
        Self { target: target.to_owned(), guest: kind.is_guest(), identity }
    }

    pub(crate) fn of_record(kind: Kind, record: &StateResource) -> Self {
        Self::of(kind, &record.target, &record.spec)
    }

    pub(crate) fn of_former(kind: Kind, former: &DeposedObject) -> Self {
        Self::of(kind, &former.target, &former.spec)
    }

    pub(crate) fn of_entry(entry: &OpenEntry) -> Self {
        Self::of(entry.address.kind(), &entry.target, &entry.identity)
    }
}
