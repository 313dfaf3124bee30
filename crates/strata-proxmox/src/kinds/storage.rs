//! Definitions of storages; what is stored there is not part of them.

use async_trait::async_trait;
use strata_engine::{Finding, Operation, ProviderError, Review};
use strata_resource::{KindTable, Shown, Spec, Value, kind};
use strata_state::Action;

use super::acl;
use super::managed::ManagedKind;
use super::shared::{ADOPT, DATACENTER, NO_MARK, NO_OPTIONS};
use crate::client::Client;
use crate::datacenter::{Family, LiveObject, PlannedPlaces, ShownBy, Simple, Unset, spec_text};
use crate::preflight::{Needs, SEE_STORAGE, verb};

const FIXED: &str = "Proxmox cannot change it: the definition is removed and recreated; what is stored stays";

kind! {
    /// The definition of a storage.
    "storage" {
        called: "storage {storage}, {type}",
        identity: &["storage"],
        proof: NO_MARK,
        digest_on: "every change",
        shares: &[ADOPT],
        at_once: true,
        shown: Shown { in_headline: &["type"], removal: |_, _| "no longer defined", ..DATACENTER.shown },
        ..DATACENTER
    }
    /// its name
    "storage": Text => InPlace [remote("storage")];
    /// `dir`, `nfs`, `zfspool`, …
    "type": Text => Replace [remote("type"), because(FIXED)];
    /// what may be stored
    "content": List => InPlace [remote("content"), set];
    /// the hypervisors that have it
    "nodes": List => InPlace [remote("nodes"), set];
    /// it is the same on every hypervisor
    "shared": Bool => InPlace [remote("shared"), off_by_default];
    /// it is used
    "enabled": Bool => InPlace [inverted("disable"), on_by_default];
    /// space is taken when it is written
    "sparse": Bool => InPlace [remote("sparse"), off_by_default];
    /// the password of its server
    "password": Text => InPlace [remote("password"), write_only];
    /// any other key of Proxmox
    "options.*": Text => InPlace [no_tofu(NO_OPTIONS)];
    /// a folder of the host
    "path": Text => Replace [remote("path"), because(FIXED)];
    /// the server that it is on
    "server": Text => Replace [remote("server"), because(FIXED)];
    /// the export of an NFS server
    "export": Text => Replace [remote("export"), because(FIXED)];
    /// the share of an SMB server
    "share": Text => Replace [remote("share"), because(FIXED)];
    /// the datastore of a backup server
    "datastore": Text => Replace [remote("datastore"), because(FIXED)];
    /// the namespace on a backup server
    "namespace": Text => InPlace [remote("namespace")];
    /// the fingerprint of a server's certificate
    "fingerprint": Text => InPlace [remote("fingerprint")];
    /// the user of a server
    "username": Text => InPlace [remote("username")];
    /// an LVM volume group
    "volume_group": Text => Replace [remote("vgname"), because(FIXED)];
    /// an LVM thin pool
    "thin_pool": Text => Replace [remote("thinpool"), because(FIXED)];
    /// a pool of ZFS or Ceph
    "pool": Text => Replace [remote("pool"), because(FIXED)];
}

static ROWS: Simple = Simple {
    unset: Unset::Delete,
    takes_digest: true,
    rest: Some("options"),
    ..Simple::new("storage", "/storage", &TABLE)
};

fn path(spec: &Spec) -> String {
    format!("/storage/{}", spec_text(spec, "storage"))
}

pub(super) struct Storage;

#[async_trait]
impl ManagedKind for Storage {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&ROWS)
    }

    fn shown_by(&self, spec: &Spec) -> Option<ShownBy> {
        Some(ShownBy::any_of(SEE_STORAGE, path(spec)))
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        needs.add(SEE_STORAGE, vec![path(&operation.spec)], "look at");
        needs.add(&["Datastore.Allocate"], vec!["/storage".to_owned()], verb(operation));
    }

    fn provides(&self, spec: &Spec, planned: &mut PlannedPlaces) {
        let contents = spec.get("content").and_then(Value::as_list).into_iter().flatten();
        for content in contents.filter_map(Value::as_text) {
            planned.add_storage(spec_text(spec, "storage"), content);
        }
    }

    fn remark(&self, operation: &Operation) -> Option<String> {
        let remark = "only its definition goes, with its password and what others may do there: what is stored stays where it is";
        (operation.action == Action::Delete).then(|| remark.to_owned())
    }

    async fn preconditions(
        &self,
        client: &Client,
        own: &[&Operation],
        review: Review<'_>,
    ) -> Result<Vec<Finding>, ProviderError> {
        let is_delete = |operation: &&Operation| operation.action == Action::Delete;
        let deletes: Vec<&Operation> = own.iter().copied().filter(is_delete).collect();
        lost_with(client, &deletes, review.operations).await
    }
}

/// A definition takes along what nobody can give back: keys that only Proxmox has, and what others may do there.
async fn lost_with(
    client: &Client,
    deletes: &[&Operation],
    all: &[Operation],
) -> Result<Vec<Finding>, ProviderError> {
    if deletes.is_empty() {
        return Ok(Vec::new());
    }
    let goes = |entry: &str| {
        let is = |operation: &Operation| acl::Entries.key(&operation.spec).as_deref() == Some(entry);
        all.iter().any(|operation| {
            operation.action == Action::Delete && operation.address.kind() == acl::KIND && is(operation)
        })
    };
    let look = futures::future::try_join(ROWS.list(client, &[]), acl::Entries.list(client, &[]));
    let (storages, permissions) =
        look.await.map_err(|error| error.explain("look at the storages that are to go"))?;
    let mut found = Vec::new();
    for operation in deletes.iter().copied() {
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
        let lost: Vec<&str> = there.map(|(key, _)| key.as_str()).filter(|entry| !goes(entry)).collect();
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
