//! Definitions of storages, and devices that guests refer to by name.

use std::collections::BTreeMap;

use async_trait::async_trait;
use strata_engine::{Finding, Operation, ProviderError};
use strata_resource::{Kind, Spec, Value};
use strata_state::Action;

use super::acl::ACL;
use super::family::{Family, Job, LiveObject, NextCall, spec_text};
use super::simple::{Field, Shape, Simple, Unset};
use crate::client::{CallError, Client};
use crate::kinds;

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
        Field::new("server", "server", Shape::Text).fixed(),
        Field::new("export", "export", Shape::Text).fixed(),
        Field::new("share", "share", Shape::Text).fixed(),
        Field::new("datastore", "datastore", Shape::Text).fixed(),
        Field::new("namespace", "namespace", Shape::Text),
        Field::new("fingerprint", "fingerprint", Shape::Text),
        Field::new("username", "username", Shape::Text),
        Field::new("password", "password", Shape::Secret),
        Field::new("volume_group", "vgname", Shape::Text).fixed(),
        Field::new("thin_pool", "thinpool", Shape::Text).fixed(),
        Field::new("pool", "pool", Shape::Text).fixed(),
        Field::new("sparse", "sparse", Shape::Flag),
    ],
    unset: Unset::Delete,
    replaces: false,
    takes_digest: true,
    rest: Some("options"),
    reserved: |_| None,
    apart: None,
};

/// A definition takes along what nobody can give back: keys that only Proxmox has, and what others may do there.
pub(super) async fn preconditions(
    client: &Client,
    operations: &[Operation],
) -> Result<Vec<Finding>, ProviderError> {
    let of = |kind: Kind| {
        let goes = move |operation: &&Operation| {
            operation.action == Action::Delete && operation.address.kind() == kind
        };
        operations.iter().filter(goes)
    };
    if of(kinds::STORAGE).next().is_none() {
        return Ok(Vec::new());
    }
    let look = futures::future::try_join(STORAGE.list(client, &[]), ACL.list(client, &[]));
    let (storages, permissions) =
        look.await.map_err(|error| error.explain("look at the storages that are to go"))?;
    let mut found = Vec::new();
    for operation in of(kinds::STORAGE) {
        let name = spec_text(&operation.spec, "storage");
        let mut object = |message: String, hint: &str| {
            found.push(Finding::precondition(operation, message, hint));
        };
        if let Some(key) = storages.get(name).and_then(key_of) {
            object(
                format!("Proxmox destroys the {key} of the storage `{name}` together with its definition"),
                "keep a copy of it, delete the storage in Proxmox, and plan again",
            );
        }
        let path = format!("/storage/{name}");
        let there = permissions.iter().filter(|(_, entry)| spec_text(&entry.spec, "path") == path);
        // Those that the same plan takes away go before it.
        let lost: Vec<&str> = there
            .map(|(key, _)| key.as_str())
            .filter(|key| !of(kinds::ACL).any(|gone| ACL.key(&gone.spec).as_deref() == Some(*key)))
            .collect();
        if !lost.is_empty() {
            object(
                format!(
                    "Proxmox drops the permissions on the storage `{name}` together with its definition: {}",
                    lost.join(", ")
                ),
                "take them away first, and give them again afterwards",
            );
        }
    }
    Ok(found)
}

/// What Proxmox keeps for a storage, was told once, and never tells.
fn key_of(live: &LiveObject) -> Option<&'static str> {
    let options = live.spec.get("options").and_then(Value::as_map)?;
    let has = |key: &str| options.contains_key(key);
    match spec_text(&live.spec, "type") {
        "pbs" if has("encryption-key") => Some("encryption key"),
        "pbs" if has("master-pubkey") => Some("master key"),
        // A Ceph of its own is asked for a key whenever a storage is made.
        "rbd" | "cephfs" if has("monhost") => Some("keyring"),
        _ => None,
    }
}

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
        replaces: false,
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
