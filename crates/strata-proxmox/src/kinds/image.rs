//! A volume that Proxmox downloads itself. Its name says what it is, so another content is another volume.

use async_trait::async_trait;
use strata_engine::{Operation, Outcome, ProviderError};
use strata_resource::{Content, KindTable, Shown, kind};
use strata_state::Action;

use super::managed::ManagedKind;
use super::shared::NO_FIELD;
use super::volume::{self, VOLUME};
use crate::datacenter::spec_text;
use crate::execute::{self, Work};
use crate::preflight::{NamedPlaces, Needs};

kind! {
    /// An ISO, a cloud image or a container archive that Proxmox downloads.
    "image" {
        proof: "its name holds the lineage's short form and what is in it (checksum, or schematic, version and architecture), and its size is the expected one; or the state",
        content: Some(Content { name: "volume", by: &["checksum", "url"] }),
        shown: Shown {
            in_headline: &["node", "volume", "storage", "shared", "content"],
            first: &["url", "checksum"],
            ..VOLUME.shown
        },
        ..VOLUME
    }
    /// the volume
    "volume": Text => Replace [because("another image is another volume")];
    /// the storage that it is on
    "storage": Text => Replace [because("an image stays on the storage it was downloaded to")];
    /// the hypervisor that downloads it
    "node": Text => Replace [because("the storage is not shared between hypervisors")];
    /// `iso`, `import` or `vztmpl`
    "content": Text => Replace [because("the volume has another content type")];
    /// the storage is the same on every hypervisor
    "shared": Bool => CreateOnly;
    /// where it is downloaded from
    "url": Text => CreateOnly;
    /// what the download must add up to: `sha256:…`
    "checksum": Text => CreateOnly;
    /// its size once downloaded
    "size": Int => CreateOnly [bytes, no_tofu(NO_FIELD)];
}

pub(super) struct Image;

#[async_trait]
impl ManagedKind for Image {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn is_volume(&self) -> bool {
        true
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        volume::needs(operation, needs, "download");
        if operation.action != Action::Delete {
            let spec = &operation.spec;
            let node = format!("/nodes/{}", spec_text(spec, "node"));
            // Nobody should have the other for a download; whoever has it needs nothing more.
            let or_all = (vec!["Sys.Audit".to_owned(), "Sys.Modify".to_owned()], "/".to_owned());
            needs.add_or(&["Sys.AccessNetwork"], vec![node], Some(or_all), "download");
        }
    }

    fn places<'a>(&self, operation: &'a Operation, places: &mut NamedPlaces<'a>) {
        places.add_volume(operation);
    }

    async fn execute(&self, work: &Work<'_>) -> Result<Outcome, ProviderError> {
        match work.operation.action {
            Action::Create | Action::Update => execute::image(work).await,
            Action::Delete => execute::delete_volume(work).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use strata_resource::Spec;

    use super::TABLE;

    #[test]
    fn the_node_is_part_of_a_volume_only_where_the_storage_is_not_shared() {
        let volume = |node: &str, shared: bool| -> Spec {
            let json =
                serde_json::json!({"storage": "s", "node": node, "volume": "s:iso/x", "shared": shared});
            serde_json::from_value(json).unwrap()
        };
        let identity = |node, shared| TABLE.identity_of(&volume(node, shared));
        assert_eq!(identity("a", true), identity("b", true));
        assert_ne!(identity("a", false), identity("b", false));
        // The identity of an identity is itself, with or without the node that a journal entry adds.
        let mut entry = identity("a", true);
        assert_eq!(TABLE.identity_of(&entry), entry);
        entry.insert("node".to_owned(), "a".into());
        assert_eq!(TABLE.identity_of(&entry), identity("a", true));
    }
}
