//! The time zone of a host.

use async_trait::async_trait;
use strata_engine::Operation;
use strata_resource::{KindTable, Value, kind};

use super::managed::ManagedKind;
use super::shared::{ADOPT, DATACENTER};
use crate::api::Params;
use crate::datacenter::{Family, Setting, row_text, spec_text};
use crate::preflight::{NamedPlaces, Needs};

kind! {
    /// The time zone of a host.
    "timezone" {
        called: "time zone of {clock}",
        identity: &["clock"],
        proof: "nobody's: a host cannot be without it",
        recovery: "set again, which changes nothing",
        shares: &[ADOPT],
        always_there: true,
        ..DATACENTER
    }
    /// the host
    "clock": Text => InPlace;
    /// its time zone
    "zone": Text => InPlace [remote("timezone")];
}

static SETTING: Setting = Setting {
    word: "time zone of",
    node: "clock",
    path: "time",
    read: |row, spec| {
        spec.extend(row_text(row, "timezone").map(|zone| ("zone".to_owned(), Value::Text(zone))));
    },
    write: |spec, _| Ok(Params::new().with("timezone", spec_text(spec, "zone"))),
};

pub(super) struct Timezone;

#[async_trait]
impl ManagedKind for Timezone {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&SETTING)
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        needs.host(operation, spec_text(&operation.spec, "clock"));
    }

    fn places<'a>(&self, operation: &'a Operation, places: &mut NamedPlaces<'a>) {
        places.add_node(spec_text(&operation.spec, "clock"), operation);
    }
}
