//! Which remote object is meant: a target, and the identity there.

use strata_resource::{Kind, Lineage, Spec, Value};
use strata_state::{DeposedObject, OpenEntry, StateResource};

/// Two specs with equal places are about the same object, whatever their addresses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectKey {
    target: String,
    /// Some kinds share one series of numbers: a VM and a container cannot both be 100.
    namespace: &'static str,
    identity: String,
}

impl ObjectKey {
    pub(crate) fn of(kind: Kind, target: &str, spec: &Spec) -> Self {
        let identity = serde_json::Value::from(Value::Map(kind.table().identity_of(spec))).to_string();
        Self { target: target.to_owned(), namespace: kind.table().namespace, identity }
    }

    /// The place with another text in its identity.
    pub(crate) fn renamed(mut self, from: &Lineage, to: &str) -> Self {
        self.identity = from.replaced_in(&self.identity, to);
        self
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
