//! A NoCloud ISO for one VM. The hash of its content is part of its name, so a change is another volume. Every file is a secret here: the
//! state holds a digest of it, never the text.

use async_trait::async_trait;
use strata_engine::{Operation, Outcome, ProviderError};
use strata_resource::{KindTable, Shown, kind};
use strata_state::Action;

use super::managed::ManagedKind;
use super::volume::{self, VOLUME};
use crate::execute::{self, Work};
use crate::preflight::{NamedPlaces, Needs};

kind! {
    /// A NoCloud ISO that Strata makes and uploads, for one VM.
    "cidata" {
        proof: "its name holds lineage, VMID and content hash, and its size is the one that its files make",
        shown: Shown {
            in_headline: &["vmid", "node", "files", "volume", "storage", "shared"],
            reported: &["vmid", "volume", "node"],
            ..VOLUME.shown
        },
        ..VOLUME
    }
    /// the volume
    "volume": Text => Replace [because("the cloud-init data changed")];
    /// the storage that it is on
    "storage": Text => Replace [because("the ISO belongs on another storage")];
    /// the hypervisor that has it
    "node": Text => Replace [because("the storage is not shared between hypervisors")];
    /// the storage is the same on every hypervisor
    "shared": Bool => CreateOnly;
    /// the VM that it is for
    "vmid": Int => InPlace;
    /// its files, by name
    "files": Map => CreateOnly [write_only];
    /// user-data, meta-data, vendor-data, network-config
    "files.*": Text => CreateOnly [write_only];
    /// its size
    "size": Int => CreateOnly [bytes];
}

pub(super) struct Cidata;

#[async_trait]
impl ManagedKind for Cidata {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn is_volume(&self) -> bool {
        true
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        volume::needs(operation, needs, "upload");
    }

    fn places<'a>(&self, operation: &'a Operation, places: &mut NamedPlaces<'a>) {
        places.add_volume(operation);
    }

    async fn execute(&self, work: &Work<'_>) -> Result<Outcome, ProviderError> {
        match work.operation.action {
            Action::Create | Action::Update => execute::cidata(work).await,
            Action::Delete => execute::delete_volume(work).await,
        }
    }
}
