//! Devices that guests refer to by name.

use std::collections::BTreeMap;

use async_trait::async_trait;
use strata_engine::{Operation, ProviderError};
use strata_resource::{FieldType, KindTable, Spec, Value, kind};

use super::managed::ManagedKind;
use super::shared::{DATACENTER, MARK_IN_COMMENT, MARKED};
use crate::client::{CallError, Client};
use crate::datacenter::{Family, Job, LiveObject, NextCall, Parts, ShownBy, Simple, Unset, spec_text};
use crate::preflight::{Needs, verb};

kind! {
    /// A device that guests refer to by name.
    "mapping" {
        called: "{bus:upper} device {mapping}",
        identity: &["bus", "mapping"],
        proof: MARK_IN_COMMENT,
        digest_on: "every change",
        shares: &[MARKED],
        at_once: true,
        ..DATACENTER
    }
    /// `pci` or `usb`
    "bus": Text => InPlace;
    /// its name
    "mapping": Text => InPlace [remote("id")];
    /// it is divided among guests
    "mediated": Bool => InPlace [remote("mdev"), off_by_default];
    /// the devices of each hypervisor
    "devices": List => InPlace [remote("map"), always_sent, set];
}

/// The parts of a device, and what they are called in a spec.
const DEVICE: Parts = &[
    ("node", "node", FieldType::Text),
    ("path", "path", FieldType::Text),
    ("id", "id", FieldType::Text),
    ("subsystem-id", "subsystem_id", FieldType::Text),
    ("iommugroup", "iommu_group", FieldType::Int),
];

const fn rows(list: &'static str) -> Simple {
    Simple {
        id: "mapping",
        comment: Some("description"),
        unset: Unset::Delete,
        takes_digest: true,
        parts: &[("devices", DEVICE)],
        derived: &["type", "checks", "error"],
        ..Simple::new("mapping", list, &TABLE)
    }
}

static PCI: Simple = rows("/cluster/mapping/pci");
static USB: Simple = rows("/cluster/mapping/usb");

pub(super) struct Mapping;

#[async_trait]
impl ManagedKind for Mapping {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&Mappings)
    }

    fn shown_by(&self, spec: &Spec) -> Option<ShownBy> {
        let path = format!("/mapping/{}/{}", spec_text(spec, "bus"), spec_text(spec, "mapping"));
        Some(ShownBy::any_of(&["Mapping.Audit", "Mapping.Modify", "Mapping.Use"], path))
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        let bus = format!("/mapping/{}", spec_text(&operation.spec, "bus"));
        needs.add(&["Mapping.Modify"], vec![bus], verb(operation));
    }
}

/// Devices of both buses; a name may be on each of them.
struct Mappings;

impl Mappings {
    fn bus(spec: &Spec) -> (&'static str, &'static Simple) {
        match spec.get("bus").and_then(Value::as_text) {
            Some("usb") => ("usb", &USB),
            _ => ("pci", &PCI),
        }
    }
}

#[async_trait]
impl Family for Mappings {
    fn word(&self) -> &'static str {
        "mapping"
    }

    fn key(&self, spec: &Spec) -> Option<String> {
        let (bus, family) = Self::bus(spec);
        Some(format!("{bus}/{}", family.key(spec)?))
    }

    async fn everything(&self, _: &Client) -> Result<Vec<Spec>, CallError> {
        Ok(["pci", "usb"].map(|bus| Spec::from([("bus".to_owned(), Value::text(bus))])).into())
    }

    async fn list_all(&self, client: &Client) -> Result<BTreeMap<String, LiveObject>, CallError> {
        let mut found = BTreeMap::new();
        for (bus, family) in [("pci", &PCI), ("usb", &USB)] {
            let all = family.list(client, &[]).await?;
            found.extend(all.into_iter().map(|(name, live)| (format!("{bus}/{name}"), live)));
        }
        Ok(found)
    }

    async fn list(
        &self,
        client: &Client,
        asked: &[&Spec],
    ) -> Result<BTreeMap<String, LiveObject>, CallError> {
        let mut found = BTreeMap::new();
        for name in ["pci", "usb"] {
            let Some((bus, family)) = asked.iter().map(|spec| Self::bus(spec)).find(|(bus, _)| *bus == name)
            else {
                continue;
            };
            for (key, mut live) in family.list(client, asked).await? {
                live.spec.insert("bus".to_owned(), Value::text(bus));
                found.insert(format!("{bus}/{key}"), live);
            }
        }
        Ok(found)
    }

    fn next(&self, job: &Job<'_>, live: Option<&LiveObject>) -> Result<Option<NextCall>, ProviderError> {
        Self::bus(job.spec()).1.next(job, live)
    }
}
