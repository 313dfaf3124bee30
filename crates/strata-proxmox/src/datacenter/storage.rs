//! Definitions of storages, and devices that guests refer to by name.

use std::collections::BTreeMap;

use async_trait::async_trait;
use strata_engine::ProviderError;
use strata_resource::{Spec, Value};

use super::family::{Family, Job, LiveObject, NextCall};
use super::simple::{Field, Shape, Simple, Unset};
use crate::client::{CallError, Client};

pub(super) static STORAGE: Simple = Simple {
    word: "storage",
    id: ("storage", "storage"),
    list: "/storage",
    list_query: &[],
    id_in_path: true,
    comment: None,
    fields: &[
        Field::new("type", "type", Shape::Text).fixed(),
        Field::new("content", "content", Shape::List),
        Field::new("nodes", "nodes", Shape::List),
        Field::new("shared", "shared", Shape::Flag),
        Field::new("enabled", "disable", Shape::Opposite),
        Field::new("path", "path", Shape::Text).fixed(),
        Field::new("server", "server", Shape::Text),
        Field::new("export", "export", Shape::Text).fixed(),
        Field::new("share", "share", Shape::Text).fixed(),
        Field::new("datastore", "datastore", Shape::Text).fixed(),
        Field::new("namespace", "namespace", Shape::Text),
        Field::new("fingerprint", "fingerprint", Shape::Text),
        Field::new("username", "username", Shape::Text),
        Field::new("password", "password", Shape::Secret),
        Field::new("volume_group", "vgname", Shape::Text).fixed(),
        Field::new("thin_pool", "thinpool", Shape::Text).fixed(),
        Field::new("pool", "pool", Shape::Text),
        Field::new("sparse", "sparse", Shape::Flag),
    ],
    unset: Unset::Delete,
    takes_digest: true,
    rest: Some("options"),
    reserved: |_| None,
    apart: None,
};

const fn mapping(list: &'static str, fields: &'static [Field]) -> Simple {
    Simple {
        word: "mapping",
        id: ("mapping", "id"),
        list,
        list_query: &[],
        id_in_path: true,
        comment: Some("description"),
        fields,
        unset: Unset::Delete,
        takes_digest: true,
        rest: None,
        reserved: |_| None,
        apart: None,
    }
}

static PCI: Simple = mapping(
    "/cluster/mapping/pci",
    &[Field::new("devices", "map", Shape::Devices).always(), Field::new("mediated", "mdev", Shape::Flag)],
);
static USB: Simple =
    mapping("/cluster/mapping/usb", &[Field::new("devices", "map", Shape::Devices).always()]);

/// Devices of both buses; a name may be on each of them.
pub(super) struct Mappings;
pub(super) static MAPPING: Mappings = Mappings;

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
